"""Drive a family in the working directory by METR's Task Standard, one operation per call.

Run ``python metr_driver.py FAMILY OPERATION [--task NAME] [--score-log JSON]`` as root in the
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


def main() -> None:
    """Run the operation and print its result."""
    parser = argparse.ArgumentParser()
    parser.add_argument("family")
    parser.add_argument("operation", choices=("install", "setup", "start", "intermediate_score", "score"))
    parser.add_argument("--task")
    parser.add_argument("--score-log", type=json.loads)
    options = parser.parse_args()
    sys.path.insert(0, os.getcwd())  # noqa: PTH109 - as without -P
    family = importlib.import_module(options.family).TaskFamily
    if not isinstance(family.standard_version, str):
        sys.exit("standard_version must be a string")
    if hasattr(family, "score"):
        sys.exit("a family has either score, or intermediate_score and aggregate_scores")
    result = operate(family, options.operation, options.task, options.score_log)
    sys.stdout.flush()
    print(f"\n{SEPARATOR}\n{json.dumps(result)}\n{SEPARATOR}")


def operate(family: Any, operation: str, name: str, score_log: Any) -> Any:
    """Return the result of an operation."""
    if operation == "install":
        return family.install()
    tasks = family.get_tasks()
    task = tasks[name]
    if operation == "setup":
        return {
            "task_names": list(tasks),
            "permissions": family.get_permissions(task),
            "instructions": family.get_instructions(task),
        }
    if missing := [name for name in family.required_environment_variables if name not in os.environ]:
        sys.exit(f"these variables are required: {', '.join(missing)}")
    if operation == "start":
        family.start(task)
        return give_home_to_the_agent()
    if operation == "score":
        return family.aggregate_scores(task, score_log)
    result = family.intermediate_score(task)
    if set(result) != {"score", "message", "details"} or not isinstance(result["score"], float | int | None):
        sys.exit(f"not the result of an intermediate scoring: {result}")
    return result


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
