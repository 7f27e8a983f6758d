import datetime as dt
import difflib
import os
import re
import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from re_bench import manifest_edit, manifest_words
from re_bench.manifest import Anchors, Manifest, ManifestError, Source, Spread, load
from re_bench.manifest_edit import dumps, write_anchors

TASK = """\
# The manifest of an example. é
id = "ai_rd_example"   # as in the seed
title = "An example"
description = "Make it fast"
version = 1
direction = "lower"
aggregation = "min"
unit = "ln(milliseconds)"
submission = ["solution.py"]

# ---- what runs anywhere ----
[profiles.cpu]
description = "small"
device = "cpu"
time_limit_s = 60  # plenty

[profiles.cpu.limits]
wall_s = 3
# a remark about wall_s

# ---- one modern GPU ----
[profiles.gpu]
description = "big"
device = "cuda"
time_limit_s = 60.0

# the scale
[profiles.gpu.anchors] # in ln(ms)
starting = 2.0 # baseline
reference = 1 # ours
# a remark about reference

# and its source
[profiles.gpu.anchors.source]
kind = "published"  # not ours
where = '''
a paper'''

[[published]]
name = "a port"
hardware = "L4"
starting = 3.0
reference = 1.0
where = "its README"

[reference]
command = ["python", "make.py", ""]
time_limit_s = 5

[cheats.read_clock]
description = "patches the clock"
expect = "invalid"
reason = "clock|time"

# ---- the original ----
[profiles.paper]
description = "full"
device = "cuda"
time_limit_s = 1
# the end
"""
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


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "task.toml"
    path.write_text(TASK, encoding="utf-8")
    return path


def problems(path: Path) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        load(path)
    assert str(caught.value).splitlines() == list(caught.value.problems)
    return [line.removeprefix(f"{path}: ") for line in caught.value.problems]


def test_a_manifest_is_read(path: Path) -> None:
    manifest = load(path)
    assert manifest.id == "ai_rd_example"
    assert manifest.show_score
    assert list(manifest.profiles) == ["cpu", "gpu", "paper"]
    assert manifest.profiles["cpu"].limits.wall_s == 3.0
    assert manifest.profiles["cpu"].tolerance.baseline == 0.05
    assert manifest.reference is not None
    assert manifest.reference.command == ("python", "make.py", "")
    assert manifest.cheats["read_clock"].reason == "clock|time"
    assert [entry.note for entry in manifest.published] == [""]


def test_anchors_of_a_profile(path: Path) -> None:
    manifest = load(path)
    anchors = manifest.anchors("gpu")
    assert anchors is not None
    assert (anchors.starting, anchors.reference, anchors.source.kind) == (2.0, 1.0, "published")
    assert manifest.anchors("cpu") is None
    with pytest.raises(KeyError, match=r"ai_rd_example has no profile 'tpu'; it has: cpu, gpu, paper"):
        manifest.anchors("tpu")


def test_profiles_may_be_absent(path: Path) -> None:
    top, _, rest = TASK.partition("# ---- what runs anywhere")
    path.write_text(top + rest[rest.index("[[published]]") : rest.index("[reference]")])
    assert load(path).profiles == {}


