"""Keep this process and its descendants from writing to files and creating files, except in a few directories.

Without file-system quotas, only Landlock can let programs remove files but not write them: a mount is read-only as a
whole, and RLIMIT_FSIZE limits neither links nor directories nor writes through a memory map. See
https://docs.kernel.org/userspace-api/landlock.html. The constants are from <linux/landlock.h> and <linux/prctl.h>.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_WRITE_FILE = 1 << 1
_MAKE = 0b1111111 << 6
"""The rights MAKE_CHAR to MAKE_SYM."""
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH, _PR_SET_NO_NEW_PRIVS = 1, 38


class _Rule(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("rights", ctypes.c_uint64), ("directory", ctypes.c_int32))


def forbid_new_files(allowed: Iterable[str]) -> bool:
    """Forbid writing to files, and creating files, directories and links, outside the ``allowed`` directories.

    Files can still be read, removed, and truncated by path. Return whether the kernel supports this.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    handled = ctypes.c_uint64(_WRITE_FILE | _MAKE)
    rules = libc.syscall(_CREATE_RULESET, ctypes.byref(handled), ctypes.sizeof(handled), 0)
    if rules < 0:
        return False
    try:
        for path in allowed:
            with suppress(FileNotFoundError):
                directory = os.open(path, os.O_PATH | os.O_CLOEXEC)
                rule = _Rule(handled.value, directory)
                libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, ctypes.byref(rule), 0)
                os.close(directory)
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        return bool(libc.syscall(_RESTRICT_SELF, rules, 0) == 0)
    finally:
        os.close(rules)
