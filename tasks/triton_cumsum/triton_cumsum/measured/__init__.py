"""Profile ``gpu``: exactness and time on a GPU, in turns with our baseline and reference."""
