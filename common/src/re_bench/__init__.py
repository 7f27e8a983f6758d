"""re-bench: five machine-learning research-engineering tasks that prove their own solvability.

:func:`normalise` and :func:`aggregate` turn raw scores into rewards. Import the rest by module: :mod:`re_bench.api`
for a task's scorer, :mod:`re_bench.task.discovery` to find tasks.
"""

from re_bench.normalise import aggregate, normalise

__all__ = ["aggregate", "normalise"]
