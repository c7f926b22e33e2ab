"""Where the calls of a model are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from commutant.lang import SHIPPED, call_places, load_interface
from tests.repository.tree import ROOT


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_every_call_of_a_shipped_model_has_a_place(name: str) -> None:
    places = call_places(name)
    for call in load_interface(name).call_names():
        file, line = places[call]
        text = (ROOT / "src" / file).read_text(encoding="utf-8").splitlines()[line - 1]
        assert f"def {call}(" in text


def test_a_model_of_ones_own_is_read_and_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text("raise SystemExit(7)\n\nclass Own:\n    @call\n    def put(self): ...\n")
    assert call_places("own.py:Own") == {"put": ("own.py", 5)}
    Path("bad.py").write_text("def (")
    assert call_places("bad.py") == call_places("missing.py") == call_places("module:Class") == {}