# Each row: what to replace in TASK, by what, and the exact lines after the file's name.
MALFORMED = {
    "unknown key": (
        'device = "cpu"\n',
        'device = "cpu"\ndevise = 1\n',
        [
            (
                "profiles.cpu.devise: unknown key; expected one of: description, device, modelled, time_limit_s, "
                "tolerance, limits, anchors (did you mean device?)"
            )
        ],
    ),
    "unknown key without a likeness": (
        "# and its source\n",
        "zzz = 1\n",
        ["profiles.gpu.anchors.zzz: unknown key; expected one of: starting, reference, source"],
    ),
    "unknown key in need of quotes": (
        "[profiles.cpu.limits]\n",
        '[profiles.cpu.limits]\n"wall s" = 1\n',
        [
            (
                'profiles.cpu.limits."wall s": unknown key; expected one of: wall_s, cpu_s, memory_mib, processes, '
                "file_mib, open_files, output_kib (did you mean wall_s?)"
            )
        ],
    ),
    "unknown profile": (
        "[profiles.paper]",
        "[profiles.papr]",
        ["profiles.papr: unknown key; expected one of: cpu, gpu, paper (did you mean paper?)"],
    ),
    "missing key": ('title = "An example"\n', "", ["title: expected one line of text, got nothing"]),
    "missing inner key": (
        'name = "a port"\n',
        "",
        ["published[0].name: expected the name of the publication or port, got nothing"],
    ),
    "bad id": (
        '"ai_rd_example"',
        '"AI-RD"',
        ['id: expected a name of lower-case letters, digits and _ that begins with a letter, got "AI-RD"'],
    ),
    "id with a newline": (
        '"ai_rd_example"',
        '"ai\\n"',
        ['id: expected a name of lower-case letters, digits and _ that begins with a letter, got "ai\\n"'],
    ),
    "two lines": (
        '"An example"',
        '"An\\nexample"',
        ['title: expected one line of text that is not empty, got "An\\nexample"'],
    ),
    "empty line": ('"An example"', '" "', ['title: expected one line of text that is not empty, got " "']),
    "empty text": ('"its README"', '""', ['published[0].where: expected text that is not empty, got ""']),
    "number for text": ('"An example"', "3", ["title: expected text in quotes, got 3"]),
    "version zero": ("version = 1", "version = 0", ["version: expected a number of at least 1, got 0"]),
    "version in quotes": ("version = 1", 'version = "1"', ['version: expected a whole number, got "1"']),
    "version with a point": ("version = 1", "version = 1.0", ["version: expected a whole number, got 1.0"]),
    "version true": ("version = 1", "version = true", ["version: expected a whole number, got true"]),
    "direction": ('"lower"', '"down"', ["direction: expected one of 'lower' or 'higher', got \"down\""]),
    "aggregation": ('"min"', '"mean"', ["aggregation: expected one of 'min', 'max' or 'last', got \"mean\""]),
    "long text": (
        '"lower"',
        '"' + "x" * 200 + '"',
        ["direction: expected one of 'lower' or 'higher', got \"" + "x" * 59 + "…"],
    ),
    "switch": ("version = 1", "version = 1\nshow_score = 1", ["show_score: expected true or false, got 1"]),
    "no files": ('["solution.py"]', "[]", ["submission: expected a list that is not empty, got an empty list"]),
    "one file": ('["solution.py"]', '"solution.py"', ['submission: expected a list, got "solution.py"']),
    "files outside": (
        '["solution.py"]',
        '["a/b.py", "../x", "/etc/x", ".", "a//b", 3]',
        [
            f"submission[{index}]: expected the name of a file relative to the submission, without .. and not "
            f"absolute, got {got}"
            for index, got in enumerate(['"../x"', '"/etc/x"', '"."', '"a//b"'], start=1)
        ]
        + ["submission[5]: expected text in quotes, got 3"],
    ),
    "number in place of a table": (
        "[profiles.cpu.limits]\nwall_s = 3",
        "limits = 3",
        ["profiles.cpu.limits: expected a table, got 3"],
    ),
    "not positive": ("wall_s = 3", "wall_s = 0", ["profiles.cpu.limits.wall_s: expected a number above 0, got 0"]),
    "half a process": (
        "wall_s = 3",
        "processes = 1.5",
        ["profiles.cpu.limits.processes: expected a whole number, got 1.5"],
    ),
    "endless": ("wall_s = 3", "wall_s = inf", ["profiles.cpu.limits.wall_s: expected a finite number, got inf"]),
    "anchor is no number": (
        "starting = 2.0",
        "starting = nan",
        ["profiles.gpu.anchors.starting: expected a finite number, got nan"],
    ),
    "equal anchors": (
        "reference = 1 #",
        "reference = 2 #",
        ["profiles.gpu.anchors.reference: expected a number other than starting, got 2"],
    ),
    "anchors in the wrong order": (
        "reference = 1 #",
        "reference = 9 #",
        ["profiles.gpu.anchors.reference: expected a number below starting (2.0), because direction is lower, got 9"],
    ),
    "direction against the anchors": (
        '"lower"',
        '"higher"',
        ["profiles.gpu.anchors.reference: expected a number above starting (2.0), because direction is higher, got 1"],
    ),
    "measured without saying how": (
        'kind = "published"',
        'kind = "measured"\nrepeats = 0\ndate = "2026-01-31"\nhardware = "H200"',
        [
            'profiles.gpu.anchors.source.date: expected a date such as 2026-01-31, without quotes, got "2026-01-31"',
            "profiles.gpu.anchors.source.repeats: expected a number of at least 1, got 0",
            (
                "profiles.gpu.anchors.source.spread: expected a table with the spread of starting and reference, "
                "because kind is measured, got nothing"
            ),
            (
                "profiles.gpu.anchors.source.versions: expected a table of program versions, because kind is measured, "
                "got nothing"
            ),
        ],
    ),
    "a time where a date belongs": (
        'kind = "published"',
        'kind = "published"\ndate = 2026-01-31T00:00:00',
        [
            (
                "profiles.gpu.anchors.source.date: expected a date such as 2026-01-31, without quotes, "
                "got 2026-01-31T00:00:00"
            )
        ],
    ),
    "negative spread": (
        'kind = "published"',
        'kind = "published"\nspread = {starting = -1, reference = 0}',
        ["profiles.gpu.anchors.source.spread.starting: expected a number of at least 0, got -1"],
    ),
    "version number of a program": (
        'kind = "published"',
        'kind = "published"\nversions = {torch = 2}',
        ["profiles.gpu.anchors.source.versions.torch: expected text in quotes, got 2"],
    ),
    "empty command": (
        '["python", "make.py", ""]',
        "[]",
        ["reference.command: expected a list that is not empty, got an empty list"],
    ),
    "cheat name": (
        "[cheats.read_clock]",
        '[cheats."../x"]',
        [
            (
                'cheats."../x": expected the name of a folder: lower-case letters, digits, _ and -, beginning with a '
                'letter, got "../x"'
            )
        ],
    ),
    "reason": (
        '"clock|time"',
        '"clock{(["',
        [
            (
                "cheats.read_clock.reason: expected a regular expression (unterminated character set at position 7), "
                'got "clock{(["'
            )
        ],
    ),
    "everything at once": (
        'title = "An example"\ndescription = "Make it fast"\nversion = 1',
        "titel = 1\nversion = -1",
        [
            "title: expected one line of text, got nothing",
            "description: expected one line that says what the task is, got nothing",
            "version: expected a number of at least 1, got -1",
            (
                "titel: unknown key; expected one of: id, title, description, version, direction, aggregation, "
                "show_score, unit, submission, profiles, published, reference, cheats (did you mean title?)"
            ),
        ],
    ),
    "a later mistake is not hidden by an earlier one": (
        "reference = 1 #",
        "reference = 2.0 #\nx = 1 #",
        [
            "profiles.gpu.anchors.x: unknown key; expected one of: starting, reference, source",
            "profiles.gpu.anchors.reference: expected a number other than starting, got 2.0",
        ],
    ),
    "syntax": (
        "version = 1",
        "version = ",
        ["expected valid TOML, got: Invalid value (at line 5, column 11)"],
    ),
    "a key twice": (
        "version = 1",
        "version = 1\nversion = 1",
        ["expected valid TOML, got: Cannot overwrite a value (at line 6, column 12)"],
    ),
    "too deep": ("version = 1", "version = " + "[" * 100_000, None),
    "too many digits": ("version = 1", "version = " + "1" * 5_000, None),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_manifests(path: Path, name: str) -> None:
    old, new, expected = MALFORMED[name]
    assert TASK.count(old) == 1
    path.write_text(TASK.replace(old, new), encoding="utf-8")
    found = problems(path)
    if expected is None:
        assert len(found) == 1
        assert found[0].startswith("expected valid TOML, got: ")
    else:
        assert found == expected


def test_what_is_no_readable_file(tmp_path: Path) -> None:
    assert problems(tmp_path / "none.toml") == ["expected a readable file, got: no such file"]
    assert problems(tmp_path) == ["expected a file, got a directory"]
    assert problems(Path("/dev/null")) == ["expected a file, got a pipe, socket or device"]
    os.mkfifo(tmp_path / "pipe")
    assert problems(tmp_path / "pipe") == ["expected a file, got a pipe, socket or device"]
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b'id = "\xe9"\n')
    assert problems(latin) == ["expected UTF-8 text, got other bytes at offset 6"]
    assert problems(latin / "task.toml") == ["expected a readable file, got: Not a directory"]


