"""re-bench: five machine-learning research-engineering tasks that prove their own solvability.

:func:`normalise` and :func:`aggregate` are the scale of every task. The rest of the core is
imported by module: :mod:`re_bench.scoring.score` for a task's scorer, :mod:`re_bench.task.discovery` to find tasks.
"""

from re_bench.normalise import aggregate, normalise

__all__ = ["aggregate", "normalise"]
