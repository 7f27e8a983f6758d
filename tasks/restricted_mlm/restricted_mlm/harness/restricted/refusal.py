"""The exception that refuses a model. In an agent's workspace, re_bench's own file stands in the place of this one."""

from re_bench.guest.refused import RefusedError

__all__ = ["RefusedError"]
