"""Kernels from any of the forms they come in, and one clear line for what is none."""

from __future__ import annotations

import bz2
import gzip
import io
import itertools
import lzma
import shutil
import struct
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from commutant.guest import elf as elf_module
from commutant.guest import kernel as kernels
from commutant.guest import tar as archive_module
from commutant.guest.bzimage import extract_vmlinux, is_bzimage
from commutant.guest.elf import Elf
from commutant.guest.prepare import image_package, main
from commutant.support.errors import CommutantError, RunError, UsageError
from tests.targets.images import RELEASE, make_bzimage, make_elf, write


def _lzma_alone(data: bytes) -> bytes:
    return lzma.compress(data, lzma.FORMAT_ALONE)


def _zstd(data: bytes) -> bytes:
    return subprocess.run(["zstd", "--stdout"], input=data, capture_output=True, check=True).stdout


def _lz4(data: bytes) -> bytes:
    """A legacy frame of blocks that find runs of one byte and nothing else, with the size after it."""
    frame = bytearray(b"\x02\x21\x4c\x18")
    for start in range(0, max(1, len(data)), 8 << 20):
        block = _lz4_block(data[start : start + (8 << 20)])
        frame += struct.pack("<I", len(block)) + block
    return bytes(frame) + struct.pack("<I", len(data))


def _lz4_block(data: bytes) -> bytes:
    block, literals = bytearray(), bytearray()
    for byte, run in itertools.groupby(data):
        length = len(list(run))
        literals.append(byte)
        if length < 20:
            literals += bytes([byte]) * (length - 1)
            continue
        block += _lz4_token(len(literals), length - 1 - 4) + literals + struct.pack("<H", 1)
        block += _lz4_rest(length - 1 - 4)
        literals.clear()
    # The last sequence is literals alone: a match cannot end a block.
    return bytes(block + _lz4_token(len(literals), 0) + literals)


def _lz4_token(literals: int, match: int) -> bytes:
    return bytes([min(literals, 15) << 4 | min(match, 15)]) + _lz4_rest(literals)


def _lz4_rest(length: int) -> bytes:
    return b"" if length < 15 else b"\xff" * ((length - 15) // 255) + bytes([(length - 15) % 255])


COMPRESSIONS: list[Callable[[bytes], bytes]] = [lzma.compress, _lzma_alone, bz2.compress, gzip.compress, _lz4]
if shutil.which("zstd"):
    COMPRESSIONS.append(_zstd)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize("compress", COMPRESSIONS)
def test_every_compression_gives_the_vmlinux(compress: Callable[[bytes], bytes]) -> None:
    vmlinux = make_elf()
    image = make_bzimage(compress(vmlinux))
    assert is_bzimage(image)
    assert extract_vmlinux(image, "image") == vmlinux


@example(cut=518, compression=COMPRESSIONS[0])  # after the magic number, before the protocol's
@given(cut=st.integers(min_value=0), compression=st.sampled_from(COMPRESSIONS[:5]))
def test_a_bzimage_cut_off_anywhere_is_refused(cut: int, compression: Callable[[bytes], bytes]) -> None:
    image = make_bzimage(compression(make_elf()))
    with pytest.raises(UsageError, match="image: "):
        extract_vmlinux(image[: cut % len(image)], "image")


@given(data=st.binary(max_size=200), place=st.integers(min_value=0))
def test_damaged_bzimages_and_elf_files_never_fail_otherwise(data: bytes, place: int) -> None:
    for whole in (make_bzimage(lzma.compress(make_elf())), make_elf()):
        at = place % len(whole)
        damaged = whole[:at] + data + whole[at + len(data) :]
        try:
            elf = Elf(damaged if damaged.startswith(b"\x7fELF") else extract_vmlinux(damaged, "x"), "x")
            elf.section(".BTF")
            elf.starts_by_pvh()
        except UsageError:
            pass


def test_a_bzimage_says_what_is_wrong_with_it() -> None:
    for image, expected in [
        (b"no kernel" * 200, "expected a kernel"),
        (make_bzimage(b"\x04\x22\x4d\x18lz4"), "compressed in an unknown way"),
        (make_bzimage(b"\x02\x21\x4c\x18" + struct.pack("<I", 5) + b"\x0fabcd"), "damaged"),
        (make_bzimage(_lz4(make_elf())[:-30]), "damaged"),
        (make_bzimage(lzma.compress(b"#!/bin/sh")), "not an ELF file"),
        (make_bzimage(lzma.compress(make_elf()), protocol=0x0206), "boot protocol 0x0206"),
        (make_bzimage(lzma.compress(make_elf())[:-30]), "damaged"),
    ]:
        with pytest.raises(UsageError, match=expected):
            extract_vmlinux(image, "image")


def test_an_elf_file_is_read_as_far_as_needed() -> None:
    elf = Elf(make_elf(btf=b"BTF itself"), "vmlinux")
    assert elf.section(".BTF") == b"BTF itself"
    assert elf.section(".debug_info") is None
    assert elf.starts_by_pvh()
    assert not Elf(make_elf(pvh=False), "vmlinux").starts_by_pvh()


def test_all_forms_give_the_same_kernel_and_are_unpacked_once(tmp_path: Path) -> None:
    vmlinux = make_elf()
    image = make_bzimage(lzma.compress(vmlinux))
    forms = [write(tmp_path / "vmlinux", vmlinux), write(tmp_path / "bzImage", image), _package(tmp_path, image)]
    for form in forms:
        kernel = kernels.unpack(form)
        assert (kernel.release, kernel.source, kernel.read()) == (RELEASE, str(form), vmlinux)
        stamp = kernel.vmlinux.stat().st_mtime_ns
        assert kernels.unpack(form) == kernel
        assert kernel.vmlinux.stat().st_mtime_ns == stamp


def test_notes_are_looked_at_once_and_briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """65,535 headers that each said that all of the file is notes were gone through for minutes."""
    looked_at: list[int] = []
    notes = elf_module._notes

    def counted(data: bytes) -> Iterator[tuple[bytes, int]]:
        looked_at.append(len(data))
        return notes(data)

    monkeypatch.setattr(elf_module, "_notes", counted)
    content = bytes(1 << 20)
    header = struct.pack("<IIQQQQQQ", 4, 0, 64, 0, 0, len(content), 0, 0)
    image = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01", 2, 62, 1, 0, 64 + len(content), 0, 0, 64, 56, 65_535, 0, 0, 0
    )
    assert not Elf(image + content + header * 65_535, "vmlinux").starts_by_pvh()
    assert sum(looked_at) <= 1 << 16


