"""What runs have found, as tables and texts."""
