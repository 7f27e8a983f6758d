"""The prepared problems: made once and alike everywhere, checked when read, and nothing held out in a workspace."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from re_bench.errors import UsageError
from rust_codecontests import codecontests, dataset
from rust_codecontests.judge import Test

if TYPE_CHECKING:
    from subprocess import CompletedProcess

pytestmark = pytest.mark.integration

PACKAGE = Path(__file__).parents[1] / "rust_codecontests"
CANARY = "re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training"
FIELDS = {
    "name",
    "description",
    "public_tests",
    "private_tests",
    "generated_tests",
    "time_limit",
    "memory_limit_bytes",
    "difficulty",
}


PREPARE = """
import sys
from pathlib import Path
from re_bench.processes import cli_entry_point
from re_bench.task.discovery import open_task
from re_bench.task.prepare import run_preparation
with cli_entry_point("prepare"):
    run_preparation(open_task(Path(sys.argv[1])), sys.argv[2], *map(Path, sys.argv[3:]))
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RE_BENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="session")
def prepared_once(python: Any, pinned_task: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cache in which the task with four problems is prepared; leave it as it is."""
    cache = tmp_path_factory.mktemp("prepared") / "cache"
    done = python("-P", "-c", PREPARE, pinned_task, "cpu", RE_BENCH_CACHE=str(cache))
    assert done.returncode == 0, done.stderr
    return cache


@pytest.fixture
def prepared(prepared_once: Path, cache: Path) -> None:
    """Have the task with four problems prepared."""
    shutil.copytree(prepared_once, cache)


@pytest.fixture
def prepare(python: Any, task: Path, cache: Path) -> Any:
    """Return a function that prepares the task with four problems."""
    assert cache

    def run(profile: str = "cpu", *words: object, **environment: str) -> CompletedProcess[str]:
        done: CompletedProcess[str] = python("-P", "-c", PREPARE, task, profile, *words, **environment)
        return done

    return run


def prepared_files(cache: Path) -> dict[str, Path]:
    (directory,) = (path for path in (cache / "rust_codecontests").iterdir() if path.is_dir())
    return {path.name: path for path in directory.iterdir()}


def read(python: Any, task: Path, profile: str, split: str) -> list[dict[str, Any]]:
    """Read a split in a process of its own, by the task's own module."""
    program = (
        "import json\nfrom rust_codecontests import dataset\n"
        f"print(json.dumps([dataset.to_record(p) for p in dataset.read({profile!r}, {split!r})]))\n"
    )
    done = python("-c", program, PYTHONPATH=str(task))
    assert done.returncode == 0, done.stderr
    records: list[dict[str, Any]] = json.loads(done.stdout)
    return records


def some_problem() -> dataset.Problem:
    return dataset.Problem(
        name="sums",
        description="Add é.",
        public=(Test("1 2\n", "3\n"),),
        private=(Test("0 0\n", "0\n"), Test("5 5\n", "10\n")),
        generated=(),
        time_limit_s=1.5,
        memory_limit_mib=256,
        difficulty="easy",
    )


def test_a_record_has_codecontests_fields_and_gives_the_problem_back() -> None:
    problem = some_problem()
    record = dataset.to_record(problem)
    assert set(record) == FIELDS
    assert record["private_tests"] == {"input": ["0 0\n", "5 5\n"], "output": ["0\n", "10\n"]}
    assert record["time_limit"] == {"seconds": 1, "nanos": 500_000_000}
    assert record["memory_limit_bytes"] == 256 << 20
    assert dataset.from_record(json.loads(dataset.to_json_line(problem))) == problem
    assert [test.input for test in problem.tests] == ["1 2\n", "0 0\n", "5 5\n"]


def test_what_is_shown_has_no_hidden_test() -> None:
    shown = dataset.without_hidden_tests(some_problem())
    assert set(shown) == FIELDS - {"private_tests", "generated_tests"}
    assert "10" not in json.dumps(shown)


def test_a_workspace_gets_what_is_not_held_out(prepare: Any, python: Any, task: Path, cache: Path) -> None:
    workspace = cache.parent / "workspace"
    workspace.mkdir()
    done = prepare("cpu", workspace)
    assert (done.returncode, done.stdout) == (0, "")
    files = prepared_files(cache)
    assert set(files) == {"train.jsonl", "valid.jsonl", "test.jsonl", "manifest.json"}
    laid_out = {str(path.relative_to(workspace)) for path in workspace.rglob("*") if path.is_file()}
    assert laid_out == {"data/train.jsonl", "data/valid.jsonl"}
    assert (workspace / "data/train.jsonl").read_bytes() == files["train.jsonl"].read_bytes()
    (held_out,) = read(python, task, "cpu", "test")
    texts = [(workspace / name).read_text() for name in laid_out]
    assert not any(held_out["name"] in text or held_out["description"][:60] in text for text in texts)


@pytest.mark.usefixtures("prepared")
def test_every_prepared_file_carries_the_canary(cache: Path) -> None:
    for name, path in prepared_files(cache).items():
        lines = [path.read_text()] if name == "manifest.json" else path.read_text().splitlines()
        assert all(CANARY in line for line in lines)


@pytest.mark.usefixtures("prepared")
def test_a_description_ends_with_the_public_tests(python: Any, task: Path) -> None:
    (problem,) = read(python, task, "cpu", "train")
    statement = (
        (task / "rust_codecontests/problems/train/badge_codes/statement.md").read_text().partition("\n\n")[2].strip()
    )
    assert problem["description"].startswith(f"{statement}\n\nExamples\n\nInput\n\n6\n12F\n")
    assert "canary" not in problem["description"]
    ends = [problem["description"].find(text.strip()) for text in problem["public_tests"]["output"]]
    assert min(ends) > len(statement)
    assert ends == sorted(ends)


def test_problems_are_made_once_and_alike_in_another_process(prepare: Any, cache: Path) -> None:
    assert "making" in prepare(PYTHONHASHSEED="1").stderr
    before = {name: path.read_bytes() for name, path in prepared_files(cache).items()}
    assert prepare().stderr == ""
    shutil.rmtree(cache)
    assert prepare(PYTHONHASHSEED="2").returncode == 0
    assert {name: path.read_bytes() for name, path in prepared_files(cache).items()} == before


READ_BOTH = """
from rust_codecontests import dataset
for split in ("train", "test"):
    try:
        dataset.read("cpu", split)
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
"""


@pytest.mark.usefixtures("prepared")
@pytest.mark.parametrize("damaged", [("train.jsonl", "test.jsonl"), ("manifest.json",)], ids=["files", "manifest"])
def test_damage_is_named_and_mended(
    prepare: Any, python: Any, task: Path, cache: Path, damaged: tuple[str, ...]
) -> None:
    whole = {prepared_files(cache)[file]: prepared_files(cache)[file].read_bytes() for file in damaged}
    for path, data in whole.items():
        path.write_bytes(b"x" + data[1:])
    lines = python("-c", READ_BOTH, PYTHONPATH=str(task)).stdout.splitlines()
    assert len(lines) == 2
    for line, file in zip(lines, 2 * damaged, strict=False):
        assert re.match(r"ReBenchError: .*run: re-bench prepare rust_codecontests --profile cpu", line), line
        assert file in line or "damaged" in line
    assert "building it again: " in prepare().stderr
    assert {path: path.read_bytes() for path in whole} == whole


def test_what_is_missing_is_a_usage_error_that_names_the_command(cache: Path) -> None:
    assert not cache.exists()
    for profile in ("cpu", "paper"):
        with pytest.raises(UsageError, match=f"run: re-bench prepare rust_codecontests --profile {profile}"):
            dataset.read(profile, "test")


def test_other_tests_than_the_pinned_ones_are_refused(prepare: Any, task: Path, cache: Path) -> None:
    checksums = json.loads((task / "rust_codecontests/checksums.json").read_text())
    checksums["cpu"]["files"]["valid.jsonl"] = "0" * 64
    (task / "rust_codecontests/checksums.json").write_text(json.dumps(checksums))
    done = prepare()
    assert done.returncode == 1
    assert re.search(r"profile cpu: valid.jsonl has SHA-256 [0-9a-f]{64}, .*checksums.json says 0{64}", done.stderr)
    assert [path for path in (cache / "rust_codecontests").iterdir() if path.is_dir()] == []


@pytest.mark.parametrize(("profile", "held_out"), [("cpu", "test"), ("cpu-test2", "test2")])
def test_the_problems_are_those_that_are_pinned(profile: str, held_out: str) -> None:
    pins = json.loads((PACKAGE / "checksums.json").read_text())[profile]
    assert pins["key"] == dataset.key(profile), "run: python tasks/rust_codecontests/tools/check_problems.py --pin"
    assert list(pins["files"]) == ["train.jsonl", "valid.jsonl", f"{held_out}.jsonl"]


def test_the_second_held_out_set_lies_apart(prepare: Any, python: Any, task: Path, cache: Path) -> None:
    workspace = cache.parent / "workspace"
    workspace.mkdir()
    assert prepare("cpu-test2", workspace).returncode == 0
    assert sorted(path.name for path in (workspace / "data").iterdir()) == ["train.jsonl", "valid.jsonl"]
    assert set(prepared_files(cache)) == {"train.jsonl", "valid.jsonl", "test2.jsonl", "manifest.json"}
    assert [record["name"] for record in read(python, task, "cpu-test2", "test2")] == ["turning_tray"]


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    """Return a directory with two files of parquet in the form of CodeContests."""
    datasets = pytest.importorskip("datasets", reason="needs datasets, of the extra paper")
    tests = {"input": datasets.List(datasets.Value("string")), "output": datasets.List(datasets.Value("string"))}
    limit = {"seconds": datasets.Value("int64"), "nanos": datasets.Value("int64")}
    features = datasets.Features(
        {
            "name": datasets.Value("string"),
            "description": datasets.Value("string"),
            "public_tests": tests,
            "private_tests": tests,
            "generated_tests": tests,
            "difficulty": datasets.ClassLabel(names=["UNKNOWN_DIFFICULTY", "EASY", "A", "B"]),
            "solutions": {"language": datasets.List(datasets.Value("int64")), "solution": tests["input"]},
            "cf_rating": datasets.Value("int32"),
            "time_limit": limit,
            "memory_limit_bytes": datasets.Value("int64"),
        }
    )
    (tmp_path / "data").mkdir()
    for split, names in (("valid", ["7_A. Small"]), ("test", ["1_B. Sums", "2_A. No limits"])):
        rows = [row(name) for name in names]
        file = tmp_path / "data" / f"{split}-00000-of-00001-0123456789abcdef.parquet"
        datasets.Dataset.from_list(rows, features=features).to_parquet(str(file))
    return tmp_path


def row(name: str) -> dict[str, Any]:
    limited = "limits" not in name
    return {
        "name": name,
        "description": "Add.\n\nInput\n\nTwo numbers.\n\nOutput\n\nTheir sum.\n\nExample\n\nInput\n\n1 2\n",
        "public_tests": {"input": ["1 2\n"], "output": ["3\n"]},
        "private_tests": {"input": ["5 5\n"], "output": ["10\n"]},
        "generated_tests": {"input": [], "output": []},
        "difficulty": 3 if "_B" in name else 2,
        "solutions": {"language": [3], "solution": ["print(sum(map(int, input().split())))"]},
        "cf_rating": 800,
        "time_limit": {"seconds": 1, "nanos": 500_000_000} if limited else None,
        "memory_limit_bytes": 256_000_000 if limited else 0,
    }


def test_codecontests_is_mapped_to_the_same_fields(hub: Path) -> None:
    records = list(codecontests.records("test", hub, problems=2))
    assert [set(record) for record in records] == [FIELDS, FIELDS]
    assert [record["difficulty"] for record in records] == ["B", "A"]
    first, second = map(dataset.from_record, records)
    assert (first.name, first.time_limit_s, first.memory_limit_mib) == ("1_B. Sums", 1.5, 245)
    assert (second.time_limit_s, second.memory_limit_mib) == (2.0, 245)
    assert first.description == row("1_B. Sums")["description"]
    assert [(test.input, test.output) for test in first.tests] == [("1 2\n", "3\n"), ("5 5\n", "10\n")]


def test_profile_paper_is_prepared_from_the_hubs_cache_and_read_without_it(
    prepare: Any, python: Any, task: Path, hub: Path, cache: Path
) -> None:
    revision = re.search(r'"([0-9a-f]{40})"', (task / "rust_codecontests" / "codecontests.py").read_text())
    assert revision
    snapshot = cache.parent / "hub" / "datasets--deepmind--code_contests" / "snapshots" / revision[1]
    snapshot.mkdir(parents=True)
    for path in (hub / "data").iterdir():
        (snapshot / "data").mkdir(exist_ok=True)
        shutil.copy(path, snapshot / "data")
    offline = {"HF_HOME": str(cache.parent), "HF_HUB_OFFLINE": "1"}
    workspace = cache.parent / "workspace"
    workspace.mkdir()
    done = prepare("paper", workspace, **offline)  # these files are not those that are pinned
    assert done.returncode == 2
    assert "data/valid-00000-of-00001-5e672c5751f060d3.parquet is missing; run again with access" in done.stderr
    text = (task / "rust_codecontests" / "codecontests.py").read_text()
    text = re.sub(r",\n    \{\n.*?\n    \},\n\)", ",\n)", text, count=1, flags=re.DOTALL)
    (task / "rust_codecontests" / "codecontests.py").write_text(
        text.replace('"valid": 117, "test": 165', '"valid": 1, "test": 2')
    )
    done = prepare("paper", workspace, **offline)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (workspace / "data").iterdir()] == ["valid.jsonl"]
    shutil.rmtree(cache.parent / "hub")
    assert [record["name"] for record in read(python, task, "paper", "test")] == ["1_B. Sums", "2_A. No limits"]
