"""Make a truth: ``python tools/rebuild.py --profile cpu [--instance N]`` is ``sweep.py``, ``fit.py`` and anchors.

``re-bench calibrate`` runs it first for instance 0, whose anchors it measures itself. Those of another instance are
measured here, by three references in the sandbox, and kept with its truth. A number that the repository has no truth
of makes a private instance: runs, truth and anchors lie in the cache alone. Runs that are there already, made in the
same way, are not made again.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.data.instances import pin_instances
from re_bench.data.provenance import hardware, versions
from re_bench.errors import ReBenchError
from re_bench.gpu import state as gpu_state
from re_bench.normalise import normalise
from re_bench.processes import cli_entry_point, run_program
from re_bench.task.discovery import open_task
from re_bench.task.manifest import Anchors, Source, Spread
from re_bench.task.workspace import lay_out_and_make
from small_scaling_law.answer import FILE, Answer, read_answer
from small_scaling_law.grading import open_truth, raw_score, runs_file, truth_file
from small_scaling_law.instances import scale_of
from small_scaling_law.profiles import SCALES
from small_scaling_law.workspace import TASK

if TYPE_CHECKING:
    from collections.abc import Sequence

TOOLS = Path(__file__).parent
REFERENCES = 3
FURTHEST = 0.1
"""Of a reward, that a reference may be from the mean of all."""
LEAST = 0.8
"""The least mean raw score of references: with less, experiments do not tell what the target's run does."""


def measure_anchors(profile: str, instance: int) -> Anchors:
    """Return the starting answer's raw score, and the mean of three references, made in the sandbox.

    Raises:
        ReBenchError: if the references differ too much.
    """
    pin_instances({f"{TASK}/{profile}": instance})
    task, truth = open_task(TOOLS.parent), open_truth(profile, instance)
    answers = []
    for seed in range(REFERENCES):
        with tempfile.TemporaryDirectory(prefix="re-bench-anchors-") as directory:
            workspace = Path(directory) / "workspace"
            lay_out_and_make(task, workspace, "reference", profile=profile, seed=seed)
            answers.append(read_answer(workspace / FILE))
    starting, *references = (
        raw_score(truth, answer) for answer in (Answer(*scale_of(profile, instance).default), *answers)
    )
    check_references(starting, references)
    spread = Spread(starting=0.0, reference=statistics.stdev(references))
    source = Source(
        kind="measured",
        where=f"python tools/rebuild.py --profile {profile} --instance {instance}",
        hardware=gpu_state.identify().name if task.profile(profile).device == "cuda" else hardware(),
        date=dt.datetime.now(dt.UTC).date(),
        repeats=REFERENCES,
        spread=spread,
        versions=versions(),
    )
    return Anchors(starting=starting, reference=statistics.fmean(references), source=source)


def check_references(starting: float, references: Sequence[float]) -> None:
    """Raise unless references are good and have about the reward 1: else experiments of the instance tell too little.

    Raises:
        ReBenchError: if they are not.
    """
    mean = statistics.fmean(references)
    rewards = ", ".join(f"{normalise(raw, starting, mean):.2f}" for raw in references)
    if mean < LEAST or max(abs(raw - mean) for raw in references) > FURTHEST * (mean - starting):
        raise ReBenchError(
            f"the references have the mean raw score {mean:.3f}, the rewards {rewards}: wanted are {LEAST:g} and "
            f"rewards within {FURTHEST:g} of 1; take another number"
        )


def add_anchors(path: Path, anchors: Anchors) -> None:
    """Write anchors into the file of a truth."""
    content = json.loads(path.read_text(encoding="utf-8")) | {"anchors": anchors.model_dump(mode="json")}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Read the command line, sweep, fit, measure."""
    parser = argparse.ArgumentParser(description="Make the truth of a profile, or of one of its instances, anew.")
    parser.add_argument("--profile", choices=list(SCALES), required=True)
    parser.add_argument("--instance", type=int, default=0, help="which one of the profile (default: 0)")
    parser.add_argument("--ray", metavar="ADDRESS", help="make the runs of the sweep on the Ray cluster there")
    options = parser.parse_args()
    profile, instance = options.profile, options.instance
    if SCALES[profile].experiments is None:  # its truth is published
        return
    with cli_entry_point("rebuild.py"):
        runs_file(profile, instance).parent.mkdir(parents=True, exist_ok=True)
        for tool in ("sweep.py", "fit.py"):
            arguments = [str(TOOLS / tool), "--profile", profile, "--instance", str(instance)]
            arguments += ["--ray", options.ray] if options.ray and tool == "sweep.py" else []
            status, _stdout = run_program(arguments, capture=False)
            if status != 0:
                sys.exit(status)
        if instance:
            anchors = measure_anchors(profile, instance)
            add_anchors(truth_file(profile, instance), anchors)
            print(f"starting {anchors.starting:.4f}, reference {anchors.reference:.4f}")


if __name__ == "__main__":
    main()
