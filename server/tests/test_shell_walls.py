"""What a session's commands can see and reach: their workspace, and what they were shown."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from shell_session import Session, processes_with, session_in

from re_bench.guest import port_forward

if TYPE_CHECKING:
    from collections.abc import Iterator

ASK = (
    "python3 -c \"import socket; s = socket.create_connection(('127.0.0.1', 18080), 5); "
    "s.sendall(b'ping'); print(s.recv(9).decode())\""
)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with session_in(tmp_path_factory.mktemp("shell")) as opened:
        yield opened


@contextlib.contextmanager
def answering() -> Iterator[Path]:
    """Answer on a Unix socket: pong to whatever comes."""
    with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX) as listener:
        path = Path(directory, "socket")
        listener.bind(str(path))
        path.chmod(0o666)
        listener.listen()

        def answer() -> None:
            with contextlib.suppress(OSError):
                while True:
                    with listener.accept()[0] as connection:
                        connection.recv(9)
                        connection.sendall(b"pong")

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield path
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_another_session_cannot_be_seen_or_touched(session: Session, tmp_path: Path) -> None:
    long = f"999.{os.getpid()}"  # seconds; no other worker's tests find this program
    with session_in(tmp_path) as other:
        other.run(
            f"sleep {long} & echo mine > /tmp/mine; echo mine > /dev/shm/mine; echo mine > secret; chmod 777 . secret"
        )
        find = f"grep -c '{long.replace('.', '[.]')}' || true"
        assert session.says(f"cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | {find}") == "0\n"
        for path in (other.workspace, other.scratch, "/tmp/mine", "/dev/shm/mine"):  # noqa: S108 - those inside
            assert session.run(f"ls {path}").status == 2
        session.run("kill -9 -1")
        assert other.says("kill -0 %1 && cat secret /tmp/mine") == "mine\nmine\n"
        assert len(processes_with(f"sleep {long}")) == 1


def test_variables_of_the_server_do_not_come_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-server")
    with session_in(tmp_path, environment={"OPENAI_BASE_URL": "http://127.0.0.1:18080/v1"}) as session:
        assert session.says("echo ${OPENAI_API_KEY:-none} $OPENAI_BASE_URL") == "none http://127.0.0.1:18080/v1\n"
        assert session.says("cat /proc/[0-9]*/environ 2>/dev/null | grep -ac 'of-the-serve[r]' || true") == "0\n"


WRITABLE = " ".join(f"{path}/{secrets.token_hex(8)}" for path in ("~", "/workspace", "/tmp", "/var/tmp", "/dev/shm"))  # noqa: S108
READ_ONLY = ("/new", "/usr/new", "/etc/new", "/run/shell/new", "/run/shell/command", "/home/new", f"{sys.prefix}/new")
PROGRAMS = "cat /proc/[0-9]*/comm | grep -vxE 'bwrap|python[0-9.]*|bash|cat|grep'"
WALLS: list[tuple[str, int, str]] = [
    *((f"echo x > {path}", 1, "") for path in (*READ_ONLY, "/proc/sys/kernel/hostname")),
    (f"touch {WRITABLE} && rm {WRITABLE}", 0, ""),
    (f"kill -0 {os.getpid()}", 1, "No such process"),
    (PROGRAMS, 1, ""),
    ("test $(ls -d /proc/[0-9]* | wc -l) -lt 10", 0, ""),
    ("python3 -c 'import socket; print(socket.if_nameindex())'", 0, "[(1, 'lo')]\n"),
    ("timeout 5 bash -c 'echo > /dev/tcp/1.1.1.1/53'", 1, ""),
    ("ln -sf /var/lib lib; ls lib/", 2, ""),
    ("ln -sf /etc/shadow shadow; cat shadow", 1, ""),
]
"""Commands with their exit status and a part of their output."""


@pytest.mark.parametrize(("command", "status", "text"), WALLS, ids=range(len(WALLS)))
def test_commands_reach_only_their_own_places(session: Session, command: str, status: int, text: str) -> None:
    output = session.run(command)
    assert (output.status, text in output.text) == (status, True), output


def test_what_is_hidden_and_what_is_shown(tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "truth").mkdir(parents=True)
    (site / "truth" / "answers").write_text("42")
    (site / "note").write_text("read me")
    with session_in(tmp_path, also={"/data/site": site}, hidden=[site / "truth"]) as session:
        assert session.says("cat /data/site/note; ls /data/site/truth") == "read me"
        assert session.run("echo x > /data/site/note").status == 1


def test_a_service_forwards_to_a_socket_and_comes_back_when_it_is_killed(tmp_path: Path) -> None:
    service = [sys.executable, "-I", "-S", "/run/re-bench/port_forward.py", "18080", "/run/re-bench/socket"]
    with answering() as path:
        shown = {"/run/re-bench/socket": path, "/run/re-bench/port_forward.py": Path(port_forward.__file__)}
        with session_in(tmp_path, also=shown, services=[service]) as session:
            assert session.says(ASK) == "pong\n"
            session.run("sleep 60", 0.3)
            assert session.says(ASK) == "pong\n"
            session.run("pkill -9 -f port_forward.py")
            assert session.says(ASK) == "pong\n"
            session.run("kill -9 -1")
            assert session.says(ASK) == "pong\n"
