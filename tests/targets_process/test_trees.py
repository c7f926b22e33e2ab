"""`posix` on ScaleFS and on ordinary maps: directories, links, descriptors and rights give what the model says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commutant.cli.main import run
from commutant.lang import load_interface
from commutant.targets.runner import LACKS

CALLS = ",".join(call for call in load_interface("posix").call_names() if call not in LACKS)


@pytest.mark.parametrize("target", ["plain", "scalefs"])
def test_random_sequences_show_no_difference(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["conform", "posix", "--calls", CALLS, "--target", target, "--sequences", "60", "--jobs", "1"]) == 0
    assert f"posix on {target}: no difference in 60 sequences" in capsys.readouterr().out


@pytest.mark.parametrize(
    "calls",
    ["mkdir,rmdir", "symlink,readlink", "dup,setfl", "chmod,utimensat", "truncate,msync", "readv,poll", "writev,fsync"],
)
def test_no_test_has_a_wrong_result(calls: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    words = ["check", "posix", "--calls", calls, "--level", "path", "--target", "plain", "--jobs", "1"]
    assert run([*words, "-o", str(folder)]) == 0
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["tests"] > 30
    assert (summary["wrong_result"], summary["skipped"], summary["crashed"]) == (0, 0, 0)


def test_what_is_skipped_is_listed_with_its_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    words = ["check", "posix", "--calls", "getpid,kill,fsync", "--level", "path", "--target", "plain", "--jobs", "1"]
    assert run([*words, "-o", str(folder)]) == 0
    summary = json.loads((folder / "summary.json").read_text())
    assert 0 < summary["skipped"] < summary["tests"]
    assert f"{summary['skipped']} tests: plain does not know the call kill(signal): a library has no signals" in (
        capsys.readouterr().out
    )


AREAS = {
    "descriptions": "open,close,dup,dup2,lseek,read,write,getfd,setfd,getfl,setfl",
    "cut": "open,dup,ftruncate,truncate,read,pread,pwrite,lseek",
    "vectors": "open,close,pipe,dup,lseek,setfl,readv,writev,read,write,poll,fsync",
    "memory": "open,mmap,munmap,memread,memwrite,madvise,msync,ftruncate",
    "times": "mkdir,open,link,rename,unlink,truncate,utimensat,chmod,stat",
}


@pytest.mark.parametrize("area", AREAS)
def test_random_sequences_of_an_area_show_no_difference(area: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Fewer calls meet more often."""
    words = ["conform", "posix", "--calls", AREAS[area], "--target", "plain", "--sequences", "150", "--jobs", "1"]
    assert run(words) == 0
    assert "no difference in 150 sequences" in capsys.readouterr().out
