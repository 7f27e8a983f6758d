"""Scripts that attack the agent: its memory, its files, its workspace, and what it may not change."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mlab_agent.metr import write_first_submission
from mlab_agent.workspaces import bubblewrap
from mlab_agent.workspaces.files import WorkspaceError
from mlab_agent.workspaces.local import LocalWorkspace
from mlab_agent.workspaces.privileges import can_drop_capabilities
from mlab_agent.workspaces.safe_fs import SafeDirectory, replace_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mlab_agent.workspaces.base import ScriptResult

IS_ROOT = os.geteuid() == 0
CONTAINED = pytest.param(
    True, marks=pytest.mark.skipif(not bubblewrap.is_available(), reason="bubblewrap does not work"), id="contained"
)
UNCONTAINED = pytest.param(False, id="uncontained")
EVERYWHERE = pytest.mark.parametrize("contained", [CONTAINED, UNCONTAINED])
IN_BUBBLEWRAP = pytest.mark.parametrize("contained", [CONTAINED])
WITHOUT = pytest.mark.parametrize("contained", [UNCONTAINED])


@pytest.fixture
def top(tmp_path: Path) -> Path:
    (tmp_path / "above" / "ws" / "data").mkdir(parents=True)
    (tmp_path / "above" / "ws" / "data" / "x").write_text("truth")
    (tmp_path / "above" / "ws" / "truth.csv").write_text("truth")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "trace.jsonl").write_text("trace")
    return tmp_path / "above"


@pytest.fixture
def workspace(top: Path, contained: bool) -> Iterator[LocalWorkspace]:
    run = top.parent / "run"
    local = LocalWorkspace(
        top / "ws",
        read_only=["truth.csv", "data/x"],
        state=run / "home",
        protected=[run],
        use_bubblewrap=contained,
        submission=top / "submission.txt",
    )
    yield local
    local.close()


@pytest.fixture
def attack(workspace: LocalWorkspace) -> Callable[[str], ScriptResult]:
    def run(text: str) -> ScriptResult:
        name = "attack.py" if text.startswith("import") else "attack.sh"
        workspace.write(name, text)
        return workspace.execute(name, [], 20)

    return run


READ_MEMORY = """\
import os, subprocess, sys
agent, word = sys.argv[1], "-".join(["sk", "test", "memory"]).encode()
subprocess.run(["umount", "-l", "/proc"], stderr=subprocess.DEVNULL)
tried = 0
for name in ("environ", "maps", "fd/0"):
    try:
        open(f"/proc/{agent}/{name}", "rb").read(1)
        print("opened", name)
    except OSError:
        tried += 1
try:
    maps = open(f"/proc/{agent}/maps").read().splitlines()
except OSError:
    maps = []
for line in maps:
    first, last = (int(part, 16) for part in line.split()[0].split("-"))
    try:
        with open(f"/proc/{agent}/mem", "rb", 0) as memory:
            memory.seek(first)
            if word in memory.read(last - first):
                print("the key")
    except (OSError, OverflowError):
        pass
try:
    os.kill(int(agent), 0)
    print("can be killed")
except OSError:
    pass
