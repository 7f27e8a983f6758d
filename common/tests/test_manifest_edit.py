"""What is written into a manifest is read again, and everything else stays as a person wrote it."""

import datetime as dt
import difflib
import os
import re
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from re_bench.task import manifest_edit
from re_bench.task.manifest import PROFILES, Anchors, Manifest, ManifestError, Source, Spread, load
from re_bench.task.manifest_edit import dumps, write_anchors

TASK = (Path(__file__).parent / "example_task.toml").read_text(encoding="utf-8")
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
MEASURED_LINES = """\
kind = "measured"
where = "re-bench calibrate"
hardware = "H200"
date = 2026-01-31
repeats = 5
spread = {starting = 0.25, reference = 0.5}
versions = {torch = "2.13.0", "a.b" = "é"}
"""
LINES = st.text(st.characters(exclude_categories=["Cs"])).filter(
    lambda text: text.strip() != "" and text.splitlines() == [text]
)
NOTES = st.text(st.characters(exclude_categories=["Cs"]))
TEXTS = NOTES.filter(lambda text: text.strip() != "")
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
POSITIVE = st.floats(min_value=0, exclude_min=True, allow_infinity=False)
COUNTS = st.integers(1, 2**70)
SPREADS = st.fixed_dictionaries({"starting": st.floats(0, 1e9), "reference": st.floats(0, 1e9)})
HOW = {
    "where": TEXTS,
    "hardware": LINES,
    "date": st.dates(),
    "repeats": COUNTS,
    "spread": SPREADS,
    "versions": st.dictionaries(NOTES, NOTES, max_size=3),
}
MEASURING = st.fixed_dictionaries({"kind": st.sampled_from(["measured", "modelled"]), **HOW})
SOURCES = MEASURING | st.fixed_dictionaries(
    {"kind": st.just("published"), "where": HOW["where"]},
    optional={key: value for key, value in HOW.items() if key != "where"},
)
LIMITS = st.fixed_dictionaries(
    {},
    optional={"wall_s": POSITIVE}
    | dict.fromkeys(["cpu_s", "memory_mib", "processes", "file_mib", "open_files", "output_kib"], COUNTS),
)
Fields = dict[str, st.SearchStrategy[Any]]
PROFILE_NAMES = st.sampled_from(PROFILES)
EXPECT: Fields = {"expect": st.sampled_from(["invalid", "no_better"])}
REASON: Fields = {"reason": TEXTS.map(re.escape)}
ON: Fields = {"on": st.dictionaries(PROFILE_NAMES, st.fixed_dictionaries(EXPECT, optional=REASON))}
RESTRICTED: Fields = {"profiles": st.lists(PROFILE_NAMES, min_size=1)}
CHEATS = st.fixed_dictionaries({"description": LINES, **EXPECT}, optional=REASON | ON) | st.fixed_dictionaries(
    {"description": LINES, **EXPECT}, optional=REASON | RESTRICTED
)
PUBLISHED = st.fixed_dictionaries(
    {"name": LINES, "hardware": TEXTS, "starting": NUMBERS, "reference": NUMBERS, "where": TEXTS},
    optional={"note": NOTES},
)


