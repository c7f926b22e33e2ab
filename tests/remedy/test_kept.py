"""Patches of Linux that were built and run: what the base's run foretells is what the patched kernel's run shows.

`kept/SERIES/PATCH.tar.xz` holds a run of `commutant check` on a kernel of `commutant kernel build` and one on the same
kernel with the patch, both cut down by `keep.py` to some tests.
"""

from __future__ import annotations

import io
import lzma
import tarfile
from pathlib import Path

import pytest

from commutant.remedy import Change, Proof, Way, foretell, prove, read_change, scene_of
from commutant.runs import Run, judged_tests, load_run
from remedies import CHANGES, PATCHES

KEPT = Path(__file__).parent / "kept"

PROVED = {
    "6.1/address-space-host": (47, 43, 4, 1, True),
    "6.1/close-no-file": (36, 36, 2, 3, True),
    "6.1/cred-non-rcu": (57, 57, 1, 0, True),
    "6.1/cred-usage": (43, 43, 1, 1, True),
    "6.1/dentry-subdirs": (44, 44, 1, 0, True),
    "6.1/fd-array-own-line": (50, 50, 2, 2, False),
    "6.1/fd-array-spread": (60, 60, 2, 0, True),
    "6.1/inode-mtime": (40, 40, 3, 0, True),
    "6.1/inode-nlink": (44, 44, 5, 0, True),
    "6.1/inode-rdev": (4, 4, 0, 1, True),
    "6.1/sb-remove-count": (49, 49, 0, 0, True),
    "6.1/shmem-huge": (31, 31, 2, 0, True),
    "6.1/shmem-nosec": (39, 37, 1, 0, True),
    "6.1/signal-own-fault": (57, 57, 7, 1, True),
    "6.1/vma-shared-last": (60, 51, 2, 3, True),
    "6.12/close-no-file": (36, 36, 0, 0, True),
    "6.12/cred-non-rcu": (54, 54, 0, 0, True),
    "6.12/fd-array-spread": (60, 60, 2, 0, True),
    "6.12/sb-remove-count": (42, 42, 0, 0, True),
    "6.12/signal-own-fault": (57, 55, 12, 0, True),
}
"""For each patch: tests predicted, freed as predicted, freed besides, worse, and whether `prove` finds nothing new."""


NEW_NEIGHBOUR = "6.1/vma-shared-last"
"""Leaves `vm_flags` next to a field that came to its line: what a run does not tell beforehand."""


def changes_of(name: str) -> tuple[Change, ...]:
    """What foretells a patch (`6.1/cred-non-rcu`)."""
    flags = CHANGES[name.partition("/")[2]][1]
    return tuple(read_change(Way(flag[2:]), place) for flag, place in zip(flags[::2], flags[1::2], strict=True))


def kept(name: str, folder: Path) -> tuple[Run, Run]:
    """Both runs of a patch, unpacked."""
    data = lzma.decompress((KEPT / f"{name}.tar.xz").read_bytes())
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        archive.extractall(folder, filter="data")
    return load_run(folder / "base"), load_run(folder / "new")


def proof_of(name: str, folder: Path) -> Proof:
    """What `prove` says of the runs that are kept."""
    base, new = kept(name, folder)
    foretold = foretell(scene_of(base.verdicts()), changes_of(name)).freed
    return prove(list(judged_tests(base)), list(judged_tests(new)), foretold)


def test_each_patch_has_its_runs() -> None:
    patches = {f"{path.parent.name}/{path.stem}" for path in PATCHES.glob("*/*.patch")}
    assert patches == set(PROVED) == {f"{path.parent.name}/{path.name.split('.')[0]}" for path in KEPT.glob("*/*.xz")}


@pytest.mark.parametrize("name", PROVED)
def test_what_was_foretold_came(name: str, tmp_path: Path) -> None:
    proof = proof_of(name, tmp_path)
    foretold = proof.foretold or frozenset()
    assert not proof.wrong
    assert (len(foretold), len(proof.as_foretold), len(proof.besides), len(proof.worse), proof.holds) == PROVED[name]
    assert len(proof.as_foretold) + len(proof.by_noise) >= (0.95 if name != NEW_NEIGHBOUR else 0.85) * len(foretold)


def test_kernels_are_told_apart_by_their_patches(tmp_path: Path) -> None:
    build = kept("6.1/cred-non-rcu", tmp_path)[1].info.target_description["kernel_build"]
    assert [patch["title"] for patch in build["patches"]] == ["cred: write non_rcu only if it is set"]
