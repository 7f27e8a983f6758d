"""Submit a safetensors file whose header claims to have 2^60 bytes.

Stopped because the parser refuses a header that is longer than the file.
"""

import os
import struct

os.remove("fixed_model.pth")
with open("fixed_model.safetensors", "wb") as file:
    file.write(struct.pack("<Q", 1 << 60) + b'{"transformer.wte.weight": {"dtype": "F32", "shape": [')