@st.composite
def anchor_tables(
    draw: st.DrawFn, direction: str, sources: st.SearchStrategy[dict[str, Any]] = SOURCES
) -> dict[str, Any]:
    low, high = sorted(draw(st.lists(NUMBERS, min_size=2, max_size=2, unique=True)))
    starting, reference = (high, low) if direction == "lower" else (low, high)
    return {"starting": starting, "reference": reference, "source": draw(sources)}


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    direction = draw(st.sampled_from(["lower", "higher"]))
    said = {"description": LINES, "device": st.sampled_from(["cpu", "cuda"]), "time_limit_s": POSITIVE}
    more = {
        "modelled": st.booleans(),
        "parallel": st.booleans(),
        "tolerance": st.fixed_dictionaries({}, optional={"baseline": st.floats(0, 1), "reference": POSITIVE}),
        "limits": LIMITS,
    }
    devices = st.lists(anchor_tables(direction, MEASURING), max_size=3, unique_by=lambda at: at["source"]["hardware"])
    profile = st.fixed_dictionaries(
        said, optional=more | {"anchors": anchor_tables(direction)}
    ) | st.fixed_dictionaries(said | {"in_run": st.just(value=True), "devices": devices}, optional=more)
    required = {
        "id": st.from_regex(r"[a-z][a-z0-9_]*", fullmatch=True),
        "title": LINES,
        "description": LINES,
        "version": COUNTS,
        "direction": st.just(direction),
        "aggregation": st.sampled_from(["min", "max", "last"]),
        "unit": LINES,
        "submission": st.lists(st.sampled_from(["a.py", "b/é c.json"]), min_size=1),
    }
    optional = {
        "show_score": st.booleans(),
        "staging": st.fixed_dictionaries({"mib": COUNTS}, optional={"names": st.just(["!data", "!é"])}),
        "profiles": st.dictionaries(PROFILE_NAMES, profile),
        "published": st.lists(PUBLISHED, max_size=2),
        "reference": st.fixed_dictionaries(
            {"command": st.lists(NOTES, min_size=1, max_size=3), "time_limit_s": POSITIVE}
        ),
        "cheats": st.dictionaries(st.from_regex(r"[a-z][a-z0-9_-]*", fullmatch=True), CHEATS, max_size=2),
    }
    return Manifest.model_validate(draw(st.fixed_dictionaries(required, optional=optional)))


SLOW_TO_DRAW = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@SLOW_TO_DRAW
@given(manifests())
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, manifest: Manifest) -> None:
    path = tmp_path_factory.mktemp("round") / "task.toml"
    path.write_bytes(dumps(manifest).encode())
    assert load(path) == manifest


@SLOW_TO_DRAW
@given(manifests(), st.data())
def test_anchors_written_are_read(
    tmp_path_factory: pytest.TempPathFactory, manifest: Manifest, data: st.DataObject
) -> None:
    anchors = Anchors.model_validate(data.draw(anchor_tables(manifest.direction, MEASURING)))
    path = tmp_path_factory.mktemp("anchors") / "task.toml"
    path.write_bytes(dumps(manifest).encode())
    for name, profile in manifest.profiles.items():
        write_anchors(path, name, anchors)
        written = load(path).profiles[name]
        assert (written.anchors_on(anchors.source.hardware) if profile.in_run else written.anchors) == anchors
        kept = {entry.source.hardware for entry in profile.devices} - {anchors.source.hardware}
        assert [written.anchors_on(device) for device in kept] == [profile.anchors_on(device) for device in kept]
        others = load(path).model_copy(update={"profiles": load(path).profiles | {name: profile}})
        assert others.profiles.keys() == manifest.profiles.keys()
        assert others.model_copy(update={"profiles": manifest.profiles}) == manifest


def changes(before: str, after: str) -> str:
    """Return the lines taken away and added, and nothing around them."""
    lines = difflib.unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), n=0)
    return "".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


def added(lines: str) -> str:
    return "".join(f"+{line}" for line in lines.splitlines(keepends=True))


NEW_TABLES = f"""
[profiles.NAME.anchors]
starting = 3.0
reference = 1.5

[profiles.NAME.anchors.source]
{MEASURED_LINES}"""


def test_anchors_replaced_keep_comments_and_every_other_byte(path: Path) -> None:
    write_anchors(path, "gpu", ANCHORS)
    first, _, others = MEASURED_LINES.partition("\n")
    edits = {
        "starting = 2.0 #": "starting = 3.0 #",
        "reference = 1 #": "reference = 1.5 #",
        'kind = "published" ': f"{first} ",
        "where = '''\na paper'''\n": others,
    }
    expected = TASK
    for old, new in edits.items():
        expected = expected.replace(old, new)
    assert path.read_text() == expected


@pytest.mark.parametrize(("profile", "before"), [("cpu", "\n# ---- one modern GPU"), ("paper", None)])
def test_first_anchors_stand_at_the_end_of_their_profile(path: Path, profile: str, before: str | None) -> None:
    write_anchors(path, profile, ANCHORS)
    at = TASK.index(before) if before else len(TASK)
    assert path.read_text() == TASK[:at] + NEW_TABLES.replace("NAME", profile) + TASK[at:]


