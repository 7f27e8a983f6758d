"""Profile ``cpu``: exactness in Triton's interpreter, and a time modelled from what the submission's steps move."""

from triton_cumsum.modelled.scoring import run

__all__ = ["run"]
