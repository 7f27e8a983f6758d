"""Profile ``gpu``: check and time a submission on a GPU, in turns with our baseline and reference."""
