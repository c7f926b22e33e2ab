"""Looking at the cache folder, and tidying it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from commutant.support import CacheFolder, UsageError

DAY_SECONDS = 86_400


@pytest.fixture
def folder(tmp_path: Path) -> CacheFolder:
    for name, age_days in (
        ("results/new", 0),
        ("results/old", 40),
        ("kernels/6.1/vmlinux", 40),
        ("kernels/6.1/new", 1),
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 5000)
        then = time.time() - age_days * DAY_SECONDS
        os.utime(path, (then, then))
    (tmp_path / "elsewhere").symlink_to("/")
    return CacheFolder(tmp_path)


def test_kinds_are_counted_by_entry(folder: CacheFolder) -> None:
    kernels, results = folder.kinds()
    assert (kernels.name, kernels.entries, results.name, results.entries) == ("kernels", 1, "results", 2)
    assert results.size_bytes >= 10_000


def test_only_what_is_old_as_a_whole_goes(folder: CacheFolder) -> None:
    assert folder.remove_older(30) >= 5000
    left = {str(path.relative_to(folder.path)) for path in folder.path.rglob("*") if path.is_file()}
    assert left == {"results/new", "kernels/6.1/vmlinux", "kernels/6.1/new"}, "a kernel's folder was used a day ago"


def test_a_kind_or_all_goes_and_an_unknown_one_is_refused(folder: CacheFolder) -> None:
    with pytest.raises(
        UsageError, match="nothing is kept of the kind 'result'; expected all or one of kernels, results"
    ):
        folder.remove(["result"])
    folder.remove(["results"])
    assert [kind.entries for kind in folder.kinds()] == [1, 0]
    folder.remove(["all"])
    assert [kind.entries for kind in folder.kinds()] == [0, 0]
    assert Path("/").exists()


def test_no_folder_is_empty(tmp_path: Path) -> None:
    assert CacheFolder(tmp_path / "none").kinds() == []
