"""Results kept by content: what is damaged is said and computed again, and nothing grows without bound."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commutant.analyzer import analyze
from commutant.corpus import file as corpora
from commutant.lang import load_interface
from commutant.support.cache import ResultCache
from commutant.testgen import generate

KEY = {"model": "abc", "size": 2}


class Kept:
    """A cache in a folder of its own, and what it said to the user."""

    def __init__(self, folder: Path, max_bytes: int = 1 << 20) -> None:
        self.folder = folder
        self.told: list[str] = []
        self.cache = ResultCache(self.told.append, folder, max_bytes)

    def file(self) -> Path:
        (path,) = self.folder.iterdir()
        return path


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path / "results")


def test_a_value_comes_back_for_its_own_key_and_kind_only(kept: Kept) -> None:
    assert kept.cache.get("analysis", KEY) is None
    kept.cache.put("analysis", KEY, b"line\n\0rest")
    assert kept.cache.get("analysis", dict(reversed(KEY.items()))) == b"line\n\0rest"
    assert kept.cache.get("analysis", {**KEY, "size": 3}) is None
    assert kept.cache.get("corpus", KEY) is None
    assert kept.told == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-1],
        lambda content: content[: len(content) // 2],
        lambda content: b"",
        lambda content: content + b"x",
        lambda content: content.replace(b"value", b"other"),
        lambda content: content.replace(b'"format":1', b'"format":0'),
        lambda content: content.replace(b'"size":2', b'"size":3'),
        lambda content: b"\xff\n" * 100,
    ],
    ids=["last byte", "half", "empty", "longer", "changed", "another version", "another key", "no JSON"],
)
def test_a_damaged_file_is_said_removed_and_never_used(kept: Kept, damage: Callable[[bytes], bytes]) -> None:
    kept.cache.put("analysis", KEY, b"a value of some length")
    file = kept.file()
    file.write_bytes(damage(file.read_bytes()))
    assert kept.cache.get("analysis", KEY) is None
    (line,) = kept.told
    assert line == f"{file}: damaged, cut off, or of another version; computing the result again"
    assert not file.exists()
    kept.cache.put("analysis", KEY, b"again")
    assert kept.cache.get("analysis", KEY) == b"again"


def test_what_is_no_file_is_not_waited_for(kept: Kept) -> None:
    """Reading a pipe in the place of a file waited for a writer forever."""
    kept.cache.put("analysis", KEY, b"value")
    file = kept.file()
    file.unlink()
    os.mkfifo(file)
    assert kept.cache.get("analysis", KEY) is None
    assert kept.told == [f"{file}: not a regular file; computing the result again"]
    kept.cache.put("analysis", KEY, b"again")
    assert kept.cache.get("analysis", KEY) == b"again"


def test_what_was_used_longest_ago_goes_first(tmp_path: Path) -> None:
    kept = Kept(tmp_path, max_bytes=1000)
    for number in range(3):
        kept.cache.put("analysis", {"number": number}, bytes(100))
        os.utime(max(tmp_path.iterdir(), key=lambda path: path.stat().st_mtime_ns), (number, number))
    assert kept.cache.get("analysis", {"number": 0}) is not None  # used now
    for number in range(3, 5):
        kept.cache.put("analysis", {"number": number}, bytes(200))
    left = [number for number in range(5) if kept.cache.get("analysis", {"number": number}) is not None]
    assert left == [0, 3, 4]
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 1000
    kept.cache.put("analysis", {"number": 9}, bytes(501))
    assert kept.cache.get("analysis", {"number": 9}) is None


def test_an_abandoned_part_goes_with_time(kept: Kept) -> None:
    kept.folder.mkdir()
    (abandoned := kept.folder / "analysis-x.part").write_bytes(b"cut")
    (under_way := kept.folder / "analysis-y.part").write_bytes(b"cut")
    os.utime(abandoned, (1, 1))
    kept.cache.put("analysis", KEY, b"value")
    assert not abandoned.exists()
    assert under_way.exists()


def test_a_folder_that_cannot_be_made_costs_a_line_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    kept = Kept(tmp_path / "file" / "results")
    kept.cache.put("analysis", KEY, b"value")
    (line,) = kept.told
    assert line.endswith("; the result is not kept for the next time")


MODEL = """
from helper import Base, LIMIT
from commutant.lang import call

class Counter(Base):
    value: int

    @call
    def add(self, amount: int) -> None:
        if self.value < LIMIT:
            self.value += amount
"""
HELPER = """
from commutant.lang import Interface