def _deb(path: Path, data: bytes) -> Path:
    """A package whose archive of files is given; deb(5) has the form."""
    control = io.BytesIO()
    with tarfile.open(fileobj=control, mode="w", format=tarfile.GNU_FORMAT) as archive:
        text = b"Package: x\nVersion: 1\nArchitecture: all\nMaintainer: nobody\nDescription: x\n"
        member = tarfile.TarInfo("./control")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text))
    parts = {"debian-binary": b"2.0\n", "control.tar": control.getvalue(), "data.tar": data}
    package = b"!<arch>\n"
    for name, part in parts.items():
        package += b"%-16s%-12d%-6d%-6d%-8o%-10d`\n" % (name.encode(), 0, 0, 0, 0o100644, len(part))
        package += part + b"\n" * (len(part) % 2)
    return write(path, package)


def _tar_header(name: str, kind: bytes, size: int) -> bytes:
    member = tarfile.TarInfo(name)
    member.type, member.size = kind, size
    return member.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (
            _tar_header("././@LongLink", tarfile.GNUTYPE_LONGNAME, 1 << 30) + bytes(1 << 20),
            "headers of more than 16,384",
        ),
        (_tar_header("x", tarfile.XHDTYPE, 1 << 30) + bytes(1 << 20), "headers of more than 16,384"),
        (_tar_header("x", tarfile.GNUTYPE_SPARSE, 100) + bytes(1 << 20), "of a kind that no package holds"),
        (_tar_header("boot/vmlinuz-6.1", tarfile.REGTYPE, 1 << 29) + bytes(1 << 20), "unpacks to more than 256 MiB"),
        (_tar_header("boot/x", tarfile.REGTYPE, 1 << 32) + bytes(1 << 20), "unpacks to more than 2048 MiB"),
        (b"".join(_tar_header(f"x{n}", tarfile.REGTYPE, 0) for n in range(100)) + bytes(1 << 20), "more than 50 files"),
    ],
)
def test_what_a_package_announces_is_looked_at_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, expected: str
) -> None:
    """A name of a gigabyte, in a package of one megabyte, was read into memory; test_archive.py has more of them."""
    monkeypatch.setattr(archive_module, "FILE_LIMIT", 50)
    with pytest.raises(UsageError, match=expected):
        kernels.unpack(_deb(tmp_path / "x.deb", data))


