"""`scalefs://` for fsspec: its own tests of any file system, tables by pyarrow, transactions, and what is refused."""

from __future__ import annotations

import csv
import os
import pickle
import threading
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import fsspec
import pyarrow
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
import pytest
from fsspec.tests.abstract import (
    AbstractCopyTests,
    AbstractFixtures,
    AbstractGetTests,
    AbstractOpenTests,
    AbstractPipeTests,
    AbstractPutTests,
)

from scalefs import Stale, forget, named


@pytest.fixture
def name() -> Iterator[str]:
    """Of a file system that goes with the test."""
    chosen = f"of-{uuid.uuid4().hex}"
    yield chosen
    forget(chosen)


class OfScaleFs(AbstractFixtures):  # type: ignore[misc]
    """What fsspec's tests ask for."""

    @pytest.fixture
    def fs(self, name: str) -> Any:
        return fsspec.filesystem("scalefs", name=name, auto_mkdir=True)

    @pytest.fixture
    def fs_path(self) -> str:
        return "/of/tests"

    @pytest.fixture
    def fs_join(self) -> Callable[..., str]:
        return lambda *parts: "/".join(parts)


class TestCopy(AbstractCopyTests, OfScaleFs):  # type: ignore[misc]
    """Copies within it."""


class TestGet(AbstractGetTests, OfScaleFs):  # type: ignore[misc]
    """Copies out of it."""


class TestPut(AbstractPutTests, OfScaleFs):  # type: ignore[misc]
    """Copies into it."""


class TestOpen(AbstractOpenTests, OfScaleFs):  # type: ignore[misc]
    """Files."""


class TestPipe(AbstractPipeTests, OfScaleFs):  # type: ignore[misc]
    """Bytes."""


def test_an_address_leads_to_the_file_system_of_its_name(name: str) -> None:
    with fsspec.open(f"scalefs://{name}/rows.csv", "w", newline="") as file:
        csv.writer(file).writerows([["tree", "height"], ["oak", 20]])
    assert named(name).read_bytes("/rows.csv") == b"tree,height\r\noak,20\r\n"
    fs, path = fsspec.url_to_fs(f"scalefs://{name}/rows.csv")
    assert path == "/rows.csv" and fs.unstrip_protocol(path) == f"scalefs://{name}/rows.csv"
    assert fs is fsspec.filesystem("scalefs", name=name)
    assert fs.cat_file(path, 0, 4) == b"tree"
    other = f"{name}-other"
    with fsspec.open(f"scalefs://{other}/rows.csv", "wb") as file:
        file.write(b"another")
    assert named(name).read_bytes("/rows.csv").startswith(b"tree")
    forget(other)


def test_pyarrow_writes_and_reads_tables(name: str) -> None:
    table = pyarrow.table({"year": [2024, 2024, 2025], "rings": [3, 5, 8]})
    fs, path = fsspec.url_to_fs(f"scalefs://{name}/trees")
    pyarrow.dataset.write_dataset(table, path, format="parquet", partitioning=["year"], filesystem=fs)
    assert sorted(fs.find(path)) == ["/trees/2024/part-0.parquet", "/trees/2025/part-0.parquet"]
    found = pyarrow.dataset.dataset(path, format="parquet", partitioning=["year"], filesystem=fs).to_table()
    assert sorted(found.column("rings").to_pylist()) == [3, 5, 8]
    pyarrow.parquet.write_table(table, "/one.parquet", filesystem=fs)
    assert pyarrow.parquet.read_table("/one.parquet", filesystem=fs) == table
    with fs.open("/one.csv", "wb") as file:
        pyarrow.csv.write_csv(table, file)
    with fs.open("/one.csv", "rb") as file:
        assert pyarrow.csv.read_csv(file) == table


def test_times_names_and_kinds_are_told(name: str) -> None:
    fs = fsspec.filesystem("scalefs", name=name)
    before = datetime.now(UTC) - timedelta(seconds=1)
    fs.makedirs("/a/b")
    fs.pipe_file("/a/file", b"12345")
    fs.symlink("/a/file", "/a/link")
    fs.link("/a/file", "/a/other")
    fs.symlink("/nowhere", "/a/dangling")
    assert before < fs.created("/a/file") <= fs.modified("/a/file") < before + timedelta(minutes=5)
    assert fs.ls("/a", detail=False) == ["/a/b", "/a/dangling", "/a/file", "/a/link", "/a/other"]
    described = {one["name"]: one for one in fs.ls("/a")}
    assert set(described) == {"/a/b", "/a/file", "/a/link", "/a/other"}
    assert described["/a/link"]["destination"] == "/a/file" and described["/a/link"]["size"] == 5
    assert (described["/a/b"]["type"], described["/a/other"]["nlink"]) == ("directory", 2)
    assert fs.lexists("/a/dangling") and not fs.exists("/a/dangling") and fs.islink("/a/dangling")
    assert fs.ls("/a/file", detail=False) == ["/a/file"]
    fs.chmod("/a/file", 0o600)
    assert fs.info("/a/file")["mode"] == 0o100600
    fs.touch("/a/file", truncate=False)
    assert fs.size("/a/file") == 5
    fs.touch("/a/file")
    assert fs.size("/a/file") == 0


