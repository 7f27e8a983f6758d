"""Drive a family in the working directory by METR's Task Standard, one operation per call.

Run ``python metr_driver.py FAMILY OPERATION [--task NAME] [--submission TEXT] [--score-log JSON]`` as root in the
container. The result is a line of JSON between two separator lines; all else is the family's output.
"""

from __future__ import annotations

import argparse
import grp
import importlib
import json
import os
import pwd
import shutil
import sys
from pathlib import Path
from typing import Any

SEPARATOR = "-- the result of the operation --"
HOME = Path("/home/agent")
OPERATIONS = ("get_tasks", "setup", "install", "start", "intermediate_score", "score", "teardown")


def main() -> None:
    """Run the operation and print its result."""
    parser = argparse.ArgumentParser()
    parser.add_argument("family")
    parser.add_argument("operation", choices=OPERATIONS)
    parser.add_argument("--task")
    parser.add_argument("--submission", default="")
    parser.add_argument("--score-log", type=json.loads)
    options = parser.parse_args()
    sys.path.insert(0, os.getcwd())  # noqa: PTH109 - as without -P
    family = importlib.import_module(options.family).TaskFamily
    if not isinstance(family.standard_version, str):
        sys.exit("standard_version must be a string")
    result = operate(family, options)
    sys.stdout.flush()
    print(f"\n{SEPARATOR}\n{json.dumps(result)}\n{SEPARATOR}")


def operate(family: Any, options: argparse.Namespace) -> Any:
    """Return the result of an operation."""
    if options.operation == "install":
        return family.install() if hasattr(family, "install") else None
    tasks = family.get_tasks()
    if options.operation == "get_tasks":
        return tasks
    if options.task not in tasks:
        return f"taskNotFound: {options.task}"
    if hasattr(family, "intermediate_score") == hasattr(family, "score"):
        sys.exit("a family has either score, or intermediate_score and aggregate_scores")
    if options.operation in {"start", "intermediate_score", "score"}:
        need_variables(family)
    functions = {
        "setup": set_up,
        "start": start,
        "intermediate_score": intermediate_score,
        "score": score,
        "teardown": tear_down,
    }
    return functions[options.operation](family, tasks[options.task], options)


def set_up(family: Any, task: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Return the facts that a driver needs before it starts a task."""
    return {
        "task_names": [options.task],
        "permissions": family.get_permissions(task) if hasattr(family, "get_permissions") else [],
        "instructions": family.get_instructions(task),
        "required_environment_variables": getattr(family, "required_environment_variables", []),
        "intermediate_scoring": hasattr(family, "intermediate_score"),
    }


def start(family: Any, task: Any, _options: argparse.Namespace) -> None:
    """Create the agent's files, and give them to the agent."""
    if hasattr(family, "start"):
        family.start(task)
    if not getattr(family, "skip_chown_after_start", False):
        give_home_to_the_agent()


def intermediate_score(family: Any, task: Any, _options: argparse.Namespace) -> Any:
    """Return an intermediate score with the keys that the strictest driver requires."""
    result = family.intermediate_score(task)
    if set(result) != {"score", "message", "details"} or not isinstance(result["score"], float | int | None):
        sys.exit(f"not the result of an intermediate scoring: {result}")
    return result


def score(family: Any, task: Any, options: argparse.Namespace) -> Any:
    """Return the final score."""
    if not hasattr(family, "aggregate_scores"):
        return family.score(task, options.submission)
    if options.score_log is None:
        sys.exit("missing --score-log")
    return family.aggregate_scores(task, options.score_log)


def tear_down(family: Any, _task: Any, _options: argparse.Namespace) -> Any:
    """Tear the family down."""
    return family.teardown() if hasattr(family, "teardown") else None


def need_variables(family: Any) -> None:
    """Exit if a variable that the family requires is not set."""
    missing = [name for name in getattr(family, "required_environment_variables", []) if name not in os.environ]
    if missing:
        sys.exit(f"these variables are required: {', '.join(missing)}")


def give_home_to_the_agent() -> None:
    """Give the agent its home except for files of the group ``protected`` and hidden directories at the top."""
    try:
        protected = grp.getgrnam("protected").gr_gid
    except KeyError:
        protected = None
    agent = pwd.getpwnam("agent")
    for top, directories, files in os.walk(HOME):
        if top == str(HOME):
            directories[:] = [name for name in directories if not name.startswith(".") or name == ".ssh"]
        for path in (top, *(os.path.join(top, name) for name in files)):  # noqa: PTH118
            if os.lstat(path).st_gid != protected and not os.path.islink(path):  # noqa: PTH114
                shutil.chown(path, agent.pw_uid, agent.pw_gid)


if __name__ == "__main__":
    main()
