"""Settings of all tests."""

import signal

from hypothesis import settings

# How long an example takes, a busy machine decides.
settings.register_profile("re-bench", parent=settings.default, deadline=None)
settings.load_profile("re-bench")

# What a shell starts in the background ignores interrupts, and so would every program that the tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
