"""Checks of what can be read, written and left in files."""

from __future__ import annotations

import ctypes
import hashlib
import os
import stat
import sys
import tempfile
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.sandbox.conformance.attack import Check, attack, fail_if, register, spec_showing, token
from re_bench.sandbox.spec import python_directories

if TYPE_CHECKING:
    from re_bench.sandbox.spec import Backend, SandboxSpec

CHECKS: dict[str, Check] = {}
check = register(CHECKS)

_MACHINE = ("/etc/shadow", "/etc/machine-id", "/etc/hostname", "/run/utmp", "/var/log/dpkg.log", "/proc/1/environ")


def _digests(paths: list[str]) -> dict[str, str]:
    """Attack: return a hash of the start of every file that can be read."""
    digests = {}
    for path in paths:
        with suppress(OSError), Path(path).open("rb") as file:
            digests[path] = hashlib.sha256(file.read(65536)).hexdigest()
    return digests


def _walk(word: str, shown: str, *tops: str) -> list[str]:
    """Attack: return paths with ``word`` in them, but for ``shown``, without looking where there are only programs.

    It looks below ``tops`` first, and at the root, which need not be listed.
    """
    paths: list[str] = []
    for directory, inner, names in islice(chain.from_iterable(map(os.walk, (*tops, "/"))), 20_000):
        inner[:] = [name for name in inner if directory != "/" or name not in {"proc", "sys", "usr"}]
        paths += [f"{directory}/{name}" for name in (*inner, *names) if word in name and directory != shown]
        if paths:
            break
    return paths


@check
def reading_outside(backend: Backend, scratch: Path) -> None:
    """Neither temporary files of others, the home, this program nor the machine's secrets can be read or found."""
    word = token()
    with ExitStack() as stack:
        hidden = [str(path) for path in _MACHINE if not path.startswith("/proc")]
        for parent in (scratch, Path(tempfile.gettempdir()), Path.home(), Path.cwd(), Path("/dev/shm")):  # noqa: S108
            with suppress(OSError):
                made = stack.enter_context(tempfile.TemporaryDirectory(prefix=".re-bench-", suffix=word, dir=parent))
                Path(made, "notes").write_text(word, encoding="ascii")
                hidden.append(f"{made}/notes")
        ours = Path(__file__)
        if not any(ours.is_relative_to(directory) for directory in (Path("/usr"), *python_directories())):
            hidden.append(str(ours))
        outside, inside = _digests(hidden), attack(backend, _digests, hidden)
        fail_if([f"{path} can be read" for path in outside if inside.get(path) == outside[path]])
        tops = (str(scratch), tempfile.gettempdir(), "/dev/shm")  # noqa: S108
        fail_if([f"{path} can be found" for path in attack(backend, _walk, word, "", *tops)])


def _spoil(directory: str) -> bool:
    """Attack: change a directory and its file ``file`` in every way there is."""
    path = Path(directory, "file")
    for spoil in (
        lambda: path.chmod(0o777),
        lambda: os.truncate(path, 0),
        lambda: os.open(path, os.O_TRUNC | os.O_ACCMODE),
        lambda: os.open(path, os.O_TRUNC),
        lambda: path.write_text("spoiled", encoding="ascii"),
        lambda: os.utime(path, (1, 1)),
        lambda: os.link(path, path.with_name("link")),
        lambda: os.setxattr(path, "user.spoiled", b"1"),
        lambda: path.rename(path.with_name("renamed")),
        lambda: Path(directory, "renamed").unlink(),
        path.unlink,
        lambda: Path(directory).rename(f"{directory}-renamed"),
        lambda: Path(directory).chmod(0o700),
    ):
        with suppress(OSError):
            spoil()
    return True


@check
def changing_what_is_shown(backend: Backend, scratch: Path) -> None:
    """A file that is only shown keeps its content, mode, times, names and links."""
    _check_unchanged(backend, scratch / "shown", spec_showing(read=scratch / "shown"))


@check
def changing_what_is_outside(backend: Backend, scratch: Path) -> None:
    """A file that is not shown keeps all that, where everybody may write it too."""
    outside = scratch / "outside"
    outside.mkdir()
    outside.chmod(0o777)
    _check_unchanged(backend, outside, spec_showing())


def _check_unchanged(backend: Backend, directory: Path, spec: SandboxSpec) -> None:
    path = directory / "file"
    path.write_text("as it was", encoding="ascii")
    path.chmod(0o666)
    before = path.stat()
    attack(backend, _spoil, str(directory), spec=spec)
    fail_if([] if path.is_file() else "the file is gone")
    after = path.stat()
    for what in ("st_mode", "st_size", "st_mtime_ns", "st_nlink", "st_ctime_ns"):
        fail_if([] if getattr(before, what) == getattr(after, what) else f"the {what} of the file changed")


