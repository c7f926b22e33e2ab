"""The folder of a recording: who removes it, and what is said if it is full."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from commutant.lock_view import record_program
from commutant.lock_view.recording.folder import recording_folder
from commutant.support.errors import RunError


def test_a_folder_in_use_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a program is recorded."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with recording_folder() as used:
        os.utime(used, (0, 0))
        with recording_folder():
            assert used.is_dir()
    assert not list(tmp_path.iterdir())


def test_a_folder_of_a_recorder_that_was_killed_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each recording that was killed left its folder for good."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    abandoned = tmp_path / "commutant-locks-abandoned"
    abandoned.mkdir()
    (abandoned / "record.json.part").write_text("{")
    others = tmp_path / "commutant-disk-of-others"
    others.mkdir()
    with recording_folder():
        assert abandoned.is_dir(), "it has just been made and may be about to be locked"
    for folder in (abandoned, others):
        os.utime(folder, (0, 0))
    with recording_folder():
        assert not abandoned.exists()
    assert list(tmp_path.iterdir()) == [others]


@contextmanager
def _full_folder() -> Iterator[Path]:
    with recording_folder() as folder:
        (folder / "record.json.part").symlink_to("/dev/full")
        yield folder


def test_a_full_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program was blamed: did it run under the emulator alone? It did."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("commutant.lock_view.recording.program.recording_folder", _full_folder)
    with pytest.raises(RunError) as caught:
        record_program(["/bin/true"])
    assert str(caught.value) == (
        f"{tmp_path}: there is no room for what the lock recorder writes: No space left on device; free some, or set "
        "TMPDIR to a folder that has more"
    )


def test_no_room_before_the_program_runs_is_told_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was called a defect of this package."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(RunError, match=f"^{tmp_path}: there is no room"), recording_folder():
        Path("/dev/full").write_text("as a symbolic link on a full disk")
    assert not list(tmp_path.iterdir())


def test_no_room_anywhere_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was called a defect of this package."""

    def nowhere() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp', '/var/tmp']")

    monkeypatch.setattr("tempfile.gettempdir", nowhere)
    with pytest.raises(RunError, match="free some room in one of them, or set TMPDIR"), recording_folder():
        pass
