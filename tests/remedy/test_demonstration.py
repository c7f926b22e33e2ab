"""`make remedies`: every step once, what is done already not again, and an interrupted run goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import remedies
from steps import ROOT, StepFailed

PROOF = {
    "tests": 30,
    "foretold": 10,
    "freed": ["a"] * 11,
    "freed_as_foretold": 9,
    "left_by_noise": 1,
    "worse": [],
    "appeared": [{"name": "x", "tests": 7}],
    "wrong": [],
    "transfers": {
        "cores": 32,
        "every": {
            "tests": 1200,
            "before": {"plain": 18.4, "taken_over": 19.0},
            "predicted": {"plain": 15.65, "taken_over": 15.7},
            "counted": {"plain": 15.57, "taken_over": 15.6},
            "median_error": 0.02,
            "right": 1199,
        },
        "alike": None,
    },
}


class Commutant:
    """Answers as the command would, and keeps what it was asked."""

    def __init__(self) -> None:
        self.kernels: list[str] = []
        self.asked: list[tuple[str, ...]] = []

    def __call__(self, *arguments: str, fails: bool = False) -> str:
        if arguments[:2] == ("kernel", "list"):
            return json.dumps({"kernels": [{"names": [name]} for name in self.kernels]})
        self.asked.append(arguments)
        if arguments[:2] == ("kernel", "build"):
            self.kernels.append(arguments[arguments.index("--name") + 1])
        elif arguments[0] in ("check", "resume"):
            path = Path(arguments[-1])
            path.mkdir(exist_ok=True)
            (path / "summary.json").write_text("{}")
        elif arguments[0] == "prove":
            assert fails
            return json.dumps(PROOF)
        return ""

    def steps(self) -> list[str]:
        """What was done besides proving."""
        asked = [one for one in self.asked if one[0] != "prove"]
        self.asked.clear()
        return [" ".join(one[:2]) if one[0] == "kernel" else one[0] for one in asked]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commutant:
    fake = Commutant()
    monkeypatch.setattr(remedies, "commutant", fake)
    monkeypatch.setattr(remedies, "ROOT", tmp_path)
    monkeypatch.setattr(remedies, "RUNS", tmp_path / "runs")
    return fake


def test_a_second_time_only_proves(fake: Commutant, capsys: pytest.CaptureFixture[str]) -> None:
    patches = len(list((ROOT / "patches/linux/6.12").glob("*.patch")))
    remedies.demonstrate("6.12")
    first = fake.steps()
    assert first.count("kernel build") == patches + 2  # the base, and all patches together
    assert (first.count("check"), first[0]) == (patches + 3, "prepare")
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| fd-array-spread")]
    assert rows == ["| fd-array-spread | 30 | 10 | 9 | 2 | 1 | 0 | 7 | 0 | 18.4, 15.7, 15.6; 0.02, 1,199 of 1,200 |"]
    fake.kernels.append("linux-image-6.12-amd64")
    remedies.demonstrate("6.12")
    assert fake.steps() == []


def test_an_interrupted_run_goes_on(fake: Commutant) -> None:
    remedies.demonstrate("6.1")
    fake.steps()
    (remedies.RUNS / "6.1" / "cred-non-rcu" / "summary.json").unlink()
    fake.kernels.remove("remedies-6.1-shmem-huge")
    remedies.demonstrate("6.1")
    assert sorted(fake.steps()) == ["kernel build", "resume"]


def test_a_plan_says_time_and_space_of_each_step_and_does_nothing(
    fake: Commutant, capsys: pytest.CaptureFixture[str]
) -> None:
    patches = [path.stem for path in (ROOT / "patches/linux/6.12").glob("*.patch")]
    assert remedies.main(["--plan", "6.12"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert fake.steps() == [] and not remedies.RUNS.exists()
    assert len(lines) == len(patches) + 4
    assert all(" minutes, " in line and line.endswith(("MB", "GB")) for line in lines)
    assert all(any(f", {patch}: " in line for line in lines) for patch in patches)


def test_a_plan_says_what_is_there(fake: Commutant, capsys: pytest.CaptureFixture[str]) -> None:
    remedies.demonstrate("6.12")
    fake.kernels.remove("remedies-6.12-cred-non-rcu")
    (remedies.RUNS / "6.12" / "again" / "summary.json").unlink()
    capsys.readouterr()
    remedies.main(["--plan", "6.12"])
    left = [line for line in capsys.readouterr().err.splitlines() if not line.endswith("(there)")]
    assert [line.split(":")[1] for line in left] == [" Linux 6.12, run of it again", " Linux 6.12, cred-non-rcu"]


def test_an_unknown_series_is_refused_in_one_line(fake: Commutant) -> None:
    with pytest.raises(StepFailed, match=r"^expected --plan or series of Linux \(6\.1, 6\.12\), got 5\.10$"):
        remedies.main(["5.10"])


def test_each_patch_has_a_change_that_foretells_it() -> None:
    there = {path.stem for path in remedies.PATCHES.glob("*/*.patch")}
    assert there == set(remedies.CHANGES)
    assert {path.name for path in remedies.PATCHES.iterdir() if path.is_dir()} == set(remedies.REFERENCES)
