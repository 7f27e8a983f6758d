"""A limit on the processes and threads of a program where the kernel has none: root's own.

A seccomp filter has the kernel ask before each ``fork``, ``vfork`` and ``clone`` (seccomp_unotify(2), Linux 5.5), and
:class:`ProcessGate` lets it go on, or fail as at a limit. The program cannot change what it asked for afterwards into
more than one process: whatever the arguments are, a call starts one.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import struct
import threading
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from re_bench_landlock.kernel import prepared_filter

if TYPE_CHECKING:
    from collections.abc import Callable

_SET_MODE_FILTER, _NEW_LISTENER = 1, 1 << 3
_RECEIVE, _SEND = 0xC0502100, 0xC0182101  # SECCOMP_IOCTL_NOTIF_RECV and _SEND of <linux/seccomp.h>
_NOTIFICATION_BYTES = 80
_CONTINUE = 1
_SEEN_S = 0.05
"""How long what was let go on may take to be seen as a process."""
_WAIT_S = 0.005

_libc = ctypes.CDLL(None, use_errno=True)


def ask_through(channel: socket.socket, program: bytes, call: int) -> None:
    """Hold this process, and all that it will start, to a filter that asks, and send who is asked the descriptor.

    Args:
        channel: a Unix socket to who answers.
        program: the filter.
        call: the number of the system call ``seccomp``.

    Raises:
        OSError: if the kernel refuses, as it does where a filter around us asks already (EBUSY).
    """
    _code, header = prepared_filter(program)
    listener = _libc.syscall(call, _SET_MODE_FILTER, _NEW_LISTENER, header)
    if listener < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    try:
        socket.send_fds(channel, [b"gate"], [listener])
    finally:
        os.close(listener)


class ProcessGate:
    """Answers for each new process or thread of a program whether there may be one more."""

    def __init__(self, listener: int, most: int, count: Callable[[], int]) -> None:
        """Answer from now on, in a thread, for as long as this process lasts.

        Args:
            listener: the descriptor of the filter.
            most: how many there may be at a time.
            count: returns how many there are.
        """
        self._listener, self._most, self._count = listener, most, count
        self._room = 0
        self._let_go = deque[float]()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            asked = bytearray(_NOTIFICATION_BYTES)
            try:
                fcntl.ioctl(self._listener, _RECEIVE, asked)
            except OSError as error:
                if error.errno in {errno.ENOENT, errno.EINTR}:  # who asked has ended
                    continue
                return  # then nothing is answered, and the program starts nothing more
            (number,) = struct.unpack_from("=Q", asked)
            refusal, flags = (0, _CONTINUE) if self._is_room() else (-errno.EAGAIN, 0)
            with suppress(OSError):
                fcntl.ioctl(self._listener, _SEND, struct.pack("=QqiI", number, 0, refusal, flags))

    def _is_room(self) -> bool:
        """Tell whether one more may be started; wait where that hangs on what was let go on and is not seen yet."""
        while self._room < 1:
            now = time.monotonic()
            there = self._count()
            if there >= self._most:
                return False
            while self._let_go and self._let_go[0] < now - _SEEN_S:
                self._let_go.popleft()
            self._room = self._most - there - len(self._let_go)
            if self._room < 1:
                time.sleep(_WAIT_S)
        self._room -= 1
        self._let_go.append(time.monotonic())
        return True