def _exist(paths: list[str]) -> list[str]:
    """Attack: ask of every file whether it is there."""
    return [f"{path} can be told to exist" for path in paths if Path(path).exists()]


@check
def existence_of_files(backend: Backend, scratch: Path) -> None:
    """Whether a file is there that is not shown cannot be told, even with its name."""
    path = scratch / "outside"
    path.write_text("secret", encoding="ascii")
    fail_if(attack(backend, _exist, [str(path), "/etc/hostname"]))


def _watch(directory: str) -> list[str]:
    """Attack: have the kernel tell what others do with a directory."""
    libc = ctypes.CDLL(None, use_errno=True)
    watched = libc.inotify_add_watch(libc.inotify_init(), os.fsencode(directory), 0xFFF) >= 0  # IN_ALL_EVENTS
    return ["the use of files outside can be watched"] if watched else []


@check
def watching_what_is_outside(backend: Backend, scratch: Path) -> None:
    """The kernel does not tell of what is done with files that are not shown."""
    fail_if(attack(backend, _watch, str(scratch)))


def _make(paths: list[str]) -> bool:
    """Attack: make every file."""
    for path in paths:
        with suppress(OSError):
            Path(path).write_text("made", encoding="ascii")
    return True


@check
def hidden_directories(backend: Backend, scratch: Path) -> None:
    """What lies in a hidden directory within a shown one is neither read nor written, but for what is named."""
    word = token()
    spec, secret, named = _hiding(scratch / "shown", word)
    paths = [f"{directory}/{word}" for directory in (secret, named)]
    got = attack(backend, _digests, paths, spec=spec)
    fail_if([f"{paths[0]} can be read"] if paths[0] in got else [])
    fail_if([] if paths[1] in got else [f"{paths[1]}, which is shown, cannot be read"])
    made = attack(backend, _make_and_count, [f"{secret.parent}/{word}", f"{named}/{word}-made"], spec=spec)
    fail_if("files can be made beside what is shown" if made else "")


@check
def names_in_hidden_directories(backend: Backend, scratch: Path) -> None:
    """The names of files in a hidden directory within a shown one cannot be listed."""
    word = token()
    spec, _secret, named = _hiding(scratch / "shown", word)
    paths_seen = attack(backend, _walk, word, str(named), str(scratch / "shown"), spec=spec)
    fail_if([f"{path} can be found" for path in paths_seen])


def _hiding(shown: Path, word: str) -> tuple[SandboxSpec, Path, Path]:
    """Return a spec that hides ``shown/package``, a directory in that, and another one that is shown all the same."""
    spec = spec_showing(read=shown)
    secret, named = shown / "package" / "reference", shown / "package" / "named"
    for directory in (secret, named):
        directory.mkdir(parents=True)
        (directory / word).write_text(word, encoding="ascii")
    return replace(spec, read_only={str(named): named, **spec.read_only}, hidden=[shown / "package"]), secret, named


def _make_and_count(paths: list[str]) -> int:
    """Attack: make every file, and return how many are there."""
    _make(paths)
    return sum(Path(path).exists() for path in paths)


@check
def writing_outside(backend: Backend, scratch: Path) -> None:
    """No file appears in any directory of the machine."""
    system = ("/", "/usr", "/usr/bin", "/usr/local/lib", "/etc", "/var/tmp", "/tmp", "/dev", "/dev/shm", "/run")  # noqa: S108
    places = [*system, str(Path.home()), sys.prefix, str(scratch), str(Path(__file__).parent)]
    paths = [f"{directory}/{token()}" for directory in places]
    attack(backend, _make, paths)
    made = [path for path in paths if Path(path).exists()]
    for path in made:
        Path(path).unlink()
    fail_if([f"{path} was written" for path in made])


def _follow(directory: str, secret: str) -> list[str]:
    """Attack: reach ``secret`` by the links in ``directory``, by links of its own, and by climbing."""
    with suppress(OSError):
        Path(directory, "mine").symlink_to(secret)
    up = "/".join([".."] * 12)
    ways = [f"{directory}/absolute", f"{directory}/relative", f"{directory}/mine", f"{directory}/{up}{secret}"]
    ways += [f"/proc/self/root{secret}", f"/proc/self/cwd/{up}{secret}", f"{directory}/folder/{Path(secret).name}"]
    got = []
    for way in ways:
        for flags in (os.O_RDONLY, os.O_WRONLY | os.O_APPEND):
            with suppress(OSError):
                os.close(os.open(way, flags))
                got.append(f"{way} opens")
    return got


