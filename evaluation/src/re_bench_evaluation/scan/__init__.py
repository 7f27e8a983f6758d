"""Looking over an evaluation for what deserves a closer look."""
