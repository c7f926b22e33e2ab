"""`commutant kernel`: what is refused in one line, and a cache that is listed and tidied."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commutant.guest import keep_built, kept_kernels
from commutant.guest.kernel import KernelBuild, KernelPatch
from tests.targets.images import make_elf, write


@pytest.fixture
def cache(folder, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))


def keep(folder: Path, name: str) -> None:
    made = KernelBuild(
        source="linux",
        source_sha256="0" * 64,
        version="6.1.192",
        reference="6.1.0",
        config_sha256="1" * 64,
        compiler="gcc 12",
        patches=(KernelPatch(title=f"fs: {name}", sha256="2" * 64, text="--- a/x\n"),),
        types_compared=3,
        types_that_differ=(),
    )
    keep_built(write(folder / "vmlinux", make_elf(banner=f"Linux version 6.1.192-{name} ")), name, made, None)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("build", "--source", "debian", "--patch", "nowhere.patch"), "expected a patch (unified diff)"),
        (("build", "--source", "debian", "--patch", "words.patch"), "expected a patch (unified diff)"),
        (("build", "--source", "debian", "--name", "Own Kernel"), "expected two or more lower-case letters"),
        (("build", "--source", "debian", "--as-is"), "--as-is is about the configuration"),
        (("forget", "nope"), "no kernel 'nope' is kept; expected one of: one"),
        (("forget",), "expected a NAME"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(commutant, cache, folder, arguments, said):
    keep(folder, "one")
    Path("words.patch").write_text("words\n")
    answer = commutant("kernel", *arguments)
    assert answer.returncode == 2
    assert said in answer.stderr and len(answer.stderr.splitlines()) == 1


def test_kernels_are_listed_with_their_patches_and_forgotten(commutant, cache, folder):
    keep(folder, "one")
    keep(folder, "two")
    text = commutant("kernel", "list").stdout
    assert "one  Linux 6.1.192-one" in text and "  fs: two" in text
    listed = json.loads(commutant("kernel", "list", "--format", "json").stdout)
    assert [(one["names"], one["patches"]) for one in listed["kernels"]] == [
        (["one"], ["fs: one"]),
        (["two"], ["fs: two"]),
    ]
    assert "forgotten: one" in commutant("kernel", "forget", "one").stderr
    assert [one.names for one in kept_kernels()] == [("two",)]
    assert commutant("kernel", "forget", "--builds").returncode == 0
