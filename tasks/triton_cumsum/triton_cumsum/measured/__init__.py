"""Profile ``gpu``: exactness and time on a GPU, in turns with our baseline and reference."""

from triton_cumsum.measured.scoring import run

__all__ = ["run"]
