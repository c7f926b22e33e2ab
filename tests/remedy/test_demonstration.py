"""`make remedies`: every step once, what is done already not again, and an interrupted run goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import remedies
from steps import ROOT

PROOF = {
    "tests": 30,
    "foretold": 10,
    "freed": ["a"] * 11,
    "freed_as_foretold": 9,
    "left_by_noise": 1,
    "worse": [],
    "appeared": [{"name": "x", "tests": 7}],
    "wrong": [],
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
    assert rows == ["| fd-array-spread | 30 | 10 | 9 | 2 | 1 | 0 | 7 | 0 |"]
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


def test_each_patch_has_a_change_that_foretells_it() -> None:
    there = {path.stem for path in remedies.PATCHES.glob("*/*.patch")}
    assert there == set(remedies.CHANGES)
    assert {path.name for path in remedies.PATCHES.iterdir() if path.is_dir()} == set(remedies.REFERENCES)