print("tried", tried)
"""
AGENT = """\
import os, sys
from pathlib import Path
from mlab_agent.workspaces.local import LocalWorkspace
from mlab_agent.workspaces.privileges import hide_this_process
hide_this_process()
key = "-".join(["sk", "test", "memory"])
workspace = LocalWorkspace(Path(sys.argv[1]), use_bubblewrap=sys.argv[2] == "True")
print(workspace.execute("read_memory.py", [str(os.getpid())], 20).stdout)
"""


@EVERYWHERE
def test_the_agents_memory_is_out_of_reach(tmp_path: Path, contained: bool) -> None:
    (tmp_path / "read_memory.py").write_text(READ_MEMORY)
    done = subprocess.run(
        [sys.executable, "-c", AGENT, str(tmp_path), str(contained)], capture_output=True, text=True, check=False
    )
    killed = [] if contained else ["can be killed"]  # by another process of the same user, which nothing prevents
    assert done.stdout.splitlines()[:-1] == [*killed, "tried 3"], done.stderr


@EVERYWHERE
def test_a_script_has_no_capabilities(attack: Callable[[str], ScriptResult], contained: bool) -> None:
    lines = attack("grep -E '^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs)' /proc/self/status").stdout.splitlines()
    values = {name: int(value, 16) for name, value in (line.split(":") for line in lines)}
    none = {"CapInh": 0, "CapPrm": 0, "CapEff": 0, "CapBnd": 0, "CapAmb": 0, "NoNewPrivs": 1}
    if IS_ROOT and not contained and not can_drop_capabilities():
        pytest.skip("needs setpriv")
    if IS_ROOT or contained:
        assert values == none
    else:  # what an ordinary user could get from programs that change users, scripts can, too
        assert values == none | {name: values[name] for name in ("CapBnd", "NoNewPrivs")}


@pytest.mark.skipif(not IS_ROOT, reason="needs root")
def test_without_setpriv_scripts_run_as_the_owner_and_it_is_said(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "s.sh").write_text("id -u; id -g; id -G; grep CapEff /proc/self/status")
    os.chown(tmp_path / "ws", 12345, 12345)
    code = (
        "import sys\nfrom pathlib import Path\nfrom mlab_agent.workspaces import privileges\n"
        "privileges._PROGRAMS = '/nowhere'\n"
        "from mlab_agent.workspaces.local import LocalWorkspace\n"
        "workspace = LocalWorkspace(Path(sys.argv[1]))\n"
        "for _again in range(2): print(workspace.execute('s.sh', [], 20).stdout)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "ws")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["12345", "12345", "12345", "CapEff:", "0" * 16] * 2, done.stderr
    assert done.stderr.count("all of root's capabilities") == 1


FAKE_PROGRAMS = """\
for name in bwrap setpriv; do printf '#!/bin/sh\\necho fake > {out}\\n' > {bin}/$name; chmod 755 {bin}/$name; done
for name in libcap libcap-ng libselinux; do for n in 0 1 2; do echo broken > {bin}/$name.so.$n; done; done
"""


@EVERYWHERE
def test_no_program_or_library_of_a_script_starts_the_next_one(
    attack: Callable[[str], ScriptResult], tmp_path: Path, contained: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(contained, bool)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{tmp_path}/bin")
    attack(FAKE_PROGRAMS.format(bin=tmp_path / "bin", out=tmp_path / "out"))
    assert sorted(path.name for path in (tmp_path / "bin").glob("bwrap")) == ["bwrap"]
    done = attack('echo "$LD_LIBRARY_PATH"')
    assert done.stdout == f"{tmp_path}/bin\n", done
    assert not (tmp_path / "out").exists()


OPEN_KERNELS_FILES = """\
for file in /proc/sys/kernel/core_pattern /proc/sysrq-trigger /sys/kernel/uevent_helper; do
    [ -e $file ] && { : >> $file; } 2> /dev/null && echo opened $file
done
true
"""


@IN_BUBBLEWRAP
@pytest.mark.skipif(not IS_ROOT, reason="needs root")
def test_what_root_runs_next_cannot_be_changed(attack: Callable[[str], ScriptResult]) -> None:
    places = [path for path in ("/etc", "/usr/bin", "/bin", "/lib", "/boot", "/var/spool") if Path(path).is_dir()]
    done = attack(
        "".join(f"touch {path}/re-bench-attack && echo wrote {path}\n" for path in places) + OPEN_KERNELS_FILES
    )
    for path in places:
        (Path(path) / "re-bench-attack").unlink(missing_ok=True)
    assert done.stdout == ""
    assert done.stderr.count("Read-only file system") == len(places)


@IN_BUBBLEWRAP
@pytest.mark.skipif(not IS_ROOT, reason="needs root")
def test_a_workspace_in_a_directory_of_the_system_can_be_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, contained: bool
) -> None:
    (tmp_path / "src" / "ws").mkdir(parents=True)
    monkeypatch.setattr(bubblewrap, "_SYSTEM", (str(tmp_path),))
    workspace = LocalWorkspace(tmp_path / "src" / "ws", use_bubblewrap=contained)
    workspace.write("s.sh", "echo 1 > file; echo 2 > ../file || echo 3 > ../../file")
    assert workspace.execute("s.sh", [], 20).stderr.count("Read-only file system") == 2
    assert workspace.read("file") == "1\n"
    workspace.close()


@IN_BUBBLEWRAP
def test_a_link_in_the_place_of_a_socket_hides_nothing_else(
    attack: Callable[[str], ScriptResult], top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (top.parent / "other").mkdir()
    (top.parent / "other" / "file").write_text("there")
    (top / "link").symlink_to(top.parent / "other")
    monkeypatch.setattr(bubblewrap, "_CARRY_OUT_COMMANDS", (str(top / "link"),))
    assert attack("cat ../../other/file").stdout == "there"


UNMOUNT = """\
for way in "" "unshare -Um" "unshare -Urm"; do
    for path in truth.csv data/x /proc /dev; do $way umount -l $path && echo unmounted $path; done
    $way sh -c 'echo spoilt > truth.csv' && echo spoilt
