"""Texts that a reader sees, kept as files: a change of one is a change of what is shown, to be looked at in review.

With COMMUTANT_UPDATE_SNAPSHOTS=1 the files are written again; the tests then fail once, so that no one forgets to look.
"""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "snapshots"


def assert_snapshot(name: str, text: str) -> None:
    """Compares the text with the file `name`; trailing blanks of lines do not count."""
    shown = "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
    path = FOLDER / name
    if os.environ.get("COMMUTANT_UPDATE_SNAPSHOTS"):
        path.write_text(shown, encoding="utf-8")
        raise AssertionError(f"wrote {path}: look at it, then run again without COMMUTANT_UPDATE_SNAPSHOTS")
    assert shown == path.read_text(encoding="utf-8")
