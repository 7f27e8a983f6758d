"""Runs inside a session and looks for what it must not find: ``python intruding.py < request``, both JSON.

The request has ``marks``, by name in base64, so that the request itself holds none of them, ``names`` of files, and
``port``, at which the server listens. What comes out says where each was found.
"""

import base64
import contextlib
import glob
import json
import os
import signal
import socket
import stat
import sys

SYSTEM = ("/usr/", "/lib", "/bin/", "/sbin/", "/sys/", "/proc/")
"""Where files are not read, only their names: the system, and below /proc what is read one by one."""
LARGEST = 32 << 20


def main():
    request = json.loads(sys.stdin.read())
    marks = {name: base64.b64decode(mark) for name, mark in request["marks"].items()}
    names = set(request["names"])
    processes = glob.glob("/proc/[0-9]*")
    results = {
        "marks": [*in_files(marks), *in_processes(marks, processes)],
        "names": [path for path in files("/") if os.path.basename(path) in names] + [*beyond(names, processes)],
        "processes": [open(f"{directory}/cmdline").read().replace("\0", " ") for directory in processes],
        "reached": [address for address in addresses(request["port"]) if reaches(address)],
        "signalled": [pid for pid in request["pids"] if kills(pid)],
    }
    print(json.dumps(results))


def in_files(marks):
    skipped = (*SYSTEM, sys.prefix, sys.base_prefix)
    for path in files("/"):
        if not path.startswith(skipped):
            yield from ((name, path) for name in held(path, marks))


def in_processes(marks, processes):
    for directory in processes:
        for part in ("environ", "cmdline", "maps", "mountinfo", "status"):
            yield from ((name, f"{directory}/{part}") for name in held(f"{directory}/{part}", marks))


def beyond(names, processes):
    """Look around from where other processes are, and from what they have open."""
    for directory in processes:
        for part in ("root", "cwd", *(f"fd/{number}" for number in range(20))):
            with contextlib.suppress(OSError):
                yield from (f"{directory}/{part}/{name}" for name in os.listdir(f"{directory}/{part}") if name in names)


def addresses(port):
    paths = (line.split()[-1] for line in open("/proc/net/unix"))
    return [("127.0.0.1", port), *(path for path in paths if path.startswith(("/", "@")))]


def kills(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        return False
    return True


def files(top):
    for directory, directories, names in os.walk(top):
        if directory == "/proc":
            directories[:] = ["sys", "net"] if "sys" in directories else []
        yield from (os.path.join(directory, name) for name in (*names, *directories))


def held(path, marks):
    try:
        if not path.startswith("/proc/") and not stat.S_ISREG(os.lstat(path).st_mode):
            return []
        with open(path, "rb") as file:
            text = file.read(LARGEST)
    except OSError:
        return []
    return [name for name, mark in marks.items() if mark in text]


def reaches(address):
    kind = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(kind) as client:
        client.settimeout(1)
        try:
            client.connect(address.replace("@", "\0") if isinstance(address, str) else address)
        except OSError:
            return False
        return True


if __name__ == "__main__":
    main()
