"""What docs/notes/linux.md counts in a run on Linux: `python -m bench.linux_counts RUN [OTHER]`.

A row says which tests it looks at, by their calls, arguments and set-up (their number stands under *of*), and after
the colon which of them it counts. A variable is shared if the name of a finding begins with it; a line that is shared
falsely has the names of two fields. With OTHER, a run of the same tests, rows compare verdicts. Interfaces other
than `posix18`, and sets of more or fewer calls than two, have only the rows that suit any.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.choices import Choice, Seen, conflicts, falsely, only, placed, shares
from bench.naming import NameKind, kind_of_name
from commutant.campaign import Outcome
from commutant.runs import judged_tests, load_run
from commutant.support import CommutantError

NAMES = {"open", "link", "unlink", "rename", "stat"}
FILES = {"fstat", "lseek", "read", "write", "pread", "pwrite"}
"""Calls on a descriptor that leave it open."""
AREAS = {"mmap", "munmap", "mprotect"}
ACCESSES = {"memread", "memwrite"}
LOCKREF, MMAP_LOCK, RENAME_LOCK = "struct dentry.d_lockref", "struct mm_struct.mmap_lock", "rename_lock"
TABLE_LINE = "struct files_struct.fd_array[] | file_lock"
SUPER_LINE = "struct super_block.s_fsnotify_connectors | s_remove_count"
USER_COUNTS = "init_ucounts"
FAILURES = (Outcome.WRONG_RESULT, Outcome.CRASHED, Outcome.SKIPPED)


class Row(NamedTuple):
    """A count: `tests` of `of`."""

    what: str
    tests: int
    of: int


def row(what: str, tests: Iterable[Seen], choice: Choice = conflicts) -> Row:
    """How many of the tests a choice takes."""
    chosen = [choice(test) for test in tests]
    return Row(what, sum(chosen), len(chosen))


def of_any(tests: Sequence[Seen], bad: Sequence[Seen]) -> Iterator[Row]:
    """Rows for any interface."""
    yield row("all: not conflict-free", tests)
    yield row("not conflict-free: unstable", bad, lambda test: test.outcome is Outcome.UNSTABLE)
    yield row("all: wrong result, crashed or skipped", tests, lambda test: test.outcome in FAILURES)
    yield Row("all: variables that tests share, added up", sum(len(test.variables) for test in tests), len(tests))
    yield row("in one process: not conflict-free", placed(tests, 1))
    yield row("in two processes: not conflict-free", placed(tests, 2))
    yield row("not conflict-free: only by false sharing", bad, falsely)
    lines = [kind_of_name(finding) for test in tests for finding in test.findings]
    yield from (Row(f"shared lines: {kind.value}", lines.count(kind), len(lines)) for kind in NameKind)


def of_names(tests: Sequence[Seen], bad: Sequence[Seen]) -> Iterator[Row]:
    """Rows about names and directories."""
    stats = [test for test in tests if test.pair == ("stat", "stat")]
    here = [test for test in stats if len(test.directories) == 1]
    yield row("two stat, one name: share d_lockref", (test for test in here if test.alike("name")), shares(LOCKREF))
    others = (test for test in here if not test.alike("name"))
    yield row("two stat, two names in one directory: not conflict-free", others)
    yield row("two stat, two directories: not conflict-free", (test for test in stats if len(test.directories) == 2))
    yield row("not conflict-free: share d_lockref", bad, shares(LOCKREF))
    found = {test.pair for test in filter(shares(LOCKREF), bad)}
    yield Row("pairs of calls: share d_lockref in a test", len(found), len({test.pair for test in tests}))
    named = [test for test in tests if test.kinds <= NAMES]
    changing = [test for test in named if len(test.directories) == 1 and test.changes_other_names]
    locked = shares("struct inode.i_rwsem", LOCKREF)
    yield row("both change other names of one directory: share i_rwsem, d_lockref", changing, locked)
    apart = [test for test in named if len(test.directories) == 2]
    yield row("names in two directories: not conflict-free", apart)
    yield row("names in two directories: share rename_lock", apart, shares(RENAME_LOCK))
    yield row("names in two directories: share only rename_lock", apart, only(RENAME_LOCK))


def of_descriptors(tests: Sequence[Seen], bad: Sequence[Seen]) -> Iterator[Row]:
    """Rows about descriptors, and about what opening files costs."""
    files = [test for test in tests if test.kinds <= FILES]
    one = [test for test in placed(files, 1) if test.alike("fd") and test.opened(test.calls[0])]
    fstats = (test for test in one if test.kinds == {"fstat"})
    yield row("two fstat on one open descriptor: share only f_count", fstats, only("struct file.f_count"))
    yield row("both on one open descriptor: share f_count", one, shares("struct file.f_count"))
    two = [test for test in placed(files, 1) if not test.alike("fd")]
    activated = only("struct lruvec.nonresident_age")
    for where, chosen in (("two descriptors of a process", two), ("descriptors of two processes", placed(files, 2))):
        found = [test for test in chosen if test.conflicts]
        yield row(f"{where}: not conflict-free", chosen)
        yield row(f"{where}, not conflict-free: on one file or pipe", found, lambda test: test.on_one_file)
        yield row(
            f"{where}, not conflict-free: only nonresident_age, on two files",
            found,
            lambda test: not test.on_one_file and activated(test),
        )
    opens = [test for test in placed(tests, 1) if "open" in test.kinds]
    beside = (test for test in opens if test.kinds & {*FILES, "close"})
    yield row("open beside a descriptor of its process: share files_struct", beside, shares("struct files_struct."))
    yield row("not conflict-free: only the line of fd_array and file_lock", bad, only(TABLE_LINE))
    twice = (test for test in opens if test.kinds == {"open"})
    yield row("two open in one process: share cred.usage", twice, shares("struct cred.usage"))
    yield row("not conflict-free: only lines of cred", bad, only("struct cred."))
    yield row("not conflict-free: the line of s_remove_count, shared falsely", bad, shares(SUPER_LINE))
    yield row("not conflict-free: only the line of s_remove_count", bad, only(SUPER_LINE))
    yield row("not conflict-free: share shmem_sb_info", bad, shares("struct shmem_sb_info"))
    pipes = (test for test in placed(tests, 2) if test.pair == ("pipe", "pipe"))
    yield row("two pipe in two processes: share pipe_bufs", pipes, shares("root_user.pipe_bufs"))


def of_memory(tests: Sequence[Seen], bad: Sequence[Seen]) -> Iterator[Row]:
    """Rows about address spaces."""
    alone = placed(tests, 1)
    areas = [test for test in alone if test.kinds <= AREAS]
    yield row("mmap, munmap, mprotect in one process: not conflict-free", areas)
    yield row("mmap, munmap, mprotect in one process: share mmap_lock", areas, shares(MMAP_LOCK))
    pages = [test for test in areas if not test.alike("address")]
    yield row("so, and on different pages: not conflict-free", pages)
    free = (test for test in pages if not test.conflicts)
    yield row("so, and conflict-free: an mmap names a descriptor that is not open", free, maps_nothing)
    mixed = [test for test in alone if test.kinds & AREAS and test.kinds & ACCESSES]
    yield row("one of them beside a load or store of its process: not conflict-free", mixed)
    yield row("not conflict-free: only mmap_lock", bad, only(MMAP_LOCK))
    yield row("not conflict-free: share mmap_lock and nodes of the tree", bad, shares(MMAP_LOCK, "struct maple_"))
    faults = [test for test in tests if all(all(test.ends(call, "signal")) for call in test.calls)]
    yield row("both fault, in two processes: share init_ucounts", placed(faults, 2), shares(USER_COUNTS))
    yield row("both fault, in two processes: share only init_ucounts", placed(faults, 2), only(USER_COUNTS))
    meeting = shares(USER_COUNTS, "struct sighand_struct.siglock")
    yield row("both fault, in one process: share init_ucounts and siglock", placed(faults, 1), meeting)
    interrupted = [*filter(shares("per-CPU flush_tlb_info"), bad)]
    yield Row("not conflict-free: share flush_tlb_info", len(interrupted), len(bad))
    yield row("share flush_tlb_info: have munmap, mmap or mprotect", interrupted, lambda test: bool(test.kinds & AREAS))


def maps_nothing(test: Seen) -> bool:
    """Whether a call would map what a descriptor leads to that is not open."""
    maps = (call for call in test.calls if call.call == "mmap" and not call.args["anonymous"])
    return any(test.opened(call) is None for call in maps)


def compared(tests: Sequence[Seen], others: Sequence[Seen]) -> Iterator[Row]:
    """Rows about the tests that another run has, too."""
    there = {test.id: test for test in others}
    both = [(test, there[test.id]) for test in tests if test.id in there]
    yield Row("in both runs: another verdict there", sum(a.outcome is not b.outcome for a, b in both), len(both))
    here_only = (test for test, other in both if test.conflicts and not other.conflicts)
    there_only = (other for test, other in both if other.conflicts and not test.conflicts)
    yield row("not conflict-free only here: by false sharing alone", here_only, falsely)
    yield row("not conflict-free only there: by false sharing alone", there_only, falsely)


def counts(tests: Sequence[Seen], interface: str, others: Sequence[Seen] = ()) -> Iterator[Row]:
    """All rows that suit the interface; `others` are the tests of a run to compare with."""
    bad = [test for test in tests if test.conflicts]
    yield from of_any(tests, bad)
    if interface == "posix18" and all(len(test.calls) == 2 for test in tests):
        yield from of_names(tests, bad)
        yield from of_descriptors(tests, bad)
        yield from of_memory(tests, bad)
    if others:
        yield from compared(tests, others)


def main(arguments: Sequence[str]) -> int:
    """Prints the rows as a table, and the pairs without a conflict; returns the exit code."""
    if len(arguments) not in (1, 2):
        print("usage: python -m bench.linux_counts RUN [OTHER]", file=sys.stderr)
        return 2
    try:
        runs = [load_run(Path(argument)) for argument in arguments]
        tests, *others = ([Seen(judged) for judged in judged_tests(run)] for run in runs)
    except CommutantError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    if others and not {test.id for test in tests} & {test.id for test in others[0]}:
        print(f"{arguments[1]} has none of the tests of {arguments[0]}; compare runs of one corpus", file=sys.stderr)
        return 2
    run = runs[0]
    ended = "" if len(tests) == run.info.tests else f", incomplete: {len(tests):,} of {run.info.tests:,} tests"
    print(f"{run.info.interface} on {run.info.target}: {run.summary.windows:,} windows{ended}\n")
    print("| what | tests | of |\n| --- | --- | --- |")
    for what, number, of in counts(tests, runs[0].info.interface, *others):
        print(f"| {what} | {number:,} | {of:,} |")
    shared = {test.pair for test in tests if test.outcome is not Outcome.CONFLICT_FREE}
    free = sorted({test.pair for test in tests} - shared)
    print(f"\nsets of calls whose tests are all conflict-free ({len(free)}): {', '.join(map(' + '.join, free))}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