@check
def symbolic_links(backend: Backend, scratch: Path) -> None:
    """A link in a writable directory that leads out of it leads nowhere."""
    secret = scratch / "outside" / "secret"
    secret.parent.mkdir()
    secret.write_text("secret", encoding="ascii")
    secret.chmod(0o666)
    work = scratch / "work"
    spec = spec_showing(write=work)
    (work / "absolute").symlink_to(secret)
    (work / "relative").symlink_to("../outside/secret")
    (work / "folder").symlink_to(secret.parent)
    fail_if(attack(backend, _follow, str(work), str(secret), spec=spec))


def _link(directory: str, targets: list[str]) -> list[str]:
    """Attack: give every file a second name in ``directory``, and move it there."""
    got = []
    for number, target in enumerate(targets):
        for verb in (os.link, os.rename):
            with suppress(OSError):
                verb(target, f"{directory}/{verb.__name__}{number}")
                got.append(f"{verb.__name__} of {target} into a writable directory")
    return got


@check
def hard_links(backend: Backend, scratch: Path) -> None:
    """A file that is only shown, or hidden, cannot get a name in a writable directory."""
    spec = spec_showing(read=scratch / "shown", write=scratch / "work")
    targets = [scratch / "shown" / "file", scratch / "hidden"]
    for path in targets:
        path.write_text("text", encoding="ascii")
        path.chmod(0o666)
    fail_if(attack(backend, _link, str(scratch / "work"), [str(path) for path in targets], spec=spec))
    fail_if([f"{path.name} has a second name" for path in targets if path.stat().st_nlink != 1])


def _lend(directory: str) -> bool:
    """Attack: leave programs that run as their owner or group."""
    shell = Path("/bin/sh").read_bytes()[:65536]
    for number, way in enumerate(("chmod", "open", "fchmod")):
        for mode in (0o4755, 0o2755):
            with suppress(OSError):
                path = f"{directory}/{way}{number}{mode:o}"
                descriptor = os.open(path, os.O_CREAT | os.O_WRONLY, mode if way == "open" else 0o755)
                if way == "chmod":
                    Path(path).chmod(mode)
                elif way == "fchmod":
                    os.fchmod(descriptor, mode)
                elif os.fstat(descriptor).st_mode & 0o6000 == 0:
                    os.write(descriptor, shell)
    return True


@check
def files_that_run_as_their_owner(backend: Backend, scratch: Path) -> None:
    """No set-user-id or set-group-id file stays in a writable directory, where others could run it."""
    work = scratch / "work"
    attack(backend, _lend, str(work), spec=spec_showing(write=work))
    made = [path for path in work.iterdir() if path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID)]
    fail_if([f"{path.name} was left with mode {stat.filemode(path.stat().st_mode)}" for path in made])


def _make_devices(directories: list[str]) -> list[str]:
    """Attack: make the devices for memory and for the first disk."""
    got = []
    for directory in directories:
        for kind, device in ((stat.S_IFCHR, (1, 1)), (stat.S_IFBLK, (254, 0)), (stat.S_IFBLK, (8, 0))):
            path = f"{directory}/device{kind}{device[0]}"
            with suppress(OSError):
                os.mknod(path, kind | 0o666, os.makedev(*device))
                Path(path).unlink()
                got.append(f"device {device} can be made in {directory}")
    return got


@check
def device_files(backend: Backend, scratch: Path) -> None:
    """No device file can be made."""
    work = scratch / "work"
    fail_if(attack(backend, _make_devices, [str(work), "/tmp"], spec=spec_showing(write=work)))  # noqa: S108


_NAMES = ["new\nline", "\u00fc\u4e2d\U0001f600", "-rf", " ", "\udcff\udcfe", "a" * 255]


def _make_names(directory: str, names: list[str]) -> int:
    """Attack: make a file of each name."""
    for name in names:
        Path(directory, name).write_bytes(os.fsencode(name))
    return len(os.listdir(directory))  # noqa: PTH208


@check
def odd_names(backend: Backend, scratch: Path) -> None:
    """File names of any bytes come out of a writable directory as they were made."""
    work = scratch / "work"
    spec = spec_showing(write=work)
    attack(backend, _make_names, str(work), _NAMES, spec=spec)
    made = {path.name: path.read_bytes() for path in work.iterdir()}
    fail_if([f"a file named {name!a} is missing" for name in _NAMES if made.get(name) != os.fsencode(name)])


@check
def temporary_files(backend: Backend, scratch: Path) -> None:
    """``/tmp`` and ``/dev/shm`` of one sandbox are seen neither by the next one nor outside."""
    del scratch
    paths = [f"{directory}/{token()}" for directory in ("/tmp", "/dev/shm")]  # noqa: S108
    attack(backend, _make, paths)
    later = attack(backend, _digests, paths)
    outside = [path for path in paths if Path(path).exists()]
    for path in outside:
        Path(path).unlink()
    fail_if([f"{path} is seen by the next sandbox" for path in later] + [f"{path} is seen outside" for path in outside])
