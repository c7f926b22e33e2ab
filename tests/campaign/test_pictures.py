"""Pictures: kept by the judge for each finding."""

from __future__ import annotations

from commutant.campaign.verdict import Judge
from commutant.targets.base import Job, WindowRecord
from tests.campaign.fakes import make_finding, make_test
from tests.campaign.test_lines import DENTRY, INODE


def test_the_judge_keeps_what_the_first_window_of_each_order_showed() -> None:
    test, finding = make_test(), make_finding()
    shows = [[INODE], [DENTRY], [DENTRY, INODE], [DENTRY], [INODE], [INODE]]  # orders take turns
    judge = Judge(test)
    for window, drawn in enumerate(shows):
        found = (finding,) * len(drawn)
        judge.add(WindowRecord(Job(test, window % 2), found, pictures=tuple(drawn)))
    assert judge.verdict is not None
    assert judge.verdict.pictures == ((INODE, DENTRY),)
