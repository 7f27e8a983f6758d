"""re-bench: five machine-learning research-engineering tasks, each with a proof that it can be solved.

:func:`normalise` and :func:`aggregate` turn raw scores into rewards. Import all other names from their modules, such as
:mod:`re_bench.api` for a task's scorer and :mod:`re_bench.task.discovery` to find tasks.
"""

from re_bench.normalise import aggregate, normalise

__all__ = ["aggregate", "normalise"]
