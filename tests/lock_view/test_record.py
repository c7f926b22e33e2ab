"""Lock records come from a file: whatever is in it, one line says what is wrong with it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commutant.lock_view import read_record, study
from commutant.lock_view.study.verdict import verdict
from commutant.support.errors import UsageError

SPANS = {
    "total": {"instructions": 10, "nanoseconds": 20},
    "longest": {"instructions": 5, "nanoseconds": 6},
}


def lock() -> dict[str, Any]:
    counts = (
        "address acquires shared_acquires contended contended_compared contended_conflicts sections set_bytes "
        "written_bytes device_sections handed_over releases_without_acquire never_released compared_sections"
    )
    side = {"write": True, "addresses": [4096]}
    return dict.fromkeys(counts.split(), 1) | {
        "source": "annotated",
        "class": None,
        "instances": 1,
        "generations": 1,
        "first_stack": [4096, 8192],
        "wait": SPANS,
        "hold": SPANS,
        "conflicting_sections": [1, 1, 1],
        "pairs": {
            "compared": 4,
            "conflicting": [1, 1, 2],
            "conflicting_without_per_cpu": [1, 1, 2],
            "conflicting_bytes": 8,
            "set_bytes": 16,
        },
        "windows": [
            {"window_sections": 50, "pairs": 3, "conflicting_pairs": 1, "sections": 1, "conflicting_sections": 1}
        ],
        "outside_reads": 0,
        "outside_writes": 0,
        "speed_ups": [1.5, None, None],
        "kinds": [
            {
                "caller": 4096,
                "shared": False,
                "writes": True,
                "sections": 1,
                "hold": SPANS,
                "hold_squares": 100.0,
                "compared": 1,
                "conflicting": [1, 1, 1],
            }
        ],
        "threads": [{"thread": 1, "sections": [1]}],
        "kind_pairs": [{"kinds": [0, 0], "compared": 4, "conflicting": [1, 1, 2]}],
        "gaps": {"count": 1, "instructions": 30, "squares": 900.0},
        "fields": [
            {
                "kind": "beside_lock",
                "name": None,
                "address": 64,
                "offset": 8,
                "pairs": 1,
                "pairs_on_it_alone": 1,
                "stacks": [side] * 2,
            }
        ],
        "field_sets": [{"fields": [0], "pairs": 1}],
        "field_pairs": 4,
        "forgotten_field_pairs": 0,
    }


def record() -> dict[str, Any]:
    return {
        "schema_version": 6,
        "kind": "lock-record",
        "process_id": 1,
        "threads": 2,
        "instructions": 100,
        "nanoseconds": 100,
        "start_up": {"instructions": 60, "nanoseconds": 50, "acquires": 7, "locks": 2},
        "crowds": [8, 16, 32],
        "mappings": [{"start": 4096, "end": 8192, "offset": 0, "path": "/nonexistent"}],
        "stacks": [{"thread": 0, "start": 65536, "end": 69632}],
        "locks": [lock(), lock() | {"address": 128}],
        "kernel": None,
    }


def written(folder: Path, document: object) -> Path:
    path = folder / "record.json"
    path.write_text(json.dumps(document))
    return path


def test_a_record_is_a_regular_file_of_some_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="not a regular file"):
        read_record(tmp_path / "pipe")
    monkeypatch.setattr("commutant.lock_view.record.MAX_RECORD_BYTES", 100)
    with pytest.raises(UsageError, match="larger than 0 MiB; expected a lock record"):
        read_record(written(tmp_path, record()))


def test_locks_of_one_kind_are_put_together(tmp_path: Path) -> None:
    studied = study(read_record(written(tmp_path, record())))
    (one,) = studied.classes
    assert (len(one.locks), one.acquired, one.hold_instructions) == (2, 2, 20)
    assert one.independence_percent() == 75 and one.independence_percent(2) == 50
    assert one.speed_up(0) == 1.5 and one.speed_up(1) is None
    assert (one.mean_conflicting_bytes, one.conflicting_bytes_percent) == (8, 50)
    assert [(field.name, field.pairs) for field in one.fields] == [("lock+0x8", 2)]
    assert studied.unreadable  # the mapped file is not there


def two_fields() -> dict[str, Any]:
    (field,) = lock()["fields"]
    fields = [field | {"offset": offset, "pairs": 3, "pairs_on_it_alone": int(offset == 8)} for offset in (8, 16)]
    return lock() | {"fields": fields, "field_sets": [{"fields": [0, 1], "pairs": 2}, {"fields": [0], "pairs": 1}]}


def test_fields_that_conflict_together_are_told_as_a_group(tmp_path: Path) -> None:
    (one,) = study(read_record(written(tmp_path, record() | {"locks": [two_fields()]}))).classes
    assert one.together is not None
    assert (one.together.names, one.together.pairs) == (("lock+0x8", "lock+0x10"), 3)
    assert str(one.together) == "lock (2 fields)"
    single = two_fields() | {"field_sets": [{"fields": [0], "pairs": 3}]}
    (alone,) = study(read_record(written(tmp_path, record() | {"locks": [single]}))).classes
    assert alone.together is None


def test_a_set_of_fields_that_are_not_there_is_refused(tmp_path: Path) -> None:
    bad = lock() | {"field_sets": [{"fields": [1], "pairs": 1}]}
    with pytest.raises(UsageError, match="a set of fields past the last of 1"):
        read_record(written(tmp_path, record() | {"locks": [bad]}))


def readers(**other: object) -> dict[str, Any]:
    hold = {"total": {"instructions": 4000, "nanoseconds": 5}, "longest": {"instructions": 90, "nanoseconds": 5}}
    threads = [{"thread": 1, "sections": [1]}, {"thread": 2, "sections": [1]}]
    (kind,) = lock()["kinds"]
    kinds = [kind | {"shared": True, "hold": hold}]
    counts = {"kinds": kinds, "acquires": 100, "shared_acquires": 95, "sections": 100, "threads": threads, "hold": hold}
    pairs = lock()["pairs"] | {"compared": 0, "conflicting": [0, 0, 0], "conflicting_without_per_cpu": [0, 0, 0]}
    return lock() | counts | {"pairs": pairs, "kind_pairs": []} | other


@pytest.mark.parametrize(
    ("other", "text"),
    [
        (
            {},
            "meet in the lock's own word, which each writes when it comes and when it goes: 190 times in 4,000",
        ),
        ({"shared_acquires": 80}, "by one thread alone"),  # writers keep the others out
        ({"threads": [{"thread": 1, "sections": [1]}]}, "by one thread alone"),
        ({"kinds": lock()["kinds"]}, "by one thread alone"),  # a few long sections of writers hold it
    ],
)
def test_readers_that_meet_in_their_locks_word_are_said(tmp_path: Path, other: dict[str, Any], text: str) -> None:
    whole = record() | {"instructions": 40_000, "locks": [readers(**other)]}
    assert text in verdict(study(read_record(written(tmp_path, whole)))).text


def test_a_lock_of_one_thread_alone_does_not_hide_one_that_keeps_others_out(tmp_path: Path) -> None:
    alone = readers(threads=[{"thread": 1, "sections": [1]}])
    shared = lock() | {"class": {"name": "shared", "known": True, "family": "mutex"}, "hold": readers()["hold"]}
    for held, name in ((4000, "shared"), (100, "None")):
        hold = {"total": {"instructions": held, "nanoseconds": 5}, "longest": {"instructions": 90, "nanoseconds": 5}}
        whole = record() | {"instructions": 40_000, "locks": [alone, shared | {"hold": hold, "acquires": 9}]}
        found = verdict(study(read_record(written(tmp_path, whole)))).lock
        assert (found.name if found else "None") == name


def test_a_lock_that_only_very_many_threads_would_fill_is_not_one_to_look_at(tmp_path: Path) -> None:
    """A program whose lock had been divided heard of the next one as if it were in the way: 0.53 %, 188 threads."""
    whole = record() | {"instructions": 400_000, "locks": [readers(shared_acquires=0) | {"pairs": lock()["pairs"]}]}
    for instructions, text in ((400_000, "No lock is in the way of 64 threads. The first that would be is "),
                               (40_000, "The lock to look at is ")):  # fmt: skip
        judged = verdict(study(read_record(written(tmp_path, whole | {"instructions": instructions}))))
        assert judged.text.startswith(text) and judged.lock is not None


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [(*path, key) for key, _ in items] + [found for key, item in items for found in paths(item, (*path, key))]


@settings(max_examples=200)
@given(st.data())
def test_a_damaged_record_is_refused_or_read(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    document = record()
    path = data.draw(st.sampled_from(paths(document)))
    bad: Any = data.draw(st.sampled_from([None, -1, 1 << 64, "x", [], {}, [None], True, 1.5, [[]], "<script>\n"]))
    holder: Any = document
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = bad
    file = written(tmp_path_factory.mktemp("record"), document)
    try:
        study(read_record(file))
    except UsageError as error:
        assert "\n" not in str(error) and str(file) in str(error)


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, '{"schema_version": 6, "kind": "lock-record"}', "\xff"])
def test_what_is_no_record_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match=r"record\.json"):
        read_record(path)
