"""Pictures: kept by the judge for each finding."""

from __future__ import annotations

from commutant.campaign.verdict import Judge
from commutant.mtrace import ObjectCourse, WindowCourse
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


def test_the_judge_keeps_what_was_done_to_objects_that_stand_in_the_first_window_of_each_order() -> None:
    test, finding, passing = make_test(), make_finding(), make_finding("passing")
    judge = Judge(test)
    for window in range(6):  # orders take turns; the first of the second order is clean
        if window == 1:
            judge.add(WindowRecord(Job(test, 1)))
            continue
        found = (finding, passing) if window == 0 else (finding,)
        objects = (ObjectCourse(DENTRY, (b"%d" % window,)), ObjectCourse(INODE, (b"passing",)))[: len(found)]
        course = WindowCourse((window, 9), objects)
        shown = tuple(one.picture for one in objects)
        judge.add(WindowRecord(Job(test, window % 2), found, pictures=shown, course=course))
    assert judge.verdict is not None
    assert judge.verdict.findings == (finding,)
    assert judge.verdict.courses == (
        WindowCourse((0, 9), (ObjectCourse(DENTRY, (b"0",)),)),
        WindowCourse((3, 9), (ObjectCourse(DENTRY, (b"3",)),)),
    )
