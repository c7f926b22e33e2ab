"""The study as page, Parquet and folded stacks, each read back."""

from __future__ import annotations

from pathlib import Path

import html5lib
import pyarrow.parquet as pq
from msgspec import structs

from commutant.lock_view import LockStudy, predictions, read_record, study
from commutant.lock_view.shown.export import folded_stacks, write_parquet
from commutant.lock_view.shown.page import render_page
from tests.lock_view.test_record import record, written

HOSTILE = "</title><script>alert(1)</script>;\n\x1b[2J" + "x" * 10_000


def studied(folder: Path, name: str | None = None) -> LockStudy:
    made = study(read_record(written(folder, record())))
    if name is not None:
        for one in made.classes:
            one.name = name
            one.callers = [structs.replace(caller, name=name) for caller in one.callers]
    return made


def test_the_page_shows_each_lock_and_runs_nothing(tmp_path: Path) -> None:
    one = studied(tmp_path, HOSTILE)
    text = render_page(one, one.classes, HOSTILE)
    document = html5lib.HTMLParser(strict=True).parse(text)
    spaces = {"h": "http://www.w3.org/1999/xhtml", "s": "http://www.w3.org/2000/svg"}
    assert document.findall(".//h:script", spaces) == []
    assert "\x1b" not in text and "default-src &#39;none&#39;" in text and "://" not in text
    (dot,) = document.findall(".//s:a", spaces)
    assert document.findall(f".//h:p[@id='{dot.attrib['href'][1:]}']", spaces)
    assert "lock+0x8" in text and "optimistic execution" in text


def test_a_study_without_pairs_has_a_page_too(tmp_path: Path) -> None:
    one = studied(tmp_path)
    empty = LockStudy(one.record, (), {})
    html5lib.HTMLParser(strict=True).parse(render_page(empty, [], "nothing"))


def test_parquet_has_a_row_for_each_class(tmp_path: Path) -> None:
    one = studied(tmp_path, HOSTILE)
    write_parquet(one, one.classes, tmp_path / "locks.parquet")
    (row,) = pq.read_table(tmp_path / "locks.parquet").to_pylist()
    assert (row["name"], row["instances"], row["acquired"]) == (HOSTILE, 2, 2)
    assert dict(row["independence_percent"]) == {"1": 75, "8": 75, "64": 50}
    assert row["fields"] == [{"name": "lock+0x8", "pairs": 2, "pairs_on_it_alone": 2}]
    assert all(dict(change["gains"])["2"]["most"] >= 0.9 for change in row["what_if"]) and row["what_if"]


def test_folded_stacks_have_two_frames_and_a_number_a_line(tmp_path: Path) -> None:
    (line,) = folded_stacks(studied(tmp_path, HOSTILE).classes)
    frames, _, instructions = line.rpartition(" ")
    assert line.endswith("\n") and line.count("\n") == 1 and frames.count(";") == 1
    assert int(instructions) == 20


def test_a_field_is_weighed_against_the_pairs_of_which_fields_are_known(tmp_path: Path) -> None:
    """Once fields were counted of the newest pairs only, a field alone in all of them seemed to matter little."""
    document = record()
    for lock in document["locks"]:
        alone = {"pairs": 5, "pairs_on_it_alone": 5}
        lock["fields"] = [field | alone for field in lock["fields"]]
        lock["field_pairs"] = 5
        lock["pairs"] |= {"compared": 100, "conflicting": [100, 100, 100]}
        lock["kind_pairs"][0] |= {"compared": 100, "conflicting": [100, 100, 100]}
    one = study(read_record(written(tmp_path, document)))
    gains = {change.change: change.gains[32] for change in predictions(one.classes[0], one.record)}
    assert gains["optimistic execution"].least < 1.1 and gains["per-core copies of lock+0x8"].least > 2
