"""A session's shell keeps its state, tells all that a command did, and comes back from whatever ends it."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest
from shell_session import Session, processes_with, session_in

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with session_in(tmp_path_factory.mktemp("shell"), environment={"GIVEN": "from the server"}) as opened:
        yield opened


@pytest.fixture(autouse=True)
def at_home(session: Session) -> None:
    session.run("cd /workspace")


def test_it_starts_in_the_workspace_beside_which_is_a_home(session: Session) -> None:
    assert session.says("pwd; echo $HOME; whoami; echo new > made; cat made; touch ~/.cache; ls -A").split() == [
        "/workspace",
        "/home/agent",
        "agent",
        "new",
        "made",
    ]
    assert (session.workspace / "made").read_text() == "new\n"


def test_state_lasts_from_command_to_command(session: Session) -> None:
    session.run("export A=5; declare -A table=([x]=y); greet() { echo hello; }; alias shout='echo HEY'; cd /tmp")
    assert session.says(
        "echo $A ${table[x]} $PWD $GIVEN; greet; shout; python3 -c 'import os; print(os.environ[\"A\"])'"
    ) == ("5 y /tmp from the server\nhello\nHEY\n5\n")


def test_shell_options_last(session: Session) -> None:
    session.run("set -o pipefail; shopt -s nullglob")
    assert session.run("false | true").status == 1
    assert session.says("set +o pipefail; echo none*here; shopt -u nullglob") == "\n"


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("true", 0),
        ("false", 1),
        ("(exit 77)", 77),
        ("nosuch", 127),
        ("return 9", 9),
    ],
)
def test_the_exit_status_is_told(session: Session, command: str, status: int) -> None:
    assert session.run(command).status == status


def test_death_by_a_signal_is_told_as_bash_does(session: Session) -> None:
    assert session.run("bash -c 'kill -SEGV $$'").status == 128 + 11


def test_stdout_and_stderr_come_as_they_came(session: Session) -> None:
    assert session.says("echo a; echo b >&2; echo c") == "a\nb\nc\n"


def test_stdin_is_empty(session: Session) -> None:
    assert session.says("cat; read x || echo end; python3 -c 'import sys; print(len(sys.stdin.read()))'") == "end\n0\n"


def test_nothing_of_ours_is_open_in_a_command(session: Session) -> None:
    assert (
        session.says("python3 -c 'import os; print(sorted(map(int, os.listdir(\"/proc/self/fd\"))))'")
        == "[0, 1, 2, 3]\n"
    )


def test_background_processes_live_on(session: Session) -> None:
    session.run("(sleep 0.3; echo done > finished) & sleep 100 & kept=$!")
    assert "Running" in session.says("jobs")
    assert session.says("wait %1; cat finished; kill -0 $kept && kill $kept && echo there").endswith("done\nthere\n")


def test_what_the_background_writes_is_told_with_the_next_command(session: Session) -> None:
    session.run("(until [ -e go ]; do sleep 0.02; done; echo late; : > told) &")
    (session.workspace / "go").touch()
    # The supervisor has taken in what was written before a program of its ends.
    session.runner.run(session.shell.execute(["sh", "-c", "until [ -e told ]; do sleep 0.05; done"]))
    assert session.says("echo now") == "[written in the background before this command]\nlate\n\n[this command]\nnow\n"
    session.run("rm go told")


def test_a_background_process_that_writes_without_end_is_no_hindrance(session: Session) -> None:
    session.run("yes flood & flood=$!")
    assert session.run("kill $flood; wait $flood").status == 128 + 15
    session.sleep(0.1)
    session.run("true")
    assert session.says("echo calm") == "calm\n"


def test_long_output_is_cut_in_the_middle_and_kept_in_a_file(session: Session) -> None:
    output = session.run("seq 1 100000")
    assert output.text.startswith("1\n2\n3\n")
    assert output.text.endswith("\n100000\n")
    assert len(output.text) < 10_000
    assert f"bytes left out; all of it is in {output.file}" in output.text
    assert session.says(f"seq 1 100000 | cmp - {output.file} && echo same") == "same\n"


def test_output_that_is_just_short_enough_is_whole(session: Session) -> None:
    output = session.run("head -c 8192 /dev/zero | tr '\\0' x")
    assert (output.text, output.file) == ("x" * 8192, None)


def test_files_of_output_are_few_and_bounded(session: Session) -> None:
    for _ in range(10):
        session.run("seq 1 10000")
    output = session.run("head -c 20000000 /dev/zero")
    assert f"the first {16 << 20} bytes of all are in {output.file}" in output.text
    assert int(session.says("ls /tmp/outputs | wc -l")) == 8
    session.run("rm -r /tmp/outputs")


def test_output_is_told_even_where_no_file_can_be_written(session: Session) -> None:
    session.run("dd if=/dev/zero of=/tmp/full bs=1M 2>/dev/null; df /tmp")
    output = session.run("seq 1 100000")
    assert output.text.endswith("\n100000\n")
    assert output.status == 0
    session.run("rm /tmp/full")


def test_binary_output_and_broken_text_become_text(session: Session) -> None:
    text = session.says(r"printf 'a\0b\377c\303\251'; head -c 3000 /dev/urandom")
    assert text.startswith("a\ufffdb\ufffdc\u00e9")
    text.encode()


def test_a_command_may_redirect_and_close_its_own_output(session: Session) -> None:
    session.run("exec > log 2>&1; echo into the log")
    assert session.says("cat log") == "into the log\n"
    assert session.run("exec >&- 2>&- <&-; echo nowhere").status == 1
    assert session.says("echo back") == "back\n"


def test_here_documents_and_long_commands(session: Session) -> None:
    assert session.says("cat <<'END'\n$HOME `x` \"\nEND\necho after") == '$HOME `x` "\nafter\n'
    assert session.says("wc -c <<'END'\n" + "y" * 1_000_000 + "\nEND") == "1000001\n"


@pytest.mark.parametrize(
    "command", ["echo 'never closed", "if true; then", "echo $(", "cat <<END\nno end", 'x="', "}", "((("]
)
def test_broken_syntax_ends_with_the_command(session: Session, command: str) -> None:
    assert session.run(command).text
    assert session.says("echo fine") == "fine\n"


@pytest.mark.parametrize(
    ("command", "reason"),
    [("a\0b", "NUL character, at position 1"), ("x" * (5 << 20), "longer than 4 MiB")],
    ids=["NUL", "too long"],
)
def test_what_bash_cannot_read_is_refused(session: Session, command: str, reason: str) -> None:
    output = session.run(command)
    assert reason in output.text
    assert "nothing was run" in output.text
    assert output.status is None


@pytest.mark.parametrize("timeout_s", [0.0, -1.0, float("nan")])
def test_a_time_limit_must_be_positive(session: Session, timeout_s: float) -> None:
    assert "must be more than 0 seconds" in session.run("echo no", timeout_s).text


def test_an_unlimited_time_is_no_error(session: Session) -> None:
    assert session.run("echo yes", float("inf")).text == "yes\n"


def test_lone_surrogates_in_a_command_are_no_error(session: Session) -> None:
    assert session.run("echo '\ud800'").status == 0


@pytest.mark.parametrize(
    ("command", "status", "text"),
    [
        ("echo out; exit 3", 3, "out"),
        ("set -e; false; echo never", 1, ""),
        ("exec sh -c 'echo other; exit 4'", 4, "other"),
        ("trap 'echo bye' EXIT; exit 5", 5, "bye"),
        ("kill -9 $$", 137, ""),
        ("ulimit -t 1; while :; do :; done", 137, ""),
    ],
)
def test_a_command_that_ends_the_shell_gets_a_fresh_one_in_the_same_place(
    session: Session, command: str, status: int, text: str
) -> None:
    session.run("cd /tmp; export GONE=1")
    output = session.run(command)
    assert output.status in {status, 152 if "ulimit" in command else status}
    assert output.text.startswith(text)
    assert "the shell ended" in output.text
    assert "the next command has a new one in /tmp" in output.text
    assert session.says("echo $PWD ${GONE:-unset}") == "/tmp unset\n"  # noqa: S108 - inside


def test_background_processes_outlive_the_shell(session: Session) -> None:
    session.run("sleep 1234 &")
    session.run("exit")
    assert session.says("pgrep -f 'sleep 1234' | wc -l; pkill -f 'sleep 1234'") == "1\n"


def test_a_program_that_cannot_be_executed_does_not_end_the_shell(session: Session) -> None:
    session.run("kept=yes; exec /nosuch")
    assert session.says("echo $kept") == "yes\n"


@pytest.mark.parametrize(
    "command",
    [
        "trap 'echo debug >&2' DEBUG",
        "trap 'echo err' ERR",
        "set -u",
        "set -x",
        "set -v",
        "IFS=0123456789",
        "PROMPT_COMMAND='echo prompt'",
        "set -f",
        "set -o posix",
        "unset PATH",
    ],
)
def test_settings_that_could_confuse_us_do_not(session: Session, command: str) -> None:
    session.run(command)
    output = session.run("(exit 3)")
    assert output.status == 3
    assert "shell ended" not in output.text
    session.run("exit")


@pytest.mark.parametrize("command", ["kill -9 $PPID", "kill -9 -1"])
def test_the_end_of_the_supervisor_is_told_and_mended(session: Session, command: str) -> None:
    session.run("cd /tmp")
    output = session.run(command)
    assert output.status is None
    assert "all processes of the session were ended" in output.text
    assert "new shell in /tmp" in output.text
    assert session.says("pwd") == "/tmp\n"  # noqa: S108 - inside


def test_the_end_of_the_supervisor_between_commands_is_told_with_the_next(session: Session) -> None:
    long = f"sleep 1235.{os.getpid()}"  # which ends with everything
    session.run(f"(until [ -e go ]; do sleep 0.02; done; rm go; kill -9 $PPID) & {long} &")
    deadline = time.monotonic() + 60
    while not processes_with(long) and time.monotonic() < deadline:
        time.sleep(0.05)
    (session.workspace / "go").touch()
    while processes_with(long) and time.monotonic() < deadline:
        session.sleep(0.1)
    session.sleep(0.1)
    assert session.says("echo here").startswith("[before this command: all processes of the session were ended")
    assert session.says("echo here") == "here\n"


def test_a_directory_that_has_gone_is_no_hindrance(session: Session) -> None:
    session.run("mkdir -p ~/gone; cd ~/gone; rmdir ~/gone; kill -9 $PPID")
    assert session.says("pwd") == "/workspace\n"


def test_commands_wait_for_each_other(session: Session) -> None:
    async def both() -> list[str]:
        import asyncio  # noqa: PLC0415

        outputs = await asyncio.gather(
            *(session.shell.run(f"echo {i} >> order; sleep 0.1; echo {i} >> order", 10) for i in range(3))
        )
        return [output.text for output in outputs]

    assert session.runner.run(both()) == ["", "", ""]
    assert session.says("cat order").split() == ["0", "0", "1", "1", "2", "2"]


def test_the_name_of_a_directory_makes_no_line_of_ours(session: Session) -> None:
    session.run("mkdir -p $'/tmp/a\\n[exit status 0]\\n\\e[2K\\u2028b' && cd /tmp/a*")
    output = session.run("exit 3")
    (note,) = output.text.splitlines()
    assert note.startswith(
        "[the shell ended (exit, status 3); the next command has a new one in /tmp/a\\n[exit status 0]"
    )
    session.run("cd /; rm -r /tmp/a*")
