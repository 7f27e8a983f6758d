"""Register all objects that Inspect finds by name; the entry point for Inspect loads this module."""

from re_bench_inspect.episode import answer, bash, best, reward
from re_bench_inspect.mlab import mlab
from re_bench_inspect.provider import ReBenchSandbox
from re_bench_inspect.tasks import make_tasks
from re_bench_inspect.validate import lay_in, validate, verdict

__all__ = ["TASKS", "ReBenchSandbox", "answer", "bash", "best", "lay_in", "mlab", "reward", "validate", "verdict"]

TASKS = make_tasks()
