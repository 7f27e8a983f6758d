"""Anchors that are measured in every run, and what cheats do in which profile."""

from pathlib import Path

import pytest

from re_bench.task.manifest import Expectation, Recipe
from re_bench.task.manifest_file import ManifestError, load

TASK = (Path(__file__).parent / "example_task.toml").read_text(encoding="utf-8")
DEVICE = """
[[profiles.paper.devices]]
starting = 3.0
reference = 1.0
source = {kind = "published", where = "a paper", hardware = "H200"}
"""
IN_RUN = TASK.replace("time_limit_s = 1\n", "time_limit_s = 1\nin_run = true\n") + DEVICE
UNKNOWN = "Input should be 'cpu', 'gpu' or 'paper', or one of these, a dash and a word"
CHEAT = '[cheats.read_clock]\ndescription = "patches the clock"\n'


def test_anchors_of_devices_are_no_anchors_of_the_profile(path: Path) -> None:
    path.write_text(IN_RUN + DEVICE.replace("H200", "L4").replace("3.0", "4.0"))
    devices = load(path).profiles["paper"].devices
    assert [(entry.source.hardware, entry.starting) for entry in devices] == [("H200", 3.0), ("L4", 4.0)]
    assert load(path).anchors("paper") is None


def test_a_profile_measured_in_every_run_needs_no_stored_anchors(path: Path) -> None:
    path.write_text(IN_RUN.replace(DEVICE, ""))
    assert load(path).profiles["paper"].devices == ()


MEASURED = """
kind = "measured", where = "x", date = 2026-01-31, repeats = 1, spread = {starting = 0, reference = 0}, versions = {}
""".strip()

# Each row: what to replace in IN_RUN, by what, and the exact lines after the file's name.
MALFORMED = {
    "anchors where every run measures them": (
        "\n[[profiles.paper.devices]]",
        "\n[profiles.paper.anchors]",
        ["profiles.paper.anchors: Input should be a list of devices instead, because in_run is true, got a table"],
    ),
    "devices where no run measures them": (
        "in_run = true",
        "in_run = false",
        [
            (
                "profiles.paper.devices: Input should be one table of anchors instead, because in_run is not true, "
                "got a list"
            )
        ],
    ),
    "anchors and devices": (
        "in_run = true\n",
        'anchors = {starting = 3, reference = 1, source = {kind = "published", where = "x"}}\n',
        [
            (
                "profiles.paper.devices: Input should be one table of anchors instead, because in_run is not true, "
                "got a list"
            )
        ],
    ),
    "a device twice": (
        DEVICE,
        DEVICE * 2,
        ['profiles.paper.devices[1].source.hardware: Input should be a name that no other entry has, got "H200"'],
    ),
    "a device without a name": (
        ', hardware = "H200"',
        "",
        ["profiles.paper.devices[0].source.hardware: Field required, the name of the device"],
    ),
    "a measured device without a name": (
        'kind = "published", where = "a paper", hardware = "H200"',
        MEASURED,
        [
            "profiles.paper.devices[0].source.hardware: Field required, because kind is measured",
        ],
    ),
    "a device the wrong way round": (
        "starting = 3.0\nreference = 1.0\nsource",
        "starting = 3.0\nreference = 9.0\nsource",
        [
            (
                "profiles.paper.devices[0].reference: Input should be a number below starting (3.0), because direction "
                "is lower, got 9.0"
            )
        ],
    ),
    "one table for a list": (
        "[[profiles.paper.devices]]",
        "[profiles.paper.devices]",
        ["profiles.paper.devices: Input should be a list, got a table"],
    ),
    "a cheat in no profile": (
        CHEAT,
        CHEAT + "profiles = []\n",
        ["cheats.read_clock.profiles: Input should be a list that is not empty, got an empty list"],
    ),
    "a cheat in an unknown profile": (
        CHEAT,
        CHEAT + 'profiles = ["papr"]\n',
        [f'cheats.read_clock.profiles[0]: {UNKNOWN}, got "papr"'],
    ),
    "an expectation on an unknown profile": (
        CHEAT,
        CHEAT + 'on.papr.expect = "invalid"\n',
        [f'cheats.read_clock.on.papr: {UNKNOWN}, got "papr"'],
    ),
    "an expectation on a profile in which the cheat is not run": (
        CHEAT,
        CHEAT + 'profiles = ["cpu"]\non.gpu.expect = "invalid"\n',
        [
            (
                "cheats.read_clock.on.gpu: Input should be left out, or the cheat's profiles should have this one too, "
                "got a table"
            )
        ],
    ),
    "a cheat made without a limit": (
        CHEAT,
        CHEAT + 'make = {command = ["x"], time_limit_s = 0, wall_s = 1}\n',
        [
            "cheats.read_clock.make.time_limit_s: Input should be greater than 0, got 0",
            "cheats.read_clock.make.wall_s: unknown key; expected one of: command, time_limit_s",
        ],
    ),
    "an expectation that says nothing": (
        CHEAT,
        CHEAT + 'on.gpu.reason = "x"\n',
        ["cheats.read_clock.on.gpu.expect: Field required"],
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_profiles_and_cheats(path: Path, name: str) -> None:
    old, new, expected = MALFORMED[name]
    assert IN_RUN.count(old) == 1
    path.write_text(IN_RUN.replace(old, new), encoding="utf-8")
    with pytest.raises(ManifestError) as caught:
        load(path)
    assert [line.removeprefix(f"{path}: ") for line in caught.value.problems] == expected


def test_what_a_cheat_must_come_to_depends_on_the_profile(path: Path) -> None:
    path.write_text(TASK.replace(CHEAT, CHEAT + 'on.gpu = {expect = "no_better"}\n'))
    cheat = load(path).cheats["read_clock"]
    assert cheat.expectation("gpu") == Expectation(expect="no_better")
    assert (cheat.expectation("cpu").expect, cheat.expectation("cpu").reason) == ("invalid", "clock|time")
    assert all(cheat.runs_on(profile) for profile in ("cpu", "gpu", "paper"))


def test_a_cheat_may_be_made_by_a_command(path: Path) -> None:
    assert load(path).cheats["read_clock"].make is None
    path.write_text(f'{TASK}\n[cheats.read_clock.make]\ncommand = ["python", "make.py"]\ntime_limit_s = 60\n')
    assert load(path).cheats["read_clock"].make == Recipe(command=("python", "make.py"), time_limit_s=60)


def test_a_cheat_may_be_meant_for_some_profiles_only(path: Path) -> None:
    path.write_text(TASK.replace(CHEAT, CHEAT + 'profiles = ["gpu", "paper"]\n'))
    cheat = load(path).cheats["read_clock"]
    assert [cheat.runs_on(profile) for profile in ("cpu", "gpu", "paper")] == [False, True, True]
