"""Cheat: write replies to the channel from a forked child, before the harness replies.

Refused because the scorer checks the content of every reply, whichever process wrote it.
"""

import gc
import json
import os
import socket
import struct

import torch

VALUE = ["{}"]


def prefix_sum(x):
    channel = next(item for item in gc.get_objects() if isinstance(item, socket.socket) and item.fileno() >= 0)
    if os.fork() == 0:
        text = json.dumps({"value": VALUE}).encode()
        os.write(channel.fileno(), struct.pack(">II", len(text), 0) + text)
        os._exit(0)
    os.wait()
    return torch.zeros_like(x)
