"""Language models and their training, for three tasks; needs torch."""
