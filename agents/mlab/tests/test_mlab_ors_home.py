"""A session of a real server as a home; skipped where the server is not installed."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
import urllib.request
from typing import TYPE_CHECKING

import pytest

from mlab_agent.homes import PRIVATE, HomeError, HomeLostError
from mlab_agent.homes.ors import OrsHome

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mlab_agent.homes import Home

TASK = "ai_rd_small_scaling_law"
ANSWER = '{"n_embd": 64, "max_iters": 8400, "loss_prediction": 1.7}'


@pytest.fixture(scope="module")
def shared(ors_url: str) -> Iterator[OrsHome]:
    home = OrsHome(ors_url, TASK)
    yield home
    home.close()


def test_files_and_the_task(shared: OrsHome) -> None:
    home: Home = shared
    assert home.root == "/home/agent"
    assert home.gives_scores
    assert "n_embd" in (home.instructions or "")
    assert "train.py" in [entry.name for entry in home.list(".")]
    awkward = "dir with 'quotes'/a \"b\" $(c) \u00e9\n.txt"
    home.write(awkward, "  leading and trailing space  \n\n")
    assert home.read(awkward) == "  leading and trailing space  \n\n"
    assert home.name(f"./{awkward}") == awkward
    assert [entry.name for entry in home.list("dir with 'quotes'")] == [awkward.partition("/")[2]]
    home.copy(awkward, "-copy")
    assert home.read("/home/agent/-copy") == "  leading and trailing space  \n\n"
    home.remove("-copy")
    assert not home.exists("-copy")
    with pytest.raises(HomeError, match="does not exist"):
        home.read("-copy")
    with pytest.raises(HomeError, match="is a directory, not a file"):
        home.write("dir with 'quotes'", "x")


def test_bytes_of_any_kind_and_length(shared: OrsHome) -> None:
    for length in (0, 1, 19_999, 20_000, 20_001, 900_000):
        data = random.Random(length).randbytes(length)
        shared.write_bytes("data.bin", data)
        assert shared.read_bytes("data.bin") == data
    shared.write("empty", "")
    assert shared.read("empty") == ""


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "/home/agent_evil", "out/passwd", "", "a\0b", "/"])
def test_nothing_out_of_the_workspace_can_be_named(shared: OrsHome, path: str) -> None:
    shared.link("out", "/etc")
    for attempt in (shared.read, shared.list, lambda each: shared.write(each, "x"), shared.remove):
        with pytest.raises(HomeError, match=r"leads out of|is empty|NUL"):
            attempt(path)
    shared.delete("out")


def test_scripts(shared: OrsHome) -> None:
    shared.write("s.py", "import sys\nprint(sys.argv[1:])\nprint('  e', file=sys.stderr)\nsys.exit(3)\n")
    done = shared.execute("s.py", ["x y", "$HOME", "'"], 30)
    assert (done.stdout, done.stderr, done.status, done.timed_out) == ("['x y', '$HOME', \"'\"]\n", "  e\n", 3, False)
    shared.write("t.sh", "echo begun\nsetsid sh -c 'sleep 2; touch late' &\nsleep 60\n")
    done = shared.execute("t.sh", [], 1)
    assert (done.stdout, done.status, done.timed_out) == ("begun\n", None, True)
    shared.write("k.sh", "kill -9 $$\n")
    assert shared.execute("k.sh", [], 30).status == -9
    shared.write("r.sh", "echo before; rm -r .mlab-agent; echo after\n")
    assert shared.execute("r.sh", [], 30).status == 0
    shared.write("l.py", "for number in range(20000): print('line', number)\n")
    done = shared.execute("l.py", [], 30)
    assert done.stdout.startswith("line 0\n")
    assert done.stdout.endswith("line 19999\n")
    assert "bytes left out" in done.stdout
    assert done.whole
    assert "line 10000\n" in shared.read(done.whole)
    time.sleep(1.5)
    assert not shared.exists("late")
    with pytest.raises(HomeError, match="neither a Python file"):
        shared.execute("train.py/../profile.json", [], 5)


def test_a_snapshot_goes_back_also_into_another_session(shared: OrsHome, ors_url: str, tmp_path: Path) -> None:
    shared.write("mine/run.sh", "echo 1\n")
    shared.put("mine/run.sh", b"echo 1\n", 0o755)
    shared.link("mine/link", "run.sh")
    name = shared.snapshot(tmp_path)
    size = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert shared.snapshot(tmp_path) == name
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) == size
    shared.write("mine/run.sh", "echo 2\n")
    shared.write("extra/x", "x")
    shared.remove("train.py")
    shared.restore(tmp_path, name)
    assert shared.read("mine/link") == "echo 1\n"
    assert not shared.exists("extra")
    assert shared.exists("train.py")
    other = OrsHome(ors_url, TASK)
    other.write("extra", "x")
    other.restore(tmp_path, name)
    assert other.execute("mine/run.sh", [], 10).stdout == "1\n"
    assert not other.exists("extra")
    assert other.snapshot(tmp_path) == name
    other.close()


def test_read_only_files_stay_so(ors_url: str, tmp_path: Path) -> None:
    home = OrsHome(ors_url, TASK, read_only=["profile.json", "data"], state=tmp_path)
    before = home.read("profile.json")
    home.link("alias", "profile.json")
    for path in ("profile.json", "./profile.json", "alias", "data/../profile.json", "data/new", f"{PRIVATE}/x"):
        with pytest.raises(HomeError, match="is read-only"):
            home.write(path, "no")
    home.write("spoil.sh", "echo spoilt > profile.json\nrm -r data\n")
    notes = home.execute("spoil.sh", [], 30).notes
    assert "The script changed the read-only file profile.json; it was put back." in notes
    assert home.read("profile.json") == before
    home.close()


def test_scores_rise_and_the_answer_ends_the_episode(ors_url: str) -> None:
    home = OrsHome(ors_url, TASK)
    assert "Attempt 1: valid" in (home.score() or "")
    home.write("answer.json", ANSWER)
    home.finish("done")
    home.finish("done")
    assert home.finished
    assert home.rewards[0] == pytest.approx(0, abs=0.01)
    assert home.rewards[1] > 0.4
    assert "The episode has ended." in home.final_text
    with pytest.raises(HomeError):
        home.score()
    home.close()


def test_a_killed_process_leaves_a_session_that_is_joined_again(ors_url: str, tmp_path: Path) -> None:
    program = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom mlab_agent.homes.ors import OrsHome\n"
        f"home = OrsHome({ors_url!r}, {TASK!r}, state=Path({str(tmp_path)!r}))\n"
        "home.write('left.txt', 'here')\nhome.score()\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -signal.SIGKILL
    kept = tmp_path / "session.json"
    assert kept.stat().st_mode & 0o077 == 0
    home = OrsHome(ors_url, TASK, state=tmp_path)
    assert home.joined
    assert home.read("left.txt") == "here"
    assert "Attempt 2: valid" in (home.score() or "")
    home.close()
    assert not kept.exists()
    kept.write_text(json.dumps({"url": ors_url, "task": TASK, "environment": "rebench", "sid": "gone"}))
    home = OrsHome(ors_url, TASK, state=tmp_path)
    assert not home.joined
    assert not home.exists("left.txt")
    home.close()


def test_what_is_wrong_is_said(ors_url: str) -> None:
    with pytest.raises(HomeError, match="has no task 'ai_rd_none'; it has: ai_rd_"):
        OrsHome(ors_url, "ai_rd_none")
    with pytest.raises(HomeError, match="there is no session at http"):
        OrsHome("http://127.0.0.1:9", TASK)


def test_a_session_that_is_gone_is_an_observation(ors_url: str) -> None:
    home = OrsHome(ors_url, TASK)
    sid = home._session._session.sid
    headers = {"X-Session-ID": sid, "Content-Type": "application/json"}
    request = urllib.request.Request(f"{ors_url}/delete", b"{}", headers)  # noqa: S310 - http
    urllib.request.urlopen(request, timeout=30).close()  # noqa: S310 - http
    for _again in range(2):
        with pytest.raises(HomeLostError, match="is lost"):
            home.read("train.py")
    home.close()
