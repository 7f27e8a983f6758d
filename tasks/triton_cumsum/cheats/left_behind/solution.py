"""Cheat: leave behind files, and a daemon that replies in place of the harness, for later submissions.

No better, because no process outlives its sandbox, and the next sandbox sees neither its memory nor its files.
"""

import gc
import os
import socket
import struct
import time

from base.solution import prefix_sum  # noqa: F401 - the submitted function

TEXT = b'{"value": ["{}"]}'
channel = next(item for item in gc.get_objects() if isinstance(item, socket.socket) and item.fileno() >= 0)


def haunt():
    while True:
        time.sleep(300)  # until the next submission is scored
        channel.sendall(struct.pack(">II", len(TEXT), 0) + TEXT)


for place in ("/tmp", "/dev/shm"):
    with open(place + "/answers", "w") as file:
        file.write("for the next")
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        haunt()
    os._exit(0)
os.wait()
