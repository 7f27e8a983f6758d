"""The ORS environment of re-bench: agents reach the tasks over the Open Reward Standard."""

from re_bench_server.deferred_init import defer_init

# It imports the packages of three vendors of models, three quarters of what a server's start would take.
defer_init("openreward")