done 2> /dev/null
ln truth.csv name && echo spoilt > name
mknod disk b 254 0 && echo made a device
for device in $(ls /dev); do [ -b /dev/$device ] && echo has the disk $device; done
for terminal in /dev/pts/[0-9]*; do [ -e $terminal ] && echo has the terminal $terminal; done
true
"""


@IN_BUBBLEWRAP
@pytest.mark.skipif(not shutil.which("unshare"), reason="needs unshare")
def test_nothing_can_be_unmounted_linked_or_read_from_the_disk(
    attack: Callable[[str], ScriptResult], top: Path
) -> None:
    done = attack(UNMOUNT)
    assert (done.stdout, done.notes) == ("", ())
    assert (top / "ws" / "truth.csv").read_text() == "truth"


SWAPS = {
    "the workspace": "cd ..; mv ws moved && mkdir ws && echo fake > ws/truth.csv",
    "a directory above it": "cd ../..; mv above moved && mkdir -p above/ws && echo fake > above/ws/truth.csv",
    "a directory above a file": "mv data moved && mkdir data && echo fake > data/x",
}


@EVERYWHERE
@pytest.mark.parametrize("swap", SWAPS.values(), ids=SWAPS)
def test_the_workspace_cannot_be_swapped(
    attack: Callable[[str], ScriptResult], workspace: LocalWorkspace, top: Path, contained: bool, swap: str
) -> None:
    done = attack(swap)
    assert (done.status, len(done.notes)) == ((1, 0) if contained else (0, 1)), done
    assert workspace.read("truth.csv") == workspace.read("data/x") == "truth"
    assert (top / "ws" / "truth.csv").read_text() == (top / "ws" / "data" / "x").read_text() == "truth"
    assert attack("ls").status == 0


def test_a_workspace_that_is_another_one_is_not_worked_in(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    workspace = LocalWorkspace(tmp_path / "ws")
    (tmp_path / "ws").rename(tmp_path / "moved")
    (tmp_path / "ws").mkdir()
    for operation in (lambda: workspace.write("a", "1"), lambda: workspace.list_directory(".")):
        with pytest.raises(WorkspaceError, match="is not the workspace any more"):
            operation()
    workspace.close()


HIDE_AWAY = """\
import os
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        code = "import os, time\\nopen('pid', 'w').write(str(os.getpid()))\\n{}"
        os.execve({!r}, ["python", "-c", code], {{}})
    os._exit(0)
os.wait()
while not os.path.exists("pid"):
    pass
"""
SPOIL_LATER = "while True: open('truth.csv', 'w').write('spoilt')"
FORK_AWAY = "while True:\\n os.setsid()\\n if os.fork(): os._exit(0)\\n if os.fork(): os._exit(0)"


@WITHOUT
@pytest.mark.parametrize("doing", [SPOIL_LATER, FORK_AWAY], ids=["spoils", "forks away"])
def test_what_hides_from_its_script_ends_with_it(
    attack: Callable[[str], ScriptResult], workspace: LocalWorkspace, top: Path, doing: str
) -> None:
    done = attack(HIDE_AWAY.format(doing, sys.executable))
    assert done.status == 0, done.stderr
    assert not processes_in(top / "ws")
    assert not [note for note in done.notes if "still running" in note]
    assert (top / "ws" / "truth.csv").read_text() == "truth"
    assert workspace.read("truth.csv") == "truth"


def processes_in(directory: Path) -> list[str]:
    pids = filter(str.isdigit, os.listdir("/proc"))  # noqa: PTH208
    return [pid for pid in pids if os.path.exists(f"/proc/{pid}/cwd") and Path(f"/proc/{pid}/cwd").samefile(directory)]  # noqa: PTH110


FLIP = """\
import ctypes, os, sys
os.chdir(sys.argv[1])
exchange = ctypes.CDLL(None).renameat2
while os.getppid() == int(sys.argv[2]):
    exchange(-100, b"data", -100, b"link", 2)