def test_a_file_without_permission_to_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: Path) -> bytes:
        raise PermissionError(13, os.strerror(13))

    monkeypatch.setattr(Path, "read_bytes", refused)
    assert problems(path) == ["expected a readable file, got: Permission denied"]


def test_an_error_without_words_of_ours_keeps_those_of_pydantic() -> None:
    words = manifest_words._expected({"type": "new", "loc": (), "msg": "Input {should} fit", "input": 1})
    assert words == "Input {should} fit"


def test_models_made_in_python_obey_the_same_rules(path: Path) -> None:
    with pytest.raises(ValidationError, match="expected a number other than starting"):
        Anchors(starting=1, reference=1, source=MEASURED)
    with pytest.raises(ValidationError, match="because kind is modelled"):
        Source(kind="modelled", where="here")
    data = dict(load(path))
    wrong = data["profiles"]["gpu"].model_copy(update={"anchors": Anchors(starting=1, reference=2, source=MEASURED)})
    with pytest.raises(ValidationError, match="expected a number below starting"):
        Manifest(**(data | {"profiles": {"gpu": wrong}}))
    with pytest.raises(ValidationError, match="frozen"):
        load(path).version = 2


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
SOURCES = st.fixed_dictionaries({"kind": st.sampled_from(["measured", "modelled"]), **HOW}) | st.fixed_dictionaries(
    {"kind": st.just("published"), "where": HOW["where"]},
    optional={key: value for key, value in HOW.items() if key != "where"},
)
LIMITS = st.fixed_dictionaries(
    {},
    optional={"wall_s": POSITIVE}
    | dict.fromkeys(["cpu_s", "memory_mib", "processes", "file_mib", "open_files", "output_kib"], COUNTS),
)
CHEATS = st.fixed_dictionaries(
    {"description": LINES, "expect": st.sampled_from(["invalid", "no_better"])},
    optional={"reason": TEXTS.map(re.escape)},
)
PUBLISHED = st.fixed_dictionaries(
    {"name": LINES, "hardware": TEXTS, "starting": NUMBERS, "reference": NUMBERS, "where": TEXTS},
    optional={"note": NOTES},
)


