"""Half of a file, in the hope that what is missing is filled up from memory.

Stopped by: it cannot be read.
"""

import os

os.truncate("fixed_model.pth", os.path.getsize("fixed_model.pth") // 2)