LIMIT = 10

class Base(Interface):
    pass
"""


def test_an_analysis_is_taken_from_the_cache_until_a_source_changes(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "helper.py").write_text(HELPER)
    (tmp_path / "model.py").write_text(MODEL)
    model = load_interface(f"{tmp_path / 'model.py'}")
    first = analyze(model, detail="conditions", cache=kept.cache)
    assert first.sets[0].conditions
    monkeypatch.setattr("commutant.analyzer.analysis.map_in_processes", None)  # no other way to an answer
    second = analyze(model, detail="conditions", cache=kept.cache)
    assert second.document().sets == first.document().sets
    assert second.sets[0].conditions == first.sets[0].conditions
    with pytest.raises(TypeError):
        analyze(model, detail="counts", cache=kept.cache)
    with pytest.raises(TypeError):
        analyze(model, ["add"], size=1, detail="conditions", cache=kept.cache)
    (tmp_path / "helper.py").write_text(HELPER.replace("10", "20"))
    with pytest.raises(TypeError):
        analyze(model, detail="conditions", cache=kept.cache)


def test_a_corpus_from_the_cache_is_the_one_that_was_made(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load_interface("names")
    first = generate(model, ["link", "stat"], cache=kept.cache)
    corpora.write_corpus(first, tmp_path / "first.jsonl.gz")
    monkeypatch.setattr("commutant.testgen.generation.map_in_processes", None)  # no other way to a corpus
    second = generate(model, ["link", "stat"], cache=kept.cache)
    corpora.write_corpus(second, tmp_path / "second.jsonl.gz")
    assert (tmp_path / "first.jsonl.gz").read_bytes() == (tmp_path / "second.jsonl.gz").read_bytes()
    assert corpora.tests_per_set(second.tests) == corpora.tests_per_set(first.tests)
    assert len(second.tests) == len(first.tests) > 0
    assert list(second.tests) == list(corpora.read_corpus(tmp_path / "first.jsonl.gz").tests)
    assert second.analysis is not None
    assert first.analysis is not None
    assert second.analysis.document().sets == first.analysis.document().sets
    with pytest.raises(TypeError):
        generate(model, ["link", "stat"], level="path", cache=kept.cache)


class Stopped(Exception):
    """Somebody has pressed Ctrl-C."""


@pytest.mark.parametrize(
    ("verb", "place", "found"),
    [
        (analyze, "commutant.analyzer.analysis._count", lambda whole: whole.sets),
        (generate, "commutant.testgen.generation._generate_set", lambda whole: list(whole.tests)),
    ],
    ids=["analyze", "generate"],
)
def test_what_was_stopped_goes_on(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, verb: Callable[..., Any], place: str, found: Callable[[Any], Any]
) -> None:
    """Sets that were done before are not done again, whatever else was asked for then."""
    module, _, name = place.rpartition(".")
    real = getattr(importlib.import_module(module), name)
    done: list[object] = []

    def stop_at_the_third(*arguments: object) -> object:
        if len(done) == 2:
            raise Stopped
        done.append(arguments)
        return real(*arguments)

    model, calls = load_interface("names"), ["link", "stat", "unlink"]
    monkeypatch.setattr(place, stop_at_the_third)
    with pytest.raises(Stopped):
        verb(model, calls, cache=kept.cache)
    again: list[object] = []

    def count(*arguments: object) -> object:
        again.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(place, count)
    whole = verb(model, calls, cache=kept.cache)
    assert (len(done), len(again)) == (2, 4)
    monkeypatch.setattr(place, None)  # no other way to a set
    assert found(verb(model, calls, cache=kept.cache)) == found(whole)
    assert len(found(verb(model, ["link", "stat"], cache=kept.cache))) > 0, (
        "a smaller question, with a set of the other"
    )


def test_a_set_of_another_key_is_not_used(kept: Kept) -> None:
    model = load_interface("names")
    analyze(model, ["link", "stat"], cache=kept.cache)
    (file,) = kept.folder.iterdir()
    head, value = file.read_bytes().split(b"\n", 1)
    entry = json.loads(head)
    for changed in (value.replace(b'"stat"', b'"open"'), value[:-1], b"[]"):
        entry.update(bytes=len(changed), sha256=hashlib.sha256(changed).hexdigest())
        file.write_bytes(json.dumps(entry, sort_keys=True, separators=(",", ":")).encode() + b"\n" + changed)
        assert analyze(model, ["link", "stat"], cache=kept.cache).sets[0].calls == ("link", "stat")
