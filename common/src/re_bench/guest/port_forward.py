"""Forward a port of 127.0.0.1 to a Unix socket, in a sandbox without network: ``port_forward.py PORT SOCKET``.

The program prints the port as soon as the port accepts connections; port 0 selects a free port. This file imports only
the standard library, since sandboxes may contain no other part of re-bench.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import sys
import time

PAUSE_S = 0.01
PIECE = 1 << 16
MAX_WAITING = 1 << 18  # bytes buffered in one direction


class Side:
    """One end of a connection, the data waiting to be sent to it, and whether it has finished sending."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(0)
        self.connection = connection
        self.waiting = bytearray()
        self.finished = False
        self.shut = False
        self.other: Side = self


class Forwarder:
    """A loop that handles all connections."""

    def __init__(self, port: int, path: str) -> None:
        self.path = path
        self.selector = selectors.DefaultSelector()
        self.listener = socket.create_server(("127.0.0.1", port), backlog=512)
        self.listener.settimeout(0)
        self.selector.register(self.listener, selectors.EVENT_READ, None)

    def run(self) -> None:
        """Forward forever."""
        while True:
            for key, events in self.selector.select():
                if key.data is None:
                    self.accept()
                elif key.data.connection.fileno() >= 0:  # an earlier event of this round may have closed it
                    self.move(key.data, events)

    def accept(self) -> None:
        """Accept a connection, and connect it to the Unix socket."""
        try:
            client = self.listener.accept()[0]
        except BlockingIOError:
            return
        except OSError:
            time.sleep(PAUSE_S)  # no descriptor is free until a connection is closed
            return
        try:
            server = connected(self.path)
        except OSError as error:
            print(f"port_forward.py: {self.path}: {error.strerror}", file=sys.stderr, flush=True)
            client.close()
            return
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        one, two = Side(client), Side(server)
        one.other, two.other = two, one
        for side in (one, two):
            self.selector.register(side.connection, selectors.EVENT_READ, side)

    def move(self, side: Side, events: int) -> None:
        """Send waiting data to a side, and read from it."""
        try:
            if events & selectors.EVENT_WRITE:
                flush(side)
            if events & selectors.EVENT_READ:
                receive(side)
        except OSError:
            self.close(side)
            return
        if side.shut and side.other.shut:
            self.close(side)
            return
        for end in (side, side.other):
            self.watch(end)

    def watch(self, side: Side) -> None:
        """Register the events to wait for; stop reading while the other side is slow."""
        reading = not side.finished and len(side.other.waiting) < MAX_WAITING
        events = selectors.EVENT_READ * reading | selectors.EVENT_WRITE * bool(side.waiting)
        registered = self.selector.get_map().get(side.connection)
        if registered is None:
            if events:
                self.selector.register(side.connection, events, side)
        elif not events:
            self.selector.unregister(side.connection)
        elif registered.events != events:
            self.selector.modify(side.connection, events, side)

    def close(self, side: Side) -> None:
        """Close both ends."""
        for end in (side, side.other):
            with contextlib.suppress(KeyError, ValueError):
                self.selector.unregister(end.connection)
            end.connection.close()


def connected(path: str) -> socket.socket:
    """Return a new connection to a Unix socket."""
    server = socket.socket(socket.AF_UNIX)
    try:
        server.connect(path)
    except OSError:
        server.close()
        raise
    return server


def receive(side: Side) -> None:
    """Read from a side and forward the data."""
    try:
        data = side.connection.recv(PIECE)
    except BlockingIOError:
        return
    side.finished = not data
    side.other.waiting += data
    flush(side.other)


def flush(side: Side) -> None:
    """Send waiting data to a side; if the other side has finished, shut the connection down after the last data."""
    with contextlib.suppress(BlockingIOError):
        while side.waiting:
            del side.waiting[: side.connection.send(side.waiting)]
    if side.other.finished and not side.waiting and not side.shut:
        side.shut = True
        side.connection.shutdown(socket.SHUT_WR)


def main() -> None:
    """Run the command line."""
    port_and_socket = 2
    if len(sys.argv) != 1 + port_and_socket or not sys.argv[1].isdigit():
        sys.exit("usage: port_forward.py PORT SOCKET")
    try:
        forwarder = Forwarder(int(sys.argv[1]), sys.argv[2])
    except OSError as error:
        sys.exit(f"port_forward.py: 127.0.0.1:{sys.argv[1]}: {error.strerror}")
    print(forwarder.listener.getsockname()[1], flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        forwarder.run()


if __name__ == "__main__":
    main()
