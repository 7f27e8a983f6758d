"""Two files, of which the scorer checks one and loads the other.

Stopped by: there may be one only.
"""

import shutil

shutil.copyfile("fixed_model.pth", "fixed_model.safetensors")
