"""What stands next to a percentage: what the run cannot have met."""

from __future__ import annotations

import pytest

from commutant.report.reach import not_reached

COUNTS = {
    "tests": 1,
    "conflict_free": 1,
    "conflicting": 0,
    "unstable": 0,
    "wrong_result": 0,
    "skipped": 0,
    "crashed": 0,
}


def _summary(interface: str, target: str, calls: int) -> dict[str, object]:
    return {"interface": interface, "target": target, "sets": [{"calls": ["stat"] * calls, **COUNTS}], **COUNTS}


@pytest.mark.parametrize(
    ("interface", "target", "calls", "expected"),
    [
        ("names", "scalefs", 2, ["64th call", "names beyond 200 bytes", "seed did not choose", "sets of more than 2"]),
        ("posix18", "scalefs:warm=64,cores=9", 3, ["names beyond", "seed did not choose", "sets of more than 3 calls"]),
        (
            "names",
            "scalefs:warm=64,depth=3",
            2,
            [
                "names beyond 200 bytes, several users (scalefs:names=long,users=2)",
                "seed did not choose",
                "sets of more than 2",
            ],
        ),
        ("names", "scalefs:warm=64,names=long,depth=3,users=2", 2, ["seed did not choose", "sets of more than 2"]),
        (
            "names",
            "linux:fs=ext4",
            2,
            [
                "puts off",
                "names beyond 7 letters, security modules (linux:names=30,security=on)",
                "paths of several components, several users",
                "--size 3 --sample N",
            ],
        ),
        ("posix", "linux:names=30", 2, ["puts off", "security modules (linux:security=on)", "sets of more than 2"]),
        ("names", "linux:names=long,security=on", 2, ["puts off", "paths of several", "sets of more than 2"]),
        ("map", "library:path=a.so", 2, ["sets of more than 2 calls"]),
    ],
)
def test_what_is_not_reached_depends_on_target_model_and_size(
    interface: str, target: str, calls: int, expected: list[str]
) -> None:
    found = not_reached(_summary(interface, target, calls))
    assert len(found) == len(expected)
    assert all(words in line for words, line in zip(expected, found, strict=True)), found


def test_a_level_that_leaves_flags_out_says_so() -> None:
    found = not_reached(_summary("posix18", "linux", 2) | {"level": "conflict"})
    assert "calls that differ in flags alone, such as an open for reading (--level full)" in found
    for interface, level in (("posix18", "full"), ("map", "conflict")):
        assert not any("flags" in what for what in not_reached(_summary(interface, "linux", 2) | {"level": level}))


def test_a_run_without_tests_reaches_nothing_and_says_no_percentage() -> None:
    assert not_reached({"interface": "map", "target": "library:path=a.so", "sets": [], **COUNTS}) == []
