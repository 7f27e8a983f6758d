"""Anchors that were measured lie in a file of their own, which is written whole and read together with `task.toml`."""

from __future__ import annotations

import datetime as dt
import os
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from re_bench.task.anchors import Anchors, Source, Spread
from re_bench.task.manifest_file import ManifestError, load, write_anchors

TASK = (Path(__file__).parent / "example_task.toml").read_text(encoding="utf-8")
IN_RUN = TASK.replace("time_limit_s = 1\n", "in_run = true\ntime_limit_s = 1\n")
MEASURED = Source(
    kind="measured",
    where="re-bench calibrate",
    hardware="H200",
    date=dt.date(2026, 1, 31),
    repeats=5,
    spread=Spread(starting=0.25, reference=0.5),
    versions={"torch": "2.13.0", "a.b": "é"},
)
ANCHORS = Anchors(starting=3.0, reference=1.5, source=MEASURED)

NOTES = st.text(st.characters(exclude_categories=["Cs"]))
TEXTS = NOTES.filter(lambda text: text.strip() != "")
LINES = TEXTS.filter(lambda text: text.splitlines() == [text])
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
SOURCES = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["measured", "modelled"]),
        "where": TEXTS,
        "hardware": LINES,
        "date": st.dates(),
        "repeats": st.integers(1, 2**63 - 1),
        "spread": st.fixed_dictionaries({"starting": st.floats(0, 1e9), "reference": st.floats(0, 1e9)}),
        "versions": st.dictionaries(NOTES, NOTES, max_size=3),
    }
)


@st.composite
def measured_anchors(draw: st.DrawFn) -> Anchors:
    reference, starting = sorted(draw(st.lists(NUMBERS, min_size=2, max_size=2, unique=True)))
    return Anchors.model_validate({"starting": starting, "reference": reference, "source": draw(SOURCES)})


def on(device: str, starting: float = 3.0) -> Anchors:
    source = MEASURED.model_copy(update={"hardware": device})
    return ANCHORS.model_copy(update={"starting": starting, "source": source})


def problems(path: Path) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        load(path)
    return [line.removeprefix(f"{path.parent}/") for line in caught.value.problems]


@pytest.fixture
def anchors_path(path: Path) -> Path:
    return path.with_name("anchors.toml")


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.dictionaries(st.sampled_from(["cpu", "gpu"]), measured_anchors()), st.lists(measured_anchors(), max_size=3))
def test_anchors_written_are_read(
    tmp_path_factory: pytest.TempPathFactory, anchors: dict[str, Anchors], devices: list[Anchors]
) -> None:
    path = tmp_path_factory.mktemp("anchors") / "task.toml"
    path.write_text(IN_RUN, encoding="utf-8")
    before = load(path)
    for name, entry in anchors.items():
        write_anchors(path, name, entry)
    for device in devices:
        write_anchors(path, "paper", device)
    assert path.read_text(encoding="utf-8") == IN_RUN
    after = load(path)
    assert {name: after.anchors(name) for name in anchors} == anchors
    assert after.profiles["paper"].devices == tuple({entry.source.hardware: entry for entry in devices}.values())
    without: dict[str, Any] = {"anchors": None, "devices": ()}
    for manifest in (before, after):
        for name, profile in manifest.profiles.items():
            manifest.profiles[name] = profile.model_copy(update=without)
    assert before == after


def test_the_file_is_plain_toml_that_says_who_writes_it(path: Path, anchors_path: Path) -> None:
    write_anchors(path, "cpu", ANCHORS)
    text = anchors_path.read_text(encoding="utf-8")
    assert text.startswith("# Measured anchors, written whole by `re-bench calibrate`;")
    assert tomllib.loads(text) == {"profiles": {"cpu": {"anchors": ANCHORS.model_dump(exclude_none=True)}}}
    assert stat.S_IMODE(anchors_path.stat().st_mode) == 0o644


def test_measured_anchors_come_before_published_ones(path: Path, anchors_path: Path) -> None:
    published = load(path).anchors("gpu")
    assert published is not None
    assert published.source.kind == "published"
    write_anchors(path, "gpu", ANCHORS)
    assert load(path).anchors("gpu") == ANCHORS
    anchors_path.unlink()
    assert load(path).anchors("gpu") == published


def test_writing_the_same_anchors_again_changes_nothing(path: Path, anchors_path: Path) -> None:
    write_anchors(path, "gpu", ANCHORS)
    once = anchors_path.read_bytes()
    write_anchors(path, "gpu", ANCHORS)
    assert anchors_path.read_bytes() == once


def test_devices_are_added_one_behind_the_other_and_replaced_in_place(path: Path) -> None:
    path.write_text(IN_RUN, encoding="utf-8")
    for device in (on("H200"), on("L4"), on("T4"), on("L4", 4.0)):
        write_anchors(path, "paper", device)
    assert load(path).profiles["paper"].devices == (on("H200"), on("L4", 4.0), on("T4"))


