"""The messages between the scorer and an untrusted process: JSON and shared memory over a Unix socket.

A message is a header of eight bytes (length of the JSON text, number of file descriptors;
both unsigned, big-endian), then the JSON text. File descriptors of shared memory travel
beside the header, and only from the scorer to the untrusted process.

This file is also read by the worker inside the sandbox, so it uses the standard library only.
"""

from __future__ import annotations

import array
import json
import math
import socket
import struct
import time
from typing import Any

from re_bench.guest.json_depth import check_depth

HEADER = struct.Struct(">II")
MAX_DESCRIPTORS = 64
MAX_DEPTH = 64
"""How deep the arrays and objects of a message may lie in one another."""


class FrameError(Exception):
    """The other side sent something that is no message, or closed the connection."""


def send(channel: socket.socket, message: dict[str, Any], descriptors: list[int] | None = None) -> None:
    """Send one message, with ``descriptors`` passed along."""
    data = encode(message, len(descriptors or []))
    ancillary = []
    if descriptors:
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
    channel.sendmsg([data[: HEADER.size]], ancillary)
    channel.sendall(memoryview(data)[HEADER.size :])


def receive(
    channel: socket.socket, max_bytes: int, *, accept_descriptors: bool, deadline: float | None = None
) -> tuple[dict[str, Any], list[int]]:
    """Return the next message and the file descriptors that came with it.

    ``deadline`` is a time of ``time.monotonic`` by which all of the message must have arrived,
    however slowly it trickles in.

    Raises:
        FrameError: if the connection ends, or what arrives is too long or is no JSON object.
        TimeoutError: if the deadline, or a timeout of the channel, passes.
    """
    descriptors: list[int] = []
    header = bytearray()
    while len(header) < HEADER.size:
        _wait_until(channel, deadline)
        header += _receive_header(channel, HEADER.size - len(header), descriptors, accept=accept_descriptors)
    length, count = HEADER.unpack(header)
    if length > max_bytes:
        raise FrameError(f"a message of {length} bytes is longer than the {max_bytes} allowed")
    if count != len(descriptors):
        raise FrameError(f"a message announced {count} file descriptors and brought {len(descriptors)}")
    return decode(_receive_exactly(channel, length, deadline)), descriptors


def encode(message: dict[str, Any], descriptors: int = 0) -> bytes:
    """Return a message, which that many file descriptors accompany, as bytes."""
    text = json.dumps(message, allow_nan=False).encode()
    return HEADER.pack(len(text), descriptors) + text


def decode(text: bytes) -> dict[str, Any]:
    """Return the JSON object in ``text``.

    Raises:
        FrameError: if it is none, or nested deeper than :data:`MAX_DEPTH`; NaN and the infinities are not JSON.
    """
    try:
        check_depth(text, MAX_DEPTH)
        value = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    except ValueError as error:
        raise FrameError(f"a message is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise FrameError("a message is no JSON object")
    return value


def _receive_header(channel: socket.socket, size: int, descriptors: list[int], *, accept: bool) -> bytes:
    if not accept:
        data = channel.recv(size)  # without room for ancillary data the kernel drops any descriptors
    else:
        room = socket.CMSG_SPACE(MAX_DESCRIPTORS * array.array("i").itemsize)
        data, ancillary, _flags, _address = channel.recvmsg(size, room)
        for _level, _kind, payload in ancillary:
            descriptors.extend(array.array("i", payload))
    if not data:
        raise FrameError("the connection was closed")
    return data


def _wait_until(channel: socket.socket, deadline: float | None) -> None:
    if deadline is not None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        channel.settimeout(left)


def _receive_exactly(channel: socket.socket, length: int, deadline: float | None) -> bytes:
    buffer = bytearray(length)
    view = memoryview(buffer)
    while view:
        _wait_until(channel, deadline)
        received = channel.recv_into(view)
        if not received:
            raise FrameError("the connection was closed in the middle of a message")
        view = view[received:]
    return bytes(buffer)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is beyond the range of a number")
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")
