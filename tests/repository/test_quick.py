"""`make check`: what it chooses, and what it leaves out."""

from __future__ import annotations

import quick
from lanes import Seconds


def test_a_changed_module_brings_the_tests_that_import_its_room() -> None:
    found = quick.concerned_tests(["src/commutant/corpus/file.py", "docs/reference/cli.md"])
    assert "tests/campaign/test_corpus.py" in found
    assert set(quick.ALWAYS) <= set(found)
    assert not any(name.startswith("tests/lock_view/") for name in found)


def test_without_a_change_of_python_no_other_tests_are_concerned() -> None:
    assert quick.concerned_tests(["README.md"]) == sorted(quick.ALWAYS)


def test_changed_crates_are_those_with_changed_files() -> None:
    changed = ["crates/checker/wire/src/lib.rs", "crates/emulator/LICENSE", "crates/gone/away/src/lib.rs", "Cargo.toml"]
    assert quick.changed_crates(changed) == ["wire"]


def test_the_quickest_tests_are_taken_and_the_rest_is_named() -> None:
    kept = Seconds(files={"a": 3.0, "b": 50.0, "c": 1.0})
    assert quick.chosen(["a", "b", "c", "new"], 10.0, kept) == (["a", "c", "new"], ["b"])
    assert quick.chosen(["a"], 0.0, kept) == ([], ["a"])
