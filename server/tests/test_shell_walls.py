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


def test_the_server_cannot_be_seen(session: Session) -> None:
    assert session.run(f"kill -0 {os.getpid()}").status == 1
    assert len(session.says("ls -d /proc/[0-9]*").split()) < 10
    programs = session.says("cat /proc/[0-9]*/comm").split()
    assert set(programs) <= {"bwrap", "python", Path(sys.executable).resolve().name, "bash", "cat"}


def test_variables_of_the_server_do_not_come_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-server")
    with session_in(tmp_path, environment={"OPENAI_BASE_URL": "http://127.0.0.1:18080/v1"}) as session:
        assert session.says("echo ${OPENAI_API_KEY:-none} $OPENAI_BASE_URL") == "none http://127.0.0.1:18080/v1\n"
        assert session.says("cat /proc/[0-9]*/environ 2>/dev/null | grep -ac 'of-the-serve[r]' || true") == "0\n"


def test_there_is_no_network_but_loopback(session: Session) -> None:
    assert session.says(
        "ls /sys/class/net 2>/dev/null || python3 -c 'import socket; print(socket.if_nameindex())'"
    ) == ("[(1, 'lo')]\n")
    assert session.run("timeout 5 bash -c 'echo > /dev/tcp/1.1.1.1/53'").status == 1


def test_nothing_but_workspace_and_tmp_can_be_written(session: Session) -> None:
    for path in (
        "/",
        "/usr",
        "/etc",
        "/run/shell",
        "/run/shell/command",
        "/home",
        sys.prefix,
        "/proc/sys/kernel/hostname",
    ):
        target = path if path.endswith(("command", "hostname")) else f"{path}/new"
        assert session.run(f"echo x > {target}").status == 1, path
    new = secrets.token_hex(8)  # a directory of the clone's path may have any other name
    writable = " ".join(f"{path}/{new}" for path in ("~", "/workspace", "/tmp", "/var/tmp", "/dev/shm"))  # noqa: S108
    assert session.says(f"touch {writable}; rm {writable}; id -u | wc -l") == "1\n"


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


def test_links_out_of_the_workspace_lead_nowhere(session: Session) -> None:
    session.run(f"ln -s {session.scratch} out; ln -s /var/lib lib; ln -s /etc/shadow shadow")
    assert session.run("ls out/").status == 2
    assert session.run("ls lib/").status == 2
    assert session.run("cat shadow").status == 1
