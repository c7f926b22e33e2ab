"""Modules out of a package: read whichever way they are compressed, put in order, kept with the kernel."""

from __future__ import annotations

import bz2
import gzip
import lzma
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commutant.guest import kernel as kernels
from commutant.guest.modules import Module, load_order, read_module
from commutant.support import Budget, RunError, UsageError
from tests.targets.images import make_bzimage, make_elf, make_module

COMPRESSIONS: list[Callable[[bytes], bytes]] = [bytes, lzma.compress, gzip.compress, bz2.compress]


def _budget() -> Budget:
    return Budget("package", 1 << 20, 60.0)


@pytest.mark.parametrize("compress", COMPRESSIONS)
def test_a_module_says_what_it_needs(compress: Callable[[bytes], bytes]) -> None:
    image = make_module(depends="jbd2,crc-16", softdep="pre: crypto-crc32c other post: late", alias="fs-ext4")
    module = read_module("ext-4", compress(image), _budget())
    aliases = frozenset({"fs-ext4"})
    assert module == Module("ext_4", image, ("jbd2", "crc_16"), ("crypto-crc32c", "other"), aliases, False)


@given(data=st.binary(max_size=100), cut=st.integers(0, 400))
def test_damaged_modules_give_one_line(data: bytes, cut: int) -> None:
    for damaged in (data, lzma.compress(make_module())[:cut], make_module()[:cut] + data):
        try:
            read_module("x", damaged, _budget())
        except UsageError as error:
            assert "\n" not in str(error)


def test_modules_are_unpacked_within_one_budget_and_say_little_of_themselves() -> None:
    budget, packed = _budget(), lzma.compress(make_module() + bytes(400_000))
    for _ in range(2):
        read_module("x", packed, budget)
    with pytest.raises(UsageError, match="module x: package: unpacks to more than 1 MiB"):
        read_module("x", packed, budget)
    with pytest.raises(UsageError, match=r"module x: a section .modinfo of 90,0\d\d bytes"):
        read_module("x", make_module(alias="a" * 90_000), _budget())


def _module(name: str, *depends: str, soft: str = "", aliases: str = "", cpu: bool = False) -> Module:
    return Module(name, b"", depends, tuple(soft.split()), frozenset(aliases.split()), cpu)


def _by_name(*modules: Module) -> dict[str, Module]:
    return {module.name: module for module in modules}


def test_what_is_needed_comes_first_and_once() -> None:
    modules = _by_name(
        _module("ext4", "jbd2", "mbcache", soft="crc32c"),
        _module("jbd2", soft="crc32c"),
        _module("mbcache"),
        _module("crc32c_generic", aliases="crc32c"),
        _module("crc32c_intel", aliases="crc32c", cpu=True),
        _module("unrelated", "nothing"),
    )
    assert load_order("ext4", modules) == ("crc32c_generic", "jbd2", "mbcache", "ext4")


def test_a_module_that_is_missing_is_named_and_soft_ones_may_be_missing() -> None:
    modules = _by_name(_module("a", "b", soft="nobody"), _module("b", "c"))
    with pytest.raises(UsageError, match="the module b needs c"):
        load_order("a", modules)
    assert load_order("a", {**modules, "b": _module("b")}) == ("b", "a")


def test_a_chain_without_end_and_a_thousand_aliases_are_no_burden() -> None:
    modules = _by_name(*(_module(f"m{number}", f"m{number + 1}") for number in range(100_000)))
    with pytest.raises(UsageError, match="the module m0 is part of a cycle of modules"):
        load_order("m0", modules)
    many = [_module(f"m{number}", soft=" ".join(map(str, range(100))), aliases="x y") for number in range(2_000)]
    assert load_order("m0", _by_name(*many)) == ("m0",)


