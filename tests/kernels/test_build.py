"""Builds of a small tree: a base once, patched ones from it, one line a mistake, and a cache that stays whole."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

import pytest

from commutant.guest import forget, kept_kernels, kernel_of
from commutant.kernels import build as builds
from commutant.kernels import builds_folder, read_patch
from commutant.kernels.layouts import layout_of, read_types
from commutant.kernels.product import BuiltKernel, build_kernel, refuse_other_version
from commutant.kernels.source import Source, find_source
from commutant.kernels.tools import require_tools
from commutant.support import Progress, RunError, UsageError, no_progress
from tests.kernels.tree import FILES, SWAP, make_tree, patch_of, reference


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Source:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return make_tree(tmp_path / "linux")


def built(
    source: Source, *patches: Path, types: Collection[str] = ("inode", "count"), whole: bool = False
) -> BuiltKernel:
    said: list[str] = []
    read = [read_patch(path) for path in patches]
    base = builds.build_base(source, "CONFIG_A=y\n", _toolchain(), 1, no_progress)
    standard = reference(base.vmlinux)
    return build_kernel(source, "CONFIG_A=y\n", read, standard, types, 1, no_progress, said.append, whole=whole)


def _toolchain() -> str:
    from commutant.kernels.tools import toolchain

    return toolchain()


def written(folder: Path, text: str, name: str = "own.patch") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_base_is_built_once_and_kept_by_name(source: Source) -> None:
    first = built(source)
    assert (first.base.compiled, first.base.version) == (3, "6.1.192")
    assert not first.differences
    assert built(source).base == first.base
    assert [one.names for one in kept_kernels()] == [(first.name,)]
    kernel = kernel_of(first.name)
    assert not isinstance(kernel, Path)
    assert (kernel.release, kernel.built.patches) == ("6.1.192-commutant", ())
    assert kernel.built.config_sha256 == first.base.config_sha256
    forget([first.name])
    assert not list(kept_kernels())


def test_only_users_of_what_a_header_changes_are_compiled(source: Source, tmp_path: Path) -> None:
    patch = written(tmp_path, SWAP)
    few, all_ = built(source, patch), built(source, patch, whole=True)
    assert (few.made.compiled, all_.made.compiled) == (2, 2)
    flags = patch_of(
        "include/linux/fs.h",
        "#define private_of(inode) ((inode)->i_private)",
        "#define private_of(inode) 0l",
        number=14,
    )
    one = built(source, written(tmp_path, flags, "flags.patch"))
    assert one.made.compiled == 1
    record = one.kernel.built.patches
    assert record[0].title == "another line" and record[0].text == flags


def test_types_of_a_patched_kernel_are_the_new_ones(source: Source, tmp_path: Path) -> None:
    one = built(source, written(tmp_path, SWAP))
    types = read_types(one.kernel.read_types())
    inode = layout_of(types, "inode")
    assert inode is not None
    assert (inode.members["i_private"], inode.members["i_size"]) == ((0, 64), (128, 64))
    assert layout_of(types, "count") is not None
    assert [str(change) for change in one.changes] == ["inode: elsewhere: i_private, i_size"]
    compiled_whole = read_types(built(source, written(tmp_path, SWAP), whole=True).kernel.read_types())
    assert compiled_whole.structure("inode") == types.structure("inode")


def test_the_base_stays_as_it_is(source: Source, tmp_path: Path) -> None:
    base = built(source).base
    before = {path: path.read_bytes() for path in base.tree.rglob("*") if path.is_file()}
    built(source, written(tmp_path, SWAP))
    assert {path: path.read_bytes() for path in base.tree.rglob("*") if path.is_file()} == before
    assert not [path for path in base.folder.iterdir() if path.is_dir() and path.name != "tree"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (patch_of("fs/file.c", "long other;", "int x;", number=2), "does not apply to these sources: fs/file.c"),
        (patch_of("fs/none.c", "long other;", "int x;", number=2), "does not apply"),
        (
            patch_of("fs/file.c", "extern struct inode root;", "extern struct inod root;", number=2),
            "does not compile: include/linux/fs.h:",
        ),
        (
            patch_of("fs/file.c", "extern struct inode root;", "struct inode root;", number=2),
            "multiple definition of `root'",
        ),
        ("Subject: words\n", "expected a patch"),
        ("--- a/../../etc/x\n+++ b/../../etc/x\n@@ -1 +1 @@\n-a\n+b\n", "outside the tree"),
        ("--- /etc/x\n+++ /etc/x\n@@ -1 +1 @@\n-a\n+b\n", "outside the tree"),
    ],
)
def test_a_bad_patch_gets_one_line_and_leaves_nothing(source: Source, tmp_path: Path, text: str, said: str) -> None:
    base = built(source).base
    with pytest.raises(UsageError) as caught:
        built(source, written(tmp_path, text))
    assert said in str(caught.value) and "\n" not in str(caught.value)
    assert len(list(kept_kernels())) == 1
    assert [path.name for path in base.folder.iterdir() if path.is_dir()] == ["tree"]


def test_a_type_that_grows_is_said(source: Source, tmp_path: Path) -> None:
    text = patch_of("include/linux/fs.h", "	long i_size;", "	long i_size, i_more;", number=5)
    one = built(source, written(tmp_path, text))
    assert "inode: +8 bytes" in str(one.changes[0])
    assert "struct inode has 32 bytes in place of 24" in one.kernel.built.scope
    grown = patch_of(
        "include/linux/types.h", "struct count { int value; };", "struct count { int value, more; };", number=3
    )
    other = built(source, written(tmp_path, grown, "grown.patch"))
    assert other.made.compiled == 3
    assert "lies in inode" in other.kernel.built.scope


def test_an_interrupted_build_goes_on(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(progress: Progress) -> None:
        if progress.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        builds.build_base(source, "CONFIG_A=y\n", _toolchain(), 1, interrupted)
    assert not list(builds_folder().glob("*/base.json"))
    base = builds.build_base(source, "CONFIG_A=y\n", _toolchain(), 1, no_progress)
    assert base.compiled < 3


def test_a_full_disk_is_said_before_and_while_building(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builds, "_BASE_BYTES", 1 << 60)
    with pytest.raises(RunError, match="MiB free, expected"):
        built(source)
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    make = source.folder / "Makefile.build"
    make.write_text(
        FILES["Makefile.build"].replace("pahole -J vmlinux", "echo 'pahole: No space left on device'; false")
    )
    with pytest.raises(RunError, match="No space left on device"):
        built(source)
    assert not list(kept_kernels())
    (next(builds_folder().glob("*/tree")) / "Makefile.build").write_text(FILES["Makefile.build"])
    assert built(source).name


def test_sources_of_another_version_are_refused(source: Source) -> None:
    kernel = built(source).kernel
    assert refuse_other_version(source, kernel) is not None  # its release has a suffix
    other = Source(source.name, "6.12.3", "1" * 64, source.folder)
    with pytest.raises(
        UsageError, match=r"Linux 6\.12\.3, the reference kernel 6\.1\.192-commutant: expected the same"
    ):
        refuse_other_version(other, kernel)


def test_a_folder_is_known_by_its_files(source: Source) -> None:
    kernel = built(source).kernel
    first = find_source(str(source.folder), kernel, lambda _text: None)
    assert first.version == "6.1.192"
    (source.folder / "fs" / "left.o").write_text("made")
    assert find_source(str(source.folder), kernel, lambda _text: None).digest == first.digest
    (source.folder / "fs" / "file.c").write_text("int x;\n")
    assert find_source(str(source.folder), kernel, lambda _text: None).digest != first.digest
    with pytest.raises(UsageError, match="no source tree of Linux"):
        find_source(str(source.folder / "fs"), kernel, lambda _text: None)


def test_missing_tools_are_named_by_their_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(RunError, match="`apt-get install bc binutils bison flex gcc "):
        require_tools()


def test_records_are_json(source: Source, tmp_path: Path) -> None:
    one = built(source, written(tmp_path, SWAP))
    record = json.loads((one.kernel.vmlinux.parent / "kernel.json").read_text())
    assert record["built"]["patches"][0]["title"] == "fs: exchange i_size and i_private"
    assert record["types_sha256"]
