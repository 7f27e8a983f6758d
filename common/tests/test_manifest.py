import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from re_bench.task.anchors import Anchors, Source
from re_bench.task.manifest import Manifest
from re_bench.task.manifest_file import ManifestError, load

TASK = (Path(__file__).parent / "example_task.toml").read_text(encoding="utf-8")
SOURCE = Source(kind="published", where="here")


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
                "profiles.cpu.devise: unknown key; expected one of: description, device, modelled, parallel, "
                "time_limit_s, tolerance, limits, instance, in_run, anchors, devices, models (did you mean device?)"
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
                "file_mib, disk_mib, open_files, output_kib, tmp_mib (did you mean wall_s?)"
            )
        ],
    ),
    "unknown profile": (
        "[profiles.paper]",
        "[profiles.papr]",
        ["profiles.papr: Input should be 'cpu', 'gpu' or 'paper', or one of these, a dash and a word, got \"papr\""],
    ),
    "missing key": ('title = "An example"\n', "", ["title: Field required"]),
    "missing inner key": (
        'name = "a port"\n',
        "",
        ["published[0].name: Field required"],
    ),
    "bad id": (
        '"ai_rd_example"',
        '"AI-RD"',
        ["id: String should match pattern '^[a-z][a-z0-9_]*$', got \"AI-RD\""],
    ),
    "id with a newline": (
        '"ai_rd_example"',
        '"ai\\n"',
        ["id: String should match pattern '^[a-z][a-z0-9_]*$', got \"ai\\n\""],
    ),
    "two lines": (
        '"An example"',
        '"An\\nexample"',
        ['title: Input should be one line of text that is not empty, got "An\\nexample"'],
    ),
    "empty line": ('"An example"', '" "', ['title: Input should be one line of text that is not empty, got " "']),
    "empty text": ('"its README"', '""', ['published[0].where: Input should be text that is not empty, got ""']),
    "number for text": ('"An example"', "3", ["title: Input should be a valid string, got 3"]),
    "version zero": ("version = 1", "version = 0", ["version: Input should be greater than or equal to 1, got 0"]),
    "version in quotes": ("version = 1", 'version = "1"', ['version: Input should be a valid integer, got "1"']),
    "version with a point": ("version = 1", "version = 1.0", ["version: Input should be a valid integer, got 1.0"]),
    "version true": ("version = 1", "version = true", ["version: Input should be a valid integer, got true"]),
    "direction": ('"lower"', '"down"', ["direction: Input should be 'lower' or 'higher', got \"down\""]),
    "aggregation": ('"min"', '"mean"', ["aggregation: Input should be 'min', 'max' or 'last', got \"mean\""]),
    "long text": (
        '"lower"',
        '"' + "x" * 200 + '"',
        ["direction: Input should be 'lower' or 'higher', got \"" + "x" * 59 + "…"],
    ),
    "switch": ("version = 1", "version = 1\nshow_score = 1", ["show_score: Input should be a valid boolean, got 1"]),
    "no files": ('["solution.py"]', "[]", ["submission: Input should be a list that is not empty, got an empty list"]),
    "one file": ('["solution.py"]', '"solution.py"', ['submission: Input should be a list, got "solution.py"']),
    "names of nothing": (
        "\n[reference]",
        "\n[staging]\nnames = []\nmib = 0\n[reference]",
        [
            "staging.mib: Input should be greater than 0, got 0",
            "staging.names: Input should be a list that is not empty, got an empty list",
        ],
    ),
    "names below the top": (
        "\n[reference]",
        '\n[staging]\nnames = ["solution.py", "a/b", "..", "!", 3]\n[reference]',
        ["staging.names[4]: Input should be a valid string, got 3"]
        + [
            f"staging.names[{index}]: Input should be the name of a file or directory at the submission's top, or ! "
            f"and a name, got {got}"
            for index, got in enumerate(['"a/b"', '".."', '"!"'], start=1)
        ],
    ),
    "names with and without !": (
        "\n[reference]",
        '\n[staging]\nnames = ["solution.py", "!data"]\n[reference]',
        ["staging.names: Input should hold names that all begin with ! or all do not, got a list"],
    ),
    "names without the submission": (
        "\n[reference]",
        '\n[staging]\nnames = ["weights"]\n[reference]',
        ["staging.names: Input should include solution.py, because it is in submission, got a list"],
    ),
    "names all but the submission": (
        "\n[reference]",
        '\n[staging]\nnames = ["!solution.py"]\n[reference]',
        ["staging.names: Input should include solution.py, because it is in submission, got a list"],
    ),
    "files outside": (
        '["solution.py"]',
        '["a/b.py", "../x", "/etc/x", ".", "a//b", 3]',
        [
            f"submission[{index}]: Input should be a file's name relative to the submission, without .. and not "
            f"absolute, got {got}"
            for index, got in enumerate(['"../x"', '"/etc/x"', '"."', '"a//b"'], start=1)
        ]
        + ["submission[5]: Input should be a valid string, got 3"],
    ),
    "number in place of a table": (
        "[profiles.cpu.limits]\nwall_s = 3",
        "limits = 3",
        ["profiles.cpu.limits: Input should be a table, got 3"],
    ),
    "not positive": ("wall_s = 3", "wall_s = 0", ["profiles.cpu.limits.wall_s: Input should be greater than 0, got 0"]),
    "half a process": (
        "wall_s = 3",
        "processes = 1.5",
        ["profiles.cpu.limits.processes: Input should be a valid integer, got 1.5"],
    ),
    "endless": ("wall_s = 3", "wall_s = inf", ["profiles.cpu.limits.wall_s: Input should be a finite number, got inf"]),
    "anchor is no number": (
        "starting = 2.0",
        "starting = nan",
        ["profiles.gpu.anchors.starting: Input should be a finite number, got nan"],
    ),
    "equal anchors": (
        "reference = 1 #",
        "reference = 2 #",
        ["profiles.gpu.anchors.reference: Input should differ from starting, got 2"],
    ),
    "anchors in the wrong order": (
        "reference = 1 #",
        "reference = 9 #",
        [
            (
                "profiles.gpu.anchors.reference: Input should be a number below starting (2.0), because direction is "
                "lower, got 9"
            )
        ],
    ),
    "direction against the anchors": (
        '"lower"',
        '"higher"',
        [
            (
                "profiles.gpu.anchors.reference: Input should be a number above starting (2.0), because direction is "
                "higher, got 1"
            )
        ],
    ),
    "measured without saying how": (
        'kind = "published"',
        'kind = "measured"\nrepeats = 0\ndate = "2026-01-31"\nhardware = "H200"',
        [
            'profiles.gpu.anchors.source.date: Input should be a valid date, got "2026-01-31"',
            "profiles.gpu.anchors.source.repeats: Input should be greater than or equal to 1, got 0",
            "profiles.gpu.anchors.source.spread: Field required, because kind is measured",
            "profiles.gpu.anchors.source.versions: Field required, because kind is measured",
        ],
    ),
    "a time where a date belongs": (
        'kind = "published"',
        'kind = "published"\ndate = 2026-01-31T00:00:00',
        [("profiles.gpu.anchors.source.date: Input should be a valid date, got 2026-01-31T00:00:00")],
    ),
    "negative spread": (
        'kind = "published"',
        'kind = "published"\nspread = {starting = -1, reference = 0}',
        ["profiles.gpu.anchors.source.spread.starting: Input should be greater than or equal to 0, got -1"],
    ),
    "version number of a program": (
        'kind = "published"',
        'kind = "published"\nversions = {torch = 2}',
        ["profiles.gpu.anchors.source.versions.torch: Input should be a valid string, got 2"],
    ),
    "empty command": (
        '["python", "make.py", ""]',
        "[]",
        ["reference.command: Input should be a list that is not empty, got an empty list"],
    ),
    "cheat name": (
        "[cheats.read_clock]",
        '[cheats."../x"]',
        [('cheats."../x": String should match pattern \'^[a-z][a-z0-9_-]*$\', got "../x"')],
    ),
    "reason": (
        '"clock|time"',
        '"clock{(["',
        [
            (
                "cheats.read_clock.reason: Input should be a regular expression (unterminated character set at "
                'position 7), got "clock{(["'
            )
        ],
    ),
    "everything at once": (
        'title = "An example"\ndescription = "Make it fast"\nversion = 1',
        "titel = 1\nversion = -1",
        [
            "title: Field required",
            "description: Field required",
            "version: Input should be greater than or equal to 1, got -1",
            (
                "titel: unknown key; expected one of: id, title, description, version, direction, aggregation, "
                "show_score, unit, resolution, submission, shared_data, staging, profiles, published, reference, "
                "cheats, model, meter, rebuild, programs (did you mean title?)"
            ),
        ],
    ),
    "a later mistake is not hidden by an earlier one": (
        "reference = 1 #",
        "reference = 2.0 #\nx = 1 #",
        [
            "profiles.gpu.anchors.x: unknown key; expected one of: starting, reference, source",
            "profiles.gpu.anchors.reference: Input should differ from starting, got 2.0",
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
    lines = problems(path)
    if expected is None:
        assert len(lines) == 1
        assert lines[0].startswith("expected valid TOML, got: ")
    else:
        assert lines == expected


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


def test_models_made_in_python_obey_the_same_rules(path: Path) -> None:
    with pytest.raises(ValidationError, match="Input should differ from starting, got 1"):
        Anchors(starting=1, reference=1, source=SOURCE)
    with pytest.raises(ValidationError, match="because kind is modelled"):
        Source(kind="modelled", where="here")
    data = dict(load(path))
    wrong = data["profiles"]["gpu"].model_copy(update={"anchors": Anchors(starting=1, reference=2, source=SOURCE)})
    with pytest.raises(ValidationError, match="Input should be a number below starting"):
        Manifest(**(data | {"profiles": {"gpu": wrong}}))
    with pytest.raises(ValidationError, match="frozen"):
        load(path).version = 2