def test_models_are_kept_beside_the_anchors_of_their_profile(path: Path) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write('\n[model]\nname = "own"\nstand_in = "m:f"\nkey = ["gpu"]\n')
    published = load(path).anchors("gpu")
    for name, starting in (("a", 5.0), ("b", 6.0), ("a", 7.0)):
        source = MEASURED.model_copy(update={"model": name})
        write_anchors(path, "gpu", ANCHORS.model_copy(update={"starting": starting, "source": source}))
    manifest = load(path)
    assert [(entry.source.model, entry.starting) for entry in manifest.profiles["gpu"].models] == [
        ("a", 7.0),
        ("b", 6.0),
    ]
    assert manifest.anchors("gpu") == manifest.with_model("own").anchors("gpu") == published
    other = manifest.with_model("a")
    assert other.anchors("gpu") == manifest.profiles["gpu"].anchors_with("a")
    assert other.anchors("cpu") == manifest.anchors("cpu")
    assert other.model is not None
    assert (other.model.name, other.model.aliases) == ("a", ("own",))
    assert manifest.with_model("c").anchors("gpu") is None


def test_anchors_that_do_not_fit_leave_the_file_alone(path: Path, anchors_path: Path) -> None:
    write_anchors(path, "gpu", ANCHORS)
    before = anchors_path.read_bytes()
    wrong = Anchors(starting=1, reference=2, source=MEASURED)
    expected = r"anchors\.toml: profiles\.gpu\.anchors\.reference: Input should be a number below starting"
    with pytest.raises(ManifestError, match=expected):
        write_anchors(path, "gpu", wrong)
    with pytest.raises(ManifestError, match=r"task\.toml: profiles\.tpu: Field required, a table to hold the anchors"):
        write_anchors(path, "tpu", ANCHORS)
    assert anchors_path.read_bytes() == before


def test_a_device_without_a_name_leaves_no_file(path: Path, anchors_path: Path) -> None:
    path.write_text(IN_RUN, encoding="utf-8")
    nameless = Anchors(starting=3, reference=1, source=Source(kind="published", where="a paper"))
    expected = r"devices\[0\]\.source\.hardware: Field required, the name of the device"
    with pytest.raises(ManifestError, match=expected):
        write_anchors(path, "paper", nameless)
    assert not anchors_path.exists()


def test_the_file_changes_at_once_and_keeps_its_mode_and_links(
    path: Path, anchors_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = path.with_name("elsewhere.toml")
    target.write_text("")
    target.chmod(0o640)
    anchors_path.symlink_to(target.name)
    write_anchors(path, "gpu", ANCHORS)
    assert anchors_path.is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    once = target.read_bytes()

    def refused(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", refused)
    with pytest.raises(OSError, match="No space left"):
        write_anchors(path, "cpu", ANCHORS)
    assert target.read_bytes() == once
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["anchors.toml", "elsewhere.toml", "task.toml"]


PROBLEMS = {
    "no TOML": ("profiles = ", ["anchors.toml: expected valid TOML, got: Invalid value (at end of document)"]),
    "another key": ("version = 1", ["anchors.toml: version: unknown key; expected one of: profiles"]),
    "another key of a profile": (
        '[profiles.cpu]\ndevice = "cuda"',
        [
            (
                "anchors.toml: profiles.cpu.device: unknown key; expected one of: anchors, devices, models (did you "
                "mean devices?)"
            )
        ],
    ),
    "an unknown profile": (
        "[profiles.tpu.anchors]\nstarting = 1",
        ["anchors.toml: profiles.tpu: task.toml has no such profile"],
    ),
    "a number for a table": ("profiles.cpu = 1", ["anchors.toml: profiles.cpu: Input should be a table, got 1"]),
    "incomplete anchors": (
        "[profiles.cpu.anchors]\nstarting = 1",
        [
            "anchors.toml: profiles.cpu.anchors.reference: Field required",
            "anchors.toml: profiles.cpu.anchors.source: Field required",
        ],
    ),
    "devices where no run measures them": (
        "[[profiles.cpu.devices]]\nstarting = 1",
        [
            "anchors.toml: profiles.cpu.devices[0].reference: Field required",
            "anchors.toml: profiles.cpu.devices[0].source: Field required",
            (
                "anchors.toml: profiles.cpu.devices: Input should be one table of anchors instead, because in_run is "
                "not true, got a list"
            ),
        ],
    ),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_is_wrong_is_said_of_the_file_that_it_is_in(path: Path, anchors_path: Path, name: str) -> None:
    text, expected = PROBLEMS[name]
    anchors_path.write_text(text)
    assert problems(path) == expected


def test_problems_of_both_files_are_listed_together(path: Path, anchors_path: Path) -> None:
    path.write_text(TASK.replace('title = "An example"\n', "").replace("wall_s = 3", "wall_s = 0"), encoding="utf-8")
    anchors_path.write_text("[profiles.cpu]\nx = 1\n")
    assert problems(path) == [
        "anchors.toml: profiles.cpu.x: unknown key; expected one of: anchors, devices, models",
        "task.toml: title: Field required",
        "task.toml: profiles.cpu.limits.wall_s: Input should be greater than 0, got 0",
    ]


def test_a_file_that_cannot_be_read_is_no_missing_one(path: Path, anchors_path: Path) -> None:
    anchors_path.mkdir()
    assert problems(path) == ["anchors.toml: expected a file, got a directory"]
    anchors_path.rmdir()
    anchors_path.symlink_to("nowhere")
    assert problems(path) == ["anchors.toml: expected a readable file, got: no such file"]
