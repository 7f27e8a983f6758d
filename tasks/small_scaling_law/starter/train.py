"""Makes one experiment: ``python train.py [CONFIG] [--seed N]``, the config being ``example_config.py`` by default.

The run is charged to ``ledger.jsonl``; what it gave is saved as ``runs/NNN.json`` and printed.
"""

from __future__ import annotations

import argparse
import json
import runpy
import sys
from dataclasses import asdict
from pathlib import Path

HERE = Path(__file__).parent


def experiment(n_embd: int, max_iters: int, seed: int = 0) -> dict:
    """Charge a run to the ledger, make it, save it, and return what was saved.

    Raises:
        LedgerError: if it is over the limits.
    """
    # Imports torch, which nobody should wait for to hear that a run is too large.
    from ledger import Ledger  # noqa: PLC0415
    from scales import SCALES  # noqa: PLC0415

    scale = SCALES[json.loads((HERE / "profile.json").read_text(encoding="utf-8"))["profile"]]
    if scale.experiments is None:
        sys.exit("this profile has no experiments: how the published runs were trained is not known")
    number = Ledger(HERE / "ledger.jsonl", scale).charge(n_embd, max_iters, seed)
    from experiment import run  # noqa: PLC0415

    outcome = run(n_embd, max_iters, seed)
    flops = scale.flops(n_embd, max_iters)
    result = {"run": number, "n_embd": n_embd, "max_iters": max_iters, "seed": seed, "flops": flops, **asdict(outcome)}
    (HERE / "runs").mkdir(exist_ok=True)
    (HERE / "runs" / f"{number:03}.json").write_text(json.dumps(result) + "\n", encoding="utf-8")
    return result


def main() -> None:
    """Read the command line and make the experiment."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", nargs="?", default="example_config.py", help="a Python file: n_embd and max_iters")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    config = runpy.run_path(options.config)
    try:
        result = experiment(config["n_embd"], config["max_iters"], options.seed)
    except KeyError as missing:
        sys.exit(f"{options.config} must set {missing}")
    except Exception as error:
        if type(error).__name__ != "LedgerError":
            raise
        sys.exit(str(error))
    loss = "diverged" if result["loss"] is None else f"loss {result['loss']:.4f}"
    print(f"run {result['run']}: n_embd {result['n_embd']}, max_iters {result['max_iters']}, "
          f"{result['flops']:.4g} FLOPs, {loss} after {result['seconds']:.1f} s")  # fmt: skip


if __name__ == "__main__":
    main()
