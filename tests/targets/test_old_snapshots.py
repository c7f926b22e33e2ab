"""Old snapshots go, those used last and those in use stay."""

from __future__ import annotations

import os
import time
from pathlib import Path

from commutant.guest import snapshot


def test_the_newest_stay_and_so_does_what_others_use(tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / f"old{number}").mkdir()
        (tmp_path / f"old{number}" / "ram").write_bytes(b"x")
        os.utime(tmp_path / f"old{number}", (1000 + number, 1000 + number))
    (tmp_path / "old7.abc.part").mkdir()
    os.utime(tmp_path / "old7.abc.part", (1, 1))
    new = tmp_path / "new"
    new.mkdir()
    with snapshot._locked(tmp_path / "old1"):
        snapshot._forget_old(new)
    left = {path.name for path in tmp_path.iterdir() if path.is_dir()}
    assert left == {"new", "old1", "old7.abc.part", *(f"old{number}" for number in range(5, 10))}


def test_what_was_used_within_the_hour_stays(tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / f"recent{number}").mkdir()
        os.utime(tmp_path / f"recent{number}", (time.time() - number,) * 2)
    snapshot._forget_old(tmp_path / "new")
    assert len(list(tmp_path.iterdir())) == 10
