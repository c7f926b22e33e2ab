"""Patches of Linux 6.1 that were built and run: what the base's run foretells is what the patched kernel's run shows.

`kept/PATCH/base` and `kept/PATCH/new` are runs of `commutant check` on kernels of `commutant kernel build`, cut down to
some tests that the patch was foretold to free, and a sample of those that were run with it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from commutant.remedy import Change, Way, foretell, prove, scene_of
from commutant.runs import judged_tests, load_run

KEPT = Path(__file__).parent / "kept"
CHANGES = {
    "cred-non-rcu": Change(Way.DROP_WRITE, "cred.non_rcu"),
    "sb-remove-count": Change(Way.MOVE, "super_block.s_remove_count"),
    "shmem-huge": Change(Way.MOVE, "shmem_sb_info.huge"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_was_foretold_came(name: str) -> None:
    base, new = load_run(KEPT / name / "base"), load_run(KEPT / name / "new")
    foretold = foretell(scene_of(base.verdicts()), (CHANGES[name],)).freed
    proof = prove(list(judged_tests(base)), list(judged_tests(new)), foretold)
    assert len(foretold) >= 30
    assert len(proof.as_foretold) >= 0.99 * len(foretold)
    assert len(proof.besides) <= 0.05 * len(foretold)
    assert proof.holds and not proof.worse


def test_kernels_are_told_apart_by_their_patches() -> None:
    build = load_run(KEPT / "cred-non-rcu" / "new").info.target_description["kernel_build"]
    assert [patch["title"] for patch in build["patches"]] == ["cred: write non_rcu only if it is set"]