"""


@WITHOUT
def test_a_directory_that_becomes_a_link_while_it_is_looked_at(
    workspace: LocalWorkspace, top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (top / "ws" / "link").symlink_to("elsewhere")
    (top / "ws" / "data" / "s.sh").write_text("true")
    (top / "ws" / "way").symlink_to("data")
    read_link = os.readlink

    def too_late(path: str, **options: int) -> str:
        """Read a link that has just become a directory."""
        if path == str(top / "ws" / "way"):
            (top / "ws" / "way").unlink()
            (top / "ws" / "way").mkdir()
        return read_link(path, **options)

    with monkeypatch.context() as patched, contextlib.suppress(WorkspaceError):
        patched.setattr(os, "readlink", too_late)
        workspace.name("way/s.sh")
    assert not (top / "ws" / "way").is_symlink()
    with subprocess.Popen([sys.executable, "-S", "-c", FLIP, str(top / "ws"), str(os.getpid())]) as flipping:
        try:
            for _again in range(5):
                workspace.list_directory(".")
                workspace.files.scan(())
        finally:
            flipping.kill()


@IN_BUBBLEWRAP
def test_the_run_cannot_be_changed(attack: Callable[[str], ScriptResult], top: Path) -> None:
    trace = top.parent / "run" / "trace.jsonl"
    done = attack(f"echo forged > {trace}; rm -rf {trace.parent}; mv {trace.parent} moved; ln -s x {trace.parent}/link")
    assert done.status == 1
    assert trace.read_text() == "trace"
    assert [path.name for path in trace.parent.iterdir()] == ["trace.jsonl"]


@IN_BUBBLEWRAP
def test_no_other_program_can_be_told_to_run_commands(
    attack: Callable[[str], ScriptResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket may not be long
    monkeypatch.setenv("TMUX", f"{tmp_path}/multiplexer,1,0")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("multiplexer")
        server.listen()
        done = attack(
            f"import os, socket\nos.chdir({str(tmp_path)!r})\nsocket.socket(socket.AF_UNIX).connect('multiplexer')\n"
        )
    assert "ConnectionRefusedError" in done.stderr


@EVERYWHERE
def test_links_to_where_the_agent_writes_are_not_followed(
    attack: Callable[[str], ScriptResult], workspace: LocalWorkspace, top: Path
) -> None:
    target = top.parent / "kept"
    target.write_text("kept")
    attack(f"ln -s {target} ../.submission.txt.part; ln -s {target} ../submission.txt; ln -s {target} .mlab-agent/t")
    workspace.finish("42")
    with SafeDirectory(workspace.root) as directory:
        replace_file(directory, ".mlab-agent/t", b"43")
    assert (top / "submission.txt").read_text() == "42"
    assert target.read_text() == "kept"


def test_metrs_first_submission_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "submission.txt").symlink_to("target")
    write_first_submission(tmp_path / "submission.txt")
    assert not (tmp_path / "target").exists()


@EVERYWHERE
@pytest.mark.skipif(not IS_ROOT, reason="needs root")
def test_roots_scripts_run_as_the_owner_of_the_workspace(tmp_path: Path, contained: bool) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "ws").mkdir()
    os.chown(tmp_path / "ws", 12345, 12345)
    workspace = LocalWorkspace(tmp_path / "ws", use_bubblewrap=contained)
    workspace.write("sub/file", "1")
    workspace.write("s.sh", 'echo 2 >> sub/file; id -u; id -G; echo "$HOME"; cat /etc/shadow')
    assert workspace.execute("s.sh", [], 20).stdout.split() == ["12345", "12345", str(tmp_path / "ws")]
    assert workspace.read("sub/file") == "12\n"
    workspace.close()


@pytest.mark.skipif(not IS_ROOT or not shutil.which("unshare"), reason="needs root and unshare")
def test_the_same_as_an_ordinary_user(tmp_path: Path) -> None:
    user = ["unshare", "--user", "--map-user=12345", "--map-group=12345"]
    options = ["-q", "-rs", "-c", os.devnull, "--noconftest", "--basetemp", str(tmp_path / "user")]
    attacks = "(memory or capabilities or unmounted or swapped or changed or told) and not uncontained"
    command = [*user, sys.executable, "-m", "pytest", *options, "-k", attacks, __file__]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent)
    assert done.returncode == 0, done.stdout
    assert "bubblewrap does not work" not in done.stdout or not bubblewrap.is_available()
