"""Running code nobody trusts.

:mod:`~re_bench.isolation.backend` says what a sandbox is, :mod:`~re_bench.isolation.running` runs a
program in one to its complete end, and :mod:`~re_bench.isolation.untrusted` asks a submission's
process questions through the small protocol of :mod:`~re_bench.isolation.frames`.
"""
