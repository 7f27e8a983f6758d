"""For programs that tests start: the SDK ``openreward`` without what nobody here uses.

Its modules for rollouts and judges import the clients of three vendors of models, two thirds of what the start of each
test server and agent would cost. Python imports this module first, where its directory is in ``PYTHONPATH``.
"""

import sys
from types import ModuleType


class _Unused:
    """Stands for a class of the SDK that is imported and not used."""


for _name, _classes in (("openreward.api.rollouts.rollout", ("Rollout", "RolloutAPI")), ("openreward.judging", ())):
    _module = ModuleType(_name)
    for _class in _classes:
        setattr(_module, _class, _Unused)
    sys.modules[_name] = _module
