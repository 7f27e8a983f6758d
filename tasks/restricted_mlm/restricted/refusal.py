"""The one exception of this package."""

from __future__ import annotations

__all__ = ["RefusedError"]


class RefusedError(Exception):
    """A model is not what the rules allow; the text says where and why, for the model's author."""

    plain = True
    """The text is enough, without the name of the class."""

    @classmethod
    def at(cls, where: str, operator: str, why: str) -> RefusedError:
        """Return a refusal of ``operator`` at ``where`` (such as ``model.py:31``, or empty if that is unknown)."""
        return cls(": ".join(part for part in (where, operator, why) if part))