def _package(folder: Path, image: bytes, name: str = "vmlinuz-6.1.0-test") -> Path:
    tree = folder / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    (tree / "boot").mkdir(parents=True)
    (tree / "boot" / name).write_bytes(image)
    (tree / "DEBIAN").mkdir()
    control = "Package: linux-image-test\nVersion: 1\nArchitecture: amd64\nMaintainer: nobody\nDescription: test\n"
    (tree / "DEBIAN" / "control").write_text(control)
    package = folder / "linux-image-test.deb"
    subprocess.run(["dpkg-deb", "--build", str(tree), str(package)], capture_output=True, check=True)
    return package


def test_packages_that_are_damaged_or_hold_no_kernel_are_refused(tmp_path: Path) -> None:
    package = _package(tmp_path, make_bzimage(lzma.compress(make_elf())), "config-6.1")
    with pytest.raises(UsageError, match="without boot/vmlinuz"):
        kernels.unpack(package)
    whole = _package(tmp_path, make_bzimage(lzma.compress(make_elf()))).read_bytes()
    for cut in (8, 100, len(whole) // 2, len(whole) - 300):
        with pytest.raises(UsageError, match="package"):
            kernels.unpack(write(tmp_path / "cut.deb", whole[:cut]))


@pytest.mark.parametrize(
    ("elf", "expected"),
    [
        (make_elf(machine=183), "another machine"),
        (make_elf(pvh=False), "CONFIG_PVH"),
        (make_elf(banner="hello"), "expected a kernel"),
    ],
)
def test_kernels_that_cannot_be_used_are_refused(tmp_path: Path, elf: bytes, expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        kernels.unpack(write(tmp_path / "vmlinux", elf))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        kernels.unpack(tmp_path / "none")


def test_the_default_kernel_is_the_one_that_was_set(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="make setup"):
        kernels.default_kernel()
    kernel = kernels.unpack(write(tmp_path / "vmlinux", make_elf()))
    kernels.set_default(kernel)
    assert kernels.default_kernel() == kernel


def test_a_changed_kernel_is_noticed(tmp_path: Path) -> None:
    kernel = kernels.unpack(write(tmp_path / "vmlinux", make_elf()))
    kernels.set_default(kernel)
    data = bytearray(kernel.vmlinux.read_bytes())
    data[-1] ^= 1
    kernel.vmlinux.write_bytes(data)
    with pytest.raises(RunError, match="SHA-256"):
        kernels.default_kernel().read()
    kernel.vmlinux.write_bytes(data[:-1])
    with pytest.raises(RunError, match="damaged"):
        kernels.default_kernel()


@given(text=st.text(max_size=60))
def test_a_damaged_record_of_the_default_gives_one_line(text: str) -> None:
    record = kernels.kernels_folder() / "default.json"
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_bytes(text.encode(errors="surrogatepass"))
    with pytest.raises(CommutantError):
        kernels.default_kernel()


def test_the_package_is_the_dependency_of_the_meta_package() -> None:
    depends = "linux-image-amd64\n  Depends: linux-image-6.1.0-56-amd64\n  Conflicts: x\n"
    assert image_package(depends, "linux-image-amd64") == "linux-image-6.1.0-56-amd64"
    image = "linux-image-6.1.0-56-amd64\n  Depends: kmod\n"
    assert image_package(image, "linux-image-6.1.0-56-amd64") == "linux-image-6.1.0-56-amd64"
    with pytest.raises(RunError, match="apt-get update"):
        image_package("linux-image-amd64\n", "linux-image-amd64")


def test_prepare_leaves_a_prepared_kernel_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = kernels.unpack(write(tmp_path / "vmlinux", make_elf()))
    kernels.set_default(kernel)
    kernels.set_prepared("linux-image-test", kernel)
    for arguments in ([], ["linux-image-test"]):
        assert main(arguments) == 0
        assert RELEASE in capsys.readouterr().out
    assert main(["--help"]) == main(["a", "b"]) == 2
    assert main(["../x"]) == 2
    assert "expected the name of a Debian package" in capsys.readouterr().err


def test_a_kernel_is_a_file_or_a_prepared_package(tmp_path: Path) -> None:
    path = write(tmp_path / "vmlinux", make_elf())
    assert kernels.kernel_of(str(path)) == path
    kernels.set_prepared("linux-image-test", kernels.unpack(path))
    assert kernels.kernel_of("linux-image-test") == kernels.prepared_kernel("linux-image-test")
    for wrong in ("linux-image-other", "../../etc", "/nowhere"):
        with pytest.raises(UsageError, match=f"no file {wrong}; expected a kernel"):
            kernels.kernel_of(wrong)
