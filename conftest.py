"""Settings of all tests: hypothesis does not judge how long an example takes, which a busy machine decides."""

from hypothesis import settings

settings.register_profile("re-bench", parent=settings.default, deadline=None)
settings.load_profile("re-bench")
