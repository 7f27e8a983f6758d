"""The judge: verdicts, what is told, the cache, and many programs at a time, with real programs in the real sandbox."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from re_bench.errors import UsageError
from re_bench.processes import StoppedError, request_stop
from re_bench.sandbox import open_backend
from rust_codecontests.judge import Judge, Judgement, Limits, Test, Verdict, compiler, toolchain
from rust_codecontests.judge.verdicts import first_difference

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration

LIMITS = Limits(time_s=1.0, memory_mib=256)
DOUBLE = """
use std::io::Read;
fn main() {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).unwrap();
    for word in text.split_whitespace() {
        println!("{}", 2 * word.parse::<i32>().unwrap());
    }
}
"""
TESTS = [Test("1 2", "2 4"), Test("3", "6"), Test("-5 5", "-10\n10\n")]

MANY_FAULTS = """
use std::io::Write;
fn deep(n: u64) -> u64 { let big = [n; 100]; if n == 0 { 0 } else { deep(n - 1) + std::hint::black_box(&big)[7] } }
fn main() {
    let mut what = String::new();
    std::io::stdin().read_line(&mut what).unwrap();
    let mut out = std::io::stdout();
    match what.trim() {
        "panic" => panic!("no way"),
        "code" => std::process::exit(3),
        "nothing" => std::process::exit(0),
        "stack" => println!("{}", deep(u64::MAX)),
        "spin" => { let mut n = 0u64; loop { n = std::hint::black_box(n + 1); } }
        "threads" => {
            for _ in 0..2 { std::thread::spawn(|| loop { std::hint::black_box(1); }); }
            std::thread::park();
        }
        "sleep" => std::thread::sleep(std::time::Duration::from_secs(100)),
        "flood" => loop { let _ = out.write_all(&[b'1'; 4096]); },
        "complain" => loop { eprintln!("oh no"); },
        "reserve" => { let v = vec![0u8; 2 << 30]; println!("{}", v[what.len()]); }
        "grow" => { let mut v = vec![]; loop { v.push(vec![v.len(); 1000]); } }
        "bytes" => out.write_all(b"\\xff\\xfe ok").unwrap(),
        "long" => println!("{}", "9".repeat(1000)),
        "big" => println!("{}", "7 ".repeat(1_000_000)),
        other => println!("{other}"),
    }
}
"""


def fault(judge: Judge, what: str, limits: Limits = LIMITS, output: str = "1") -> Judgement:
    """Judge the program that does ``what`` on a public test."""
    return judge.judge(MANY_FAULTS, [Test(what, output)], limits, public=1)


def test_a_right_program_is_accepted_and_a_wrong_answer_to_a_public_test_is_explained(judge: Judge) -> None:
    judgement = judge.judge(DOUBLE, TESTS, LIMITS)
    assert (judgement.verdict, judgement.test, judgement.message) == (Verdict.ACCEPTED, None, "accepted")
    assert judgement.tests_passed == 3
    assert 0 < judgement.cpu_s < judgement.seconds
    judgement = judge.judge(DOUBLE, [TESTS[0], Test("1 2 3", "2 4 7"), TESTS[0]], LIMITS, public=2)
    assert (judgement.verdict, judgement.test, judgement.tests_passed) == (Verdict.WRONG_ANSWER, 1, 1)
    assert judgement.message == 'wrong answer on test 2: token 3 is "6", expected "7"'


@pytest.mark.parametrize(
    ("text", "output", "verdict"), [("1 2 3", "2 4 7", "wrong answer"), ("x", "", "runtime error")]
)
def test_of_a_hidden_test_only_verdict_and_number_are_told(judge: Judge, text: str, output: str, verdict: str) -> None:
    judgement = judge.judge(DOUBLE, [TESTS[0], Test(text, output)], LIMITS, public=1)
    assert judgement.message == f"{verdict} on test 2"


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("panic", "exit status 101; the end of its stderr:\n"),
        ("code", "exit status 3"),
        ("stack", "signal 6"),
        ("flood", "it wrote more than 4096 KiB"),
        ("complain", "it wrote more than 4096 KiB"),
    ],
)
def test_runtime_errors(judge: Judge, what: str, reason: str) -> None:
    judgement = fault(judge, what)
    assert judgement.verdict is Verdict.RUNTIME_ERROR
    assert judgement.message.startswith(f"runtime error on test 1: {reason}")
    assert len(judgement.message) < 700


@pytest.mark.parametrize("what", ["reserve", "grow"])
def test_memory_that_cannot_be_had_is_a_memory_limit(judge: Judge, what: str) -> None:
    judgement = fault(judge, what)
    assert judgement.verdict is Verdict.MEMORY_LIMIT
    assert judgement.message == "memory limit on test 1: it needed more than 256 MiB of memory"


@pytest.mark.parametrize("what", ["spin", "threads"])
def test_the_cpu_time_of_all_threads_decides_on_the_time_limit(judge: Judge, what: str) -> None:
    judgement = fault(judge, what)
    assert judgement.verdict is Verdict.TIME_LIMIT
    assert judgement.message == "time limit on test 1: it used more than 1 s of CPU time"
    assert 1 <= judgement.cpu_s < 1.5 + (what == "threads")


def test_a_program_that_waits_is_ended_by_the_wall_clock(judge: Judge) -> None:
    judgement = fault(judge, "sleep", Limits(1.0, 256, wall_s=0.5))
    assert judgement.message == "time limit on test 1: it waited, and had not ended after 0.5 s"
    assert judgement.cpu_s < 0.5
    assert judgement.seconds < 30


def test_an_output_that_is_no_text_or_too_long_to_show(judge: Judge) -> None:
    assert fault(judge, "bytes").message == r'wrong answer on test 1: token 1 is "\xff\xfe", expected "1"'
    assert fault(judge, "long").message == f'wrong answer on test 1: token 1 is "{"9" * 60}…", expected "1"'
    assert fault(judge, "nothing").message == 'wrong answer on test 1: token 1 is missing, expected "1"'
    assert fault(judge, "big", output="7 " * 1_000_000).verdict is Verdict.ACCEPTED


@given(st.lists(st.text("ab\xe9", min_size=1)), st.sampled_from([" ", "\n", "\r\n", "\t\x0b", "\x0c "]))
def test_only_whitespace_of_ascii_between_tokens_does_not_matter(tokens: list[str], between: str) -> None:
    expected = between + between.join(tokens) + between
    assert first_difference(" ".join(tokens).encode(), expected) is None
    assert str(first_difference("1\xa02".encode(), "1 2")) == 'token 1 is "1\xa02", expected "1"'
    assert str(first_difference(b"1 2 3", "1 2")) == 'token 3 is "3", expected the end of the output'


def test_the_compiler_s_message_is_told(judge: Judge) -> None:
    judgement = judge.judge('fn main() { let n: usize = "1"; }', TESTS, LIMITS)
    assert (judgement.verdict, judgement.test, judgement.tests_passed) == (Verdict.COMPILE_ERROR, None, 0)
    assert judgement.message.startswith("error[E0308]: mismatched types\n --> main.rs:1:28\n")
    many = "fn main() {" + "".join(f"let _: u8 = x{n};\n" for n in range(500)) + "}"
    assert 4000 < len(judge.judge(many, [], LIMITS).message) < 4100


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("\0", "unknown start of token"),
        ("fn main() { println!(\"{}\", '\ud800'); }", "character 29 is half of a surrogate pair"),
        ("//" + 10_000_000 * "x", "10000002 bytes of source are more than the 262144 allowed; it was not compiled"),
        ('fn main() { let n: i32 = 3_000_000_000; println!("{n}"); }', "literal out of range"),
        ("extern crate rand; fn main() {}", "can't find crate"),
    ],
)
def test_sources_that_are_no_programs(judge: Judge, source: str, message: str) -> None:
    judgement = judge.judge(source, TESTS, LIMITS)
    assert judgement.verdict is Verdict.COMPILE_ERROR
    assert message in judgement.message


def test_a_source_is_compiled_once_however_often_it_is_judged(tmp_path: Path) -> None:
    with Judge("bubblewrap", cache=tmp_path / "new" / "cache", jobs=2) as judge:
        judgements = judge.judge_all([(DOUBLE, TESTS, LIMITS, 0)] * 4 + [("fn main() { x }", [], LIMITS, 0)] * 2)
        assert [judgement.verdict for judgement in judgements] == ["accepted"] * 4 + ["compile error"] * 2
        assert judge._compiler.compilations == 3  # both, and the harness
    with Judge("bubblewrap", cache=tmp_path / "new" / "cache") as judge:
        assert judge.judge(DOUBLE, TESTS, LIMITS).verdict is Verdict.ACCEPTED
        assert judge.judge("fn main() { x }", [], LIMITS).message == judgements[-1].message
        assert judge._compiler.compilations == 0


def test_a_judge_that_is_stopped_ends_its_programs(judge: Judge) -> None:
    assert fault(judge, "1").verdict is Verdict.ACCEPTED  # compiled
    with ThreadPoolExecutor(1) as pool:
        began = threading.Event()

        def judged() -> Judgement:
            began.set()
            return fault(judge, "sleep", Limits(1.0, 256, wall_s=100))

        running = pool.submit(judged)
        began.wait()
        with request_stop(), pytest.raises(StoppedError):
            running.result(timeout=20)


def test_what_is_asked_for_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="there is no Rust edition '2020'; choose one of: 2015, 2018, 2021, 2024"):
        Judge("bubblewrap", edition="2020")
    with pytest.raises(ValueError, match=r"time_s is -1"):
        Limits(-1, 256)
    assert (Limits(2.0, 256).wall_s, Limits(2.0, 256).total_s) == (3, 30)
    toolchain.find_toolchain.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=r"rustc not found: .* install Rust from https://rustup\.rs"):
        compiler.Compiler(open_backend("none"), "2021", tmp_path)
    (tmp_path / "rustc").write_text("#!/bin/sh\necho 'error: no default toolchain' >&2; exit 1\n")
    (tmp_path / "rustc").chmod(0o755)
    with pytest.raises(UsageError, match="`rustc --print sysroot` failed: error: no default toolchain; install"):
        toolchain.find_toolchain()
