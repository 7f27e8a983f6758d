"""The command ``transcripts``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from re_bench.cli.main import EVALUATORS, app
from re_bench.options import Json, print_json


@app.command(group=EVALUATORS)
def transcripts(
    directory: Annotated[
        Path,
        Parameter(
            name="DIR", help="Of an evaluation, of one of its runs, of an mlab run, or a server's state directory."
        ),
    ],
    /,
    *,
    out: Annotated[Path, Parameter(help="Write into this directory.")] = Path("transcripts"),
    json: Json = False,
) -> int:
    """Write what agents did as trajectories in ATIF, for Harbor's viewer and others."""
    from re_bench.tables import printable, table
    from re_bench_evaluation.transcripts import write_trajectories

    written = write_trajectories(directory, out)
    if json:
        files = [{**vars(entry), "path": str(entry.path), "source": str(entry.source)} for entry in written]
        print_json({"trajectories": files})
    else:
        header = ("trajectory", "steps", "attempts", "torn lines")
        rows = [
            (printable(str(entry.path)), str(entry.steps), str(entry.attempts), str(entry.torn)) for entry in written
        ]
        print(table(header, rows))
    return 0
