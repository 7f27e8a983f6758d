"""The two settings of an experiment; everything else is fixed."""

n_embd = 16
max_iters = 300