@st.composite
def anchor_tables(draw: st.DrawFn, direction: str) -> dict[str, Any]:
    low, high = sorted(draw(st.lists(NUMBERS, min_size=2, max_size=2, unique=True)))
    starting, reference = (high, low) if direction == "lower" else (low, high)
    return {"starting": starting, "reference": reference, "source": draw(SOURCES)}


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    direction = draw(st.sampled_from(["lower", "higher"]))
    profile = st.fixed_dictionaries(
        {"description": LINES, "device": st.sampled_from(["cpu", "cuda"]), "time_limit_s": POSITIVE},
        optional={
            "modelled": st.booleans(),
            "tolerance": st.fixed_dictionaries({}, optional={"baseline": st.floats(0, 1), "reference": POSITIVE}),
            "limits": LIMITS,
            "anchors": anchor_tables(direction),
        },
    )
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
        "profiles": st.dictionaries(st.sampled_from(["cpu", "gpu", "paper"]), profile),
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
    anchors = Anchors.model_validate(data.draw(anchor_tables(manifest.direction)))
    path = tmp_path_factory.mktemp("anchors") / "task.toml"
    path.write_bytes(dumps(manifest).encode())
    for name, profile in manifest.profiles.items():
        write_anchors(path, name, anchors)
        assert load(path).anchors(name) == anchors
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


def test_reading_does_not_import_tomlkit() -> None:
    code = "import sys, re_bench.manifest, re_bench.attempts; sys.exit('tomlkit' in sys.modules)"
    environment = os.environ | {"PYTHONPATH": str(Path(manifest_words.__file__).parents[1])}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0


def test_what_dumps_writes_is_plain_toml(path: Path) -> None:
    data = tomllib.loads(dumps(load(path)))
    assert data["profiles"]["cpu"]["limits"]["wall_s"] == 3.0
    assert "anchors" not in data["profiles"]["cpu"]
