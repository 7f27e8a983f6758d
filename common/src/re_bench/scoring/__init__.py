"""Score one submission."""