def test_writing_the_same_anchors_again_changes_nothing(path: Path) -> None:
    write_anchors(path, "gpu", ANCHORS)
    once = path.read_bytes()
    write_anchors(path, "gpu", ANCHORS)
    assert path.read_bytes() == once


def test_recalibrating_changes_what_differs(path: Path) -> None:
    write_anchors(path, "gpu", ANCHORS)
    once = path.read_text()
    source = MEASURED.model_copy(update={"repeats": 7, "versions": {"torch": "3", "triton": "4"}})
    write_anchors(path, "gpu", ANCHORS.model_copy(update={"source": source}))
    assert changes(once, path.read_text()) == (
        '-repeats = 5\n+repeats = 7\n-versions = {torch = "2.13.0", "a.b" = "é"}\n'
        '+versions = {torch = "3", triton = "4"}\n'
    )


LAYOUTS: dict[str, Callable[[str], str]] = {
    "no newline at the end": lambda text: text.removesuffix("\n# the end\n"),
    "no comment at the end": lambda text: text.removesuffix("# the end\n"),
    "windows newlines": lambda text: text.replace("\n", "\r\n"),
    "anchors on one line": lambda text: text.replace(
        "# the end\n", 'anchors = {starting = 2, reference = 1, source = {kind = "published", where = "x"}}\n'
    ),
    "dotted keys": lambda text: text.replace(
        "# the end\n",
        'anchors.starting = 2\nanchors.reference = 1\nanchors.source = {kind = "published", where = "x"}\n',
    ),
    "the profile on one line": lambda text: text.replace(
        text[text.index("[profiles.paper]") :],
        '[profiles]\npaper = {description = "x", device = "cuda", time_limit_s = 1}\n',
    ).replace(text[text.index("[profiles.cpu]") : text.index("[[published]]")], ""),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_anchors_find_their_place_in_every_layout(path: Path, name: str) -> None:
    before = LAYOUTS[name](TASK)
    assert before != TASK
    path.write_bytes(before.encode())
    for anchors in (ANCHORS, ANCHORS.model_copy(update={"starting": 4.0})):
        write_anchors(path, "paper", anchors)
        assert load(path).anchors("paper") == anchors
    after = path.read_bytes().decode()
    assert [line for line in after.splitlines() if line.startswith("#")] == [
        line for line in before.splitlines() if line.startswith("#")
    ]


def test_anchors_that_do_not_fit_leave_the_file_alone(path: Path) -> None:
    wrong = Anchors(starting=1, reference=2, source=MEASURED)
    with pytest.raises(ManifestError, match=r"profiles\.gpu\.anchors\.reference: expected a number below starting"):
        write_anchors(path, "gpu", wrong)
    with pytest.raises(ManifestError, match=r"task\.toml: profiles\.tpu: expected a table to hold the anchors"):
        write_anchors(path, "tpu", ANCHORS)
    assert path.read_text() == TASK


IN_RUN = TASK.replace("time_limit_s = 1\n", "in_run = true\ntime_limit_s = 1\n")
NEW_DEVICE = NEW_TABLES.replace("[profiles.NAME.anchors]", "[[profiles.NAME.devices]]").replace(
    ".anchors.", ".devices."
)


def on(device: str, starting: float = 3.0) -> Anchors:
    source = MEASURED.model_copy(update={"hardware": device})
    return ANCHORS.model_copy(update={"starting": starting, "source": source})


def device_tables(device: str, profile: str) -> str:
    return NEW_DEVICE.replace("NAME", profile).replace("H200", device)


def test_devices_are_added_one_behind_the_other_and_replaced_in_place(path: Path) -> None:
    gpu = TASK[TASK.index("\n# the scale") : TASK.index("\n[[published]]")]
    text = TASK.replace(gpu, "").replace("time_limit_s = 60.0\n", "time_limit_s = 60.0\nin_run = true\n")
    path.write_text(text, encoding="utf-8")
    for device in ("H200", "L4", "T4"):
        write_anchors(path, "gpu", on(device))
    at = text.index("\n[[published]]")
    tables = [device_tables(device, "gpu") for device in ("H200", "L4", "T4")]
    assert path.read_text(encoding="utf-8") == text[:at] + "".join(tables) + text[at:]
    commented = path.read_text(encoding="utf-8").replace('hardware = "L4"\n', 'hardware = "L4" # small\n# and old\n', 1)
    path.write_text(commented, encoding="utf-8")
    for device in ("T4", "L4"):
        write_anchors(path, "gpu", on(device, 4.0))
    assert changes(commented, path.read_text(encoding="utf-8")) == "-starting = 3.0\n+starting = 4.0\n" * 2


DEVICE_LAYOUTS = {name: LAYOUTS[name] for name in list(LAYOUTS)[:3]} | {
    "a table behind": lambda text: text.replace("# the end\n", "\n[profiles.paper.tolerance] # wide\nreference = 1\n"),
    "devices on one line": lambda text: text.replace(
        "# the end\n",
        'devices = [{starting = 2, reference = 1, source = {kind = "published", where = "x", hardware = "old"}}]\n',
    ),
    "dotted keys": lambda text: text.replace("# the end\n", "limits.wall_s = 3\n"),
    "the profile on one line": lambda text: LAYOUTS["the profile on one line"](text).replace(
        "time_limit_s = 1}", "in_run = true, time_limit_s = 1}"
    ),
}


@pytest.mark.parametrize("name", DEVICE_LAYOUTS)
def test_devices_find_their_place_in_every_layout(path: Path, name: str) -> None:
    text = DEVICE_LAYOUTS[name](IN_RUN)
    assert text != IN_RUN
    path.write_bytes(text.encode())
    wanted = [on("H200"), on("L4"), on("H200", 5.0)]
    for anchors in wanted:
        write_anchors(path, "paper", anchors)
    paper = load(path).profiles["paper"]
    assert [paper.anchors_on(device) for device in ("H200", "L4")] == [wanted[2], wanted[1]]
    assert [entry.source.hardware for entry in paper.devices][-2:] == ["H200", "L4"]
    assert [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#")] == [
        line for line in text.splitlines() if line.startswith("#")
    ]


def test_an_empty_list_of_devices_is_filled_where_it_stands(path: Path) -> None:
    text = IN_RUN.replace("in_run = true\n", "in_run = true\ndevices = [] # none yet\n")
    path.write_text(text, encoding="utf-8")
    write_anchors(path, "paper", on("H200"))
    after = path.read_text(encoding="utf-8")
    assert load(path).profiles["paper"].devices == (on("H200"),)
    assert re.sub(r"devices = \[.*\] #", "devices = [] #", after) == text


def test_a_device_without_a_name_leaves_the_file_alone(path: Path) -> None:
    path.write_text(IN_RUN, encoding="utf-8")
    nameless = Anchors(starting=3, reference=1, source=Source(kind="published", where="a paper"))
    with pytest.raises(ManifestError, match=r"devices\[0\]\.source\.hardware: expected the name of the device"):
        write_anchors(path, "paper", nameless)
    assert path.read_text(encoding="utf-8") == IN_RUN


def test_an_edit_that_went_wrong_leaves_the_file_alone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_edit, "_with_anchors", lambda *_: TASK)
    with pytest.raises(ManifestError, match="expected a plain table that can be edited"):
        write_anchors(path, "gpu", ANCHORS)
    assert path.read_text() == TASK


def test_the_file_changes_at_once_and_keeps_its_mode_and_links(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.chmod(0o640)
    link = path.with_name("link.toml")
    link.symlink_to(path.name)
    write_anchors(link, "gpu", ANCHORS)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    once = path.read_bytes()

    def refused(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", refused)
    with pytest.raises(OSError, match="No space left"):
        write_anchors(path, "cpu", ANCHORS)
    assert path.read_bytes() == once
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["link.toml", "task.toml"]


def test_what_dumps_writes_is_plain_toml(path: Path) -> None:
    data = tomllib.loads(dumps(load(path)))
    assert data["profiles"]["cpu"]["limits"]["wall_s"] == 3.0
    assert "anchors" not in data["profiles"]["cpu"]
