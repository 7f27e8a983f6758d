"""Submit a link to another file, which could be replaced between the scorer's checks.

Stopped because links are refused, and the target is not copied.
"""

import os

os.rename("fixed_model.pth", "elsewhere.pth")
os.symlink("elsewhere.pth", "fixed_model.pth")
