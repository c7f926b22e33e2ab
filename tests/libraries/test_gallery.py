"""The gallery: its entries are there, verdicts are those that were kept, and pages are made of its data alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

import gallery_pages as gallery
from commutant.campaign import DEFAULT_REPEATS, Outcome
from commutant.lang.load import SHIPPED, load_interface
from commutant.runs import Check, judged_tests
from commutant.support.errors import UsageError
from commutant.targets.gallery import ENTRIES
from commutant.targets.registry import load_target, parse_target
from commutant.testgen import generate

KEPT = Path(__file__).resolve().parent / "kept_verdicts.json"
"""Per entry its interface, and the tests that share memory."""

SMALL = "mutex-vector"
"""Needs no network and no package."""


def kept() -> Mapping[str, Mapping[str, object]]:
    content: dict[str, dict[str, object]] = json.loads(KEPT.read_text())
    return content


def verdicts(entry: str, interface: str, folder: Path, options: str = "") -> dict[str, object]:
    """What a check of an entry says, as the file keeps it."""
    corpus = generate(load_interface(interface))
    with Check.new(
        corpus,
        load_target(f"gallery:{entry}{options}"),
        jobs=1,
        repeats=DEFAULT_REPEATS,
        seed=0,
        directory=folder / "run",
    ) as check:
        check.start(lambda text: None)
        run = check.run()
    assert run.summary.wrong_result == run.summary.crashed == run.summary.skipped == 0
    shared = sorted(judged.test.id for judged in judged_tests(run) if judged.outcome is Outcome.CONFLICTING)
    return {"interface": interface, "conflicting": shared}


def test_entries_have_adapters_and_every_interface_of_libraries_has_entries() -> None:
    assert all(entry.source.is_file() for entry in ENTRIES.values())
    assert len([entry for entry in ENTRIES.values() if entry.crate or entry.package]) >= 15
    shown = {interface for entry in ENTRIES.values() for interface in entry.interfaces}
    assert shown <= set(SHIPPED)
    wanted = {"map", "ordered-map", "queue", "stack", "counter", "kv", "refcount", "interner", "metrics"}
    assert wanted | {"allocator", "pool"} <= shown


def test_adapters_of_maps_are_small() -> None:
    for name in ("shared-mutex-map", "tbb-hash-map", "dashmap", "mutex-hashmap"):
        lines = ENTRIES[name].source.read_text().splitlines()
        assert len([line for line in lines if line.strip() and not line.startswith("//")]) <= 40, name


def test_a_target_takes_its_name_without_a_key() -> None:
    assert parse_target("gallery:dashmap,cores=4") == ("gallery", {"name": "dashmap", "cores": "4"})
    for argument, message in (
        ("gallery", "expected gallery:NAME with one of mutex-hashmap"),
        ("gallery:nothing", "expected gallery:NAME with one of"),
        ("gallery:dashmap,path=x", "expected no path"),
        ("library:dashmap", "expected library:key=value"),
    ):
        with pytest.raises(UsageError, match=message):
            load_target(argument)


def test_pages_are_made_of_the_data_alone() -> None:
    results = json.loads(gallery.DATA.read_text())["runs"]
    assert {found["entry"] for found in results} == set(ENTRIES)
    for name, text in gallery.pages(results).items():
        assert (gallery.PAGES / name).read_text() == text, name
        if name != "README.md":
            assert (gallery.PAGES / name.replace(".md", ".svg")).is_file()
    assert all(found["wrong_result"] == found["crashed"] == 0 for found in results)


def test_types_of_blocks_are_those_that_were_judged_by_hand() -> None:
    """Each distinct block that findings lie in was looked up in the library's source: has it the type that is reported?

    `null` marks a block that code without debug information asked for: nothing can tell its type.
    """
    judged: dict[str, bool | None] = json.loads((KEPT.parent / "judged_blocks.json").read_text())
    found = {block for run in json.loads(gallery.DATA.read_text())["runs"] for block in run["blocks"]}
    assert found == set(judged)
    right = sum(judgement is True for judgement in judged.values())
    told = sum(judgement is not None for judgement in judged.values())
    print(f"{right} of {told} distinct blocks have the right type, and {len(judged) - told} have no debug information")
    assert right >= 0.95 * told
    assert right >= 0.9 * len(judged)


def test_a_small_entry_keeps_its_verdicts(tmp_path: Path) -> None:
    assert verdicts(SMALL, "stack", tmp_path) == kept()[SMALL]


@pytest.mark.long
@pytest.mark.parametrize("entry", sorted(set(kept()) - {SMALL}))
def test_entries_keep_their_verdicts(entry: str, tmp_path: Path) -> None:
    assert len(kept()) >= 6
    known = kept()[entry]
    assert verdicts(entry, str(known["interface"]), tmp_path) == known


@pytest.mark.long
def test_no_seed_changes_a_verdict_of_dashmap(tmp_path: Path) -> None:
    found = []
    for seed in (1, 2, 3):
        (tmp_path / str(seed)).mkdir()
        found.append(verdicts("dashmap", "map", tmp_path / str(seed), f",seed={seed},cores=16"))
    assert found[0] == found[1] == found[2]


@pytest.mark.long
def test_two_runs_of_dashmap_find_the_same_to_the_byte(tmp_path: Path) -> None:
    lines = []
    for number in ("1", "2"):
        (tmp_path / number).mkdir()
        verdicts("dashmap", "map", tmp_path / number)
        written = (tmp_path / number / "run" / "verdicts.jsonl").read_text().splitlines()
        lines.append([json.loads(line) | {"seconds": 0} for line in written])
    assert json.dumps(lines[0]) == json.dumps(lines[1])
