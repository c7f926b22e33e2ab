"""Files: whole or not there, with the permissions of any new file, and regular before they are read."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from commutant.cli.results import put
from commutant.compare import read_suppressions
from commutant.corpus import looks_like_corpus, read_corpus
from commutant.guest import unpack
from commutant.lock_view.recording.guest_image import read_workload
from commutant.support import UsageError, open_regular, read_regular, replace_file, whole_file


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_files_have_the_permissions_that_the_umask_leaves(tmp_path: Path) -> None:
    with whole_file(tmp_path / "file") as file:
        file.write(b"content")
    put(["text"], tmp_path / "text")
    replace_file(tmp_path / "cache" / "kept", b"content")
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
    assert modes == {"file": 0o640, "text": 0o640, "cache": 0o700, "kept": 0o600}


def test_a_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / ("long" * 60)
    path.write_bytes(b"before")
    with pytest.raises(ZeroDivisionError), whole_file(path) as file:
        file.write(b"half")
        _ = 1 / 0
    assert [child.read_bytes() for child in tmp_path.iterdir()] == [b"before"]
    with whole_file(path) as file:
        file.write(b"after")
    assert [child.read_bytes() for child in tmp_path.iterdir()] == [b"after"]


def test_a_pipe_that_nobody_writes_to_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for read in (read_suppressions, read_workload, read_corpus, unpack):
        with pytest.raises(UsageError, match=f"{pipe}: not a regular file"):
            read(pipe)
    assert not looks_like_corpus(pipe)
    with pytest.raises(OSError, match="Is a directory"):
        read_regular(tmp_path, 10)


def test_no_more_than_a_byte_above_the_limit_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(100))
    assert [len(read_regular(tmp_path / "file", limit)) for limit in (10, 99, 100, 200)] == [11, 100, 100, 100]
    with open(tmp_path / "file", "rb", opener=open_regular) as file:
        assert not os.get_inheritable(file.fileno())


_LOWEST = """
import os, sys
from commutant.support import fill_standard_streams
fill_standard_streams()
with open(sys.argv[1], "w") as file:
    print(file.fileno() > 2, *[os.get_inheritable(number) for number in range(3)], file=file)
"""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&-", ">&- 2>&-", "<&- >&- 2>&-", ""])
def test_nothing_is_opened_in_the_place_of_a_closed_standard_stream(closed: str, tmp_path: Path) -> None:
    """An anonymous file that got such a number was lost in the program that it was passed to."""
    (tmp_path / "script.py").write_text(_LOWEST)
    command = f'exec "$0" "$1" "$2" {closed}'
    subprocess.run(["sh", "-c", command, sys.executable, tmp_path / "script.py", tmp_path / "out"], check=True)
    assert (tmp_path / "out").read_text() == "True True True True\n"