@given(st.dictionaries(st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdef"), max_size=3)), st.data())
def test_every_order_is_one_in_which_modules_load(needs: dict[str, list[str]], data: st.DataObject) -> None:
    """Circles, which no kernel loads, must not keep the order from ending."""
    wanted = data.draw(st.sampled_from("abcdef"))
    modules = {name: _module(name, *others) for name, others in needs.items()}
    try:
        order = load_order(wanted, modules)
    except UsageError:
        return
    assert order[-1] == wanted and len(set(order)) == len(order)
    assert set(order) == {wanted, *(other for name in order for other in needs[name])}
    if not _has_circle(needs, order):
        for name in order:
            assert all(order.index(other) < order.index(name) for other in needs[name])


def _has_circle(needs: dict[str, list[str]], names: tuple[str, ...]) -> bool:
    left = set(names)
    while ready := {name for name in left if not left & set(needs[name])}:
        left -= ready
    return bool(left)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with a kernel and modules, some packed, and a cache folder of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    tree = tmp_path / "tree"
    modules = tree / "lib" / "modules" / "6.1.0-test" / "kernel"
    for path, content in {
        "fs/xfs/xfs.ko.xz": lzma.compress(make_module(depends="libcrc32c")),
        "lib/libcrc32c.ko": make_module(softdep="pre: crc32c"),
        "crypto/crc32c-generic.ko": make_module(alias="crc32c"),
        "drivers/block/brd.ko": make_module(),
        "fs/fuse/fuse.ko": make_module(),
        "drivers/net/e1000.ko": b"not read",
    }.items():
        (modules / path).parent.mkdir(parents=True, exist_ok=True)
        (modules / path).write_bytes(content)
    (tree / "boot").mkdir()
    (tree / "boot" / "vmlinuz-6.1.0-test").write_bytes(make_bzimage(lzma.compress(make_elf())))
    (tree / "DEBIAN").mkdir()
    control = "Package: linux-image-test\nVersion: 1\nArchitecture: amd64\nMaintainer: nobody\nDescription: test\n"
    (tree / "DEBIAN" / "control").write_text(control)
    path = tmp_path / "linux-image-test.deb"
    subprocess.run(["dpkg-deb", "--build", str(tree), str(path)], capture_output=True, check=True)
    return path


def test_a_package_s_modules_are_kept_with_the_kernel(package: Path) -> None:
    kernel = kernels.unpack(package)
    assert kernel.modules_for(["brd", "xfs"]) == ("brd", "crc32c_generic", "libcrc32c", "xfs")
    assert kernel.modules_for(["ext4"]) == ()
    assert kernel.read_module("xfs") == make_module(depends="libcrc32c")
    assert kernels.unpack(package) == kernel


def test_a_package_is_unpacked_again_for_modules_that_were_not_sought(package: Path) -> None:
    kernel = kernels.unpack(package)
    assert kernel.modules_for(["fuse"]) == ("fuse",) and kernel.has_all_modules
    without = {name: order for name, order in kernel.load_orders.items() if name != "fuse"}
    older = replace(kernel, load_orders=without, sought=("brd", "xfs"))
    kernels._describe(older)
    kernels.set_default(older)
    assert kernels.default_kernel() == older and not older.has_all_modules
    assert kernels.unpack(package) == kernel
    built = kernels.KernelBuild(
        source="linux",
        source_sha256="0" * 64,
        version="6.1.192",
        reference="6.1.0",
        config_sha256="1" * 64,
        compiler="gcc",
        patches=(),
        types_compared=0,
        types_that_differ=(),
    )
    assert replace(older, built=built).has_all_modules, "no package would give it more"


def test_a_changed_module_is_noticed(package: Path) -> None:
    kernel = kernels.unpack(package)
    path = kernel.vmlinux.parent / "modules" / "brd.ko"
    path.write_bytes(make_module(alias="another"))
    with pytest.raises(RunError, match=r"brd\.ko: not what was unpacked there"):
        kernel.read_module("brd")
    path.unlink()
    with pytest.raises(RunError, match=r"brd\.ko: No such file"):
        kernel.read_module("brd")


def test_a_description_with_a_module_that_leads_elsewhere_is_not_believed(package: Path) -> None:
    kernel = kernels.unpack(package)
    kernels.set_default(replace(kernel))
    record = kernel.vmlinux.parent / "kernel.json"
    record.write_text(record.read_text().replace('"brd"', '"../../brd"'))
    with pytest.raises(RunError, match="impossible name"):
        kernels.default_kernel()