def test_a_move_is_one_step_and_a_removal_follows_no_link(name: str) -> None:
    fs = fsspec.filesystem("scalefs", name=name)
    fs.makedirs("/a/below")
    fs.makedirs("/kept")
    fs.pipe({"/a/file": b"new", "/kept/file": b"kept", "/old": b"old"})
    number = fs.info("/a/file")["ino"]
    fs.mv("/a/file", "/old")
    assert (fs.cat("/old"), fs.info("/old")["ino"]) == (b"new", number)
    fs.mv("/old", "/a")
    fs.mv(f"scalefs://{name}/a", "/b", recursive=True)
    assert fs.find("/") == ["/b/old", "/kept/file"]
    fs.symlink("/kept", "/b/link")
    with pytest.raises(ValueError, match="recursive=True"):
        fs.rm("/b")
    fs.rm("/b", recursive=True)
    assert fs.find("/") == ["/kept/file"]
    fs.symlink("/kept", "/link")
    fs.rm("/link", recursive=True)
    assert fs.find("/") == ["/kept/file"] and not fs.lexists("/link")
    with pytest.raises(FileNotFoundError):
        fs.mv("/none", "/b")
    with pytest.raises(OSError, match="same file"):
        fs.cp_file("/kept/file", "/kept/file")
    assert fs.cat("/kept/file") == b"kept"


def test_all_of_a_transaction_happens_or_nothing(name: str) -> None:
    fs = fsspec.filesystem("scalefs", name=name)
    fs.pipe("/balance", b"100")
    with fs.transaction:
        with fs.open("/balance", "w") as file:
            file.write("90")
        fs.makedirs("/paid")
        fs.pipe("/paid/bob", b"10")
        assert (fs.cat("/balance"), named(name).read_bytes("/balance")) == (b"90", b"100")
        late = fs.open("/late", "w")
        late.write("closed by the end")
    assert (fs.cat("/balance"), fs.ls("/paid", detail=False)) == (b"90", ["/paid/bob"])
    assert fs.cat("/late") == b"closed by the end"
    with pytest.raises(KeyError), fs.transaction:
        fs.rm("/paid", recursive=True)
        raise KeyError("a mistake of the program's")
    assert fs.exists("/paid/bob")
    with pytest.raises(Stale), fs.transaction:
        fs.pipe("/balance", str(int(fs.cat("/balance")) - 10).encode())
        named(name).write_bytes("/balance", b"5")
    assert fs.cat("/balance") == b"5"
    fs.start_transaction()
    fs.pipe("/balance", b"4")
    assert named(name).read_bytes("/balance") == b"5"
    fs.end_transaction()
    assert named(name).read_bytes("/balance") == b"4"


def test_what_cannot_be_is_refused_in_one_line(name: str) -> None:
    fs = fsspec.filesystem("scalefs", name=name)
    fs.pipe("/file", b"1")
    for call, error, said in (
        (lambda: fs.open("s3://bucket/file"), ValueError, "expected scalefs://NAME/PATH"),
        (lambda: fs.cat("scalefs://someone-else/file"), ValueError, f"expected a path of scalefs://{name}"),
        (lambda: fs.ls("/none"), FileNotFoundError, "/none"),
        (lambda: fs.mkdir("/file"), FileExistsError, "/file"),
        (lambda: fs.open("/file", "q"), ValueError, "mode"),
        (lambda: fs.open(5), TypeError, "expected a path as text, got int"),
        (lambda: fs.open("/" + "x" * 256, "w"), OSError, "too long"),
        (lambda: fsspec.filesystem("scalefs", name="a/b"), ValueError, "expected a name"),
        (lambda: pickle.dumps(fs), TypeError, "do not travel"),
        (lambda: pickle.dumps(fsspec.open(f"scalefs://{name}/file")), TypeError, "do not travel"),
        (fs.to_json, TypeError, "do not travel"),
    ):
        with pytest.raises(error, match=said) as raised:
            call()  # type: ignore[no-untyped-call]
        assert "\n" not in str(raised.value)


def test_no_space_is_an_error_of_the_write(name: str) -> None:
    fs = fsspec.filesystem("scalefs", name=name, size_bytes=1 << 20)
    with pytest.raises(OSError, match=os.strerror(28)):
        fs.pipe("/large", bytes(2 << 20))
    fs.rm("/large")
    fs.pipe("/fits", bytes(900 << 10))


def test_threads_have_transactions_of_their_own(name: str) -> None:
    fsspec.filesystem("scalefs", name=name).pipe("/count", b"0")

    def count() -> None:
        fs = fsspec.filesystem("scalefs", name=name)
        for _ in range(20):
            while True:
                try:
                    with fs.transaction:
                        fs.pipe("/count", str(int(fs.cat("/count")) + 1).encode())
                except Stale:
                    continue
                break

    threads = [threading.Thread(target=count) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert named(name).read_bytes("/count") == b"60"


def test_a_child_of_fork_is_told_whose_files_these_are(name: str) -> None:
    fsspec.filesystem("scalefs", name=name).pipe("/file", b"1")
    child = os.fork()
    if child == 0:
        try:
            fsspec.filesystem("scalefs", name=name).cat("/file")
        except RuntimeError as error:
            os._exit(0 if "fork" in str(error) else 2)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
