"""A file of 200 GiB that has no blocks on the disk.

Stopped by: a bound on the size of a submission, before anything is read.
"""

import os

for size in (200 << 30, 12 << 30, 3 << 30, 255 << 20):  # the first one that the sandbox allows
    try:
        os.truncate("fixed_model.pth", size)
        break
    except OSError:
        continue
