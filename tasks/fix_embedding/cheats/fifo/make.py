"""A pipe that never says anything, so that the scorer waits for ever.

Stopped by: only regular files are copied.
"""

import os

os.remove("fixed_model.pth")
os.mkfifo("fixed_model.pth")
