"""Looking over an evaluation for what deserves a closer look: checks of logs and submissions, a model's opinion."""
