"""A safetensors file whose header claims 2^60 bytes.

Stopped by: the file's size is checked first, and a header longer than the file is refused.
"""

import os
import struct

os.remove("fixed_model.pth")
with open("fixed_model.safetensors", "wb") as file:
    file.write(struct.pack("<Q", 1 << 60) + b'{"transformer.wte.weight": {"dtype": "F32", "shape": [')
