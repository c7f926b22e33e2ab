"""`commutant new model`: what it writes can be analysed and tested as it is."""

from __future__ import annotations

import pytest


def test_a_first_model_is_analysed_and_tested(folder, commutant):
    written = commutant("new", "model", "my_store")
    assert "commutant generate my_store.py" in written.stdout
    assert "class MyStore(Interface):" in (folder / "my_store.py").read_text(encoding="utf-8")
    analysed = commutant("analyze", "my_store.py", "--no-cache")
    assert "put, get: 5 paths, 3 of them commute" in analysed.stdout
    generated = commutant("generate", "my_store.py", "-o", "tests.jsonl.gz", "--no-cache")
    assert generated.returncode == 0
    assert "without a test" not in generated.stderr
    again = commutant("new", "model", "my_store")
    assert (again.returncode, again.stderr) == (2, "commutant: my_store.py exists already; -o takes a new file\n")


@pytest.mark.parametrize("name", ["3x", "class", "a-b", "Key", "../x", ""])
def test_a_name_that_is_none_of_a_class_is_refused(folder, commutant, name):
    refused = commutant("new", "model", name)
    assert refused.returncode == 2
    assert refused.stderr.startswith("commutant: expected a name for a class")
