"""Invented runs for the tests of this package: nothing here was measured.

The shapes (which calls share which variables) follow what is generally known of Linux's tmpfs, so that pages and tables
look like real ones; every number, stack and verdict is made up by a seeded generator.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement
from typing import Literal

from msgspec import structs

from commutant.campaign.verdict import Outcome as Judgement
from commutant.corpus import ExpectedOutcome, Order, PlacedCall, SetupStep, Step, TestCase, Value
from commutant.mtrace.finding import Access, Finding, LineField, Touched
from commutant.report.data import JudgedTest, RunReport

NAMES = ("open", "link", "unlink", "rename", "stat", "access")
POSIX18 = (
    *("open", "link", "unlink", "rename", "stat", "fstat", "lseek", "close", "pipe"),
    *("read", "write", "pread", "pwrite", "mmap", "munmap", "mprotect", "memread", "memwrite"),
)
ENTRY = ("do_syscall_64+0x5b", "entry_SYSCALL_64_after_hwframe+0x64")
ABSENT = {"errno": "ENOENT"}

# name, field, sharing, bytes of the first and of the second core, functions, chance per creating call
SHARED = (
    ("struct dentry", "d_lockref", "true", (24, 8), (24, 8), ("lockref_get_not_dead", "dput"), 0.9),
    ("struct inode", "i_rwsem.count", "true", (32, 8), (32, 8), ("down_write", "up_write"), 0.8),
    ("struct inode", "i_size | i_mode", "false", (16, 8), (0, 2), ("simple_link", "inode_permission"), 0.35),
    ("struct super_block", "s_inode_list_lock", "true", (0, 4), (0, 4), ("_raw_spin_lock", "inode_sb_list_add"), 0.5),
    ("struct shmem_sb_info", "stat_lock", "true", (8, 4), (8, 4), ("_raw_spin_lock", "shmem_reserve_inode"), 0.4),
    ("struct cred", "usage", "true", (0, 4), (0, 4), ("get_cred_rcu", "put_cred_rcu"), 0.15),
    ("struct files_struct", "file_lock", "true", (0, 4), (0, 4), ("_raw_spin_lock", "alloc_fd"), 0.3),
    ("super_blocks_lock", "", "true", (0, 4), (0, 4), ("_raw_spin_lock", "_raw_spin_lock"), 0.02),
    ("struct dentry", "d_subdirs", "true", (32, 16), (32, 8), ("d_alloc", "__d_lookup"), 0.45),
    ("struct inode", "i_version", "true", (48, 8), (48, 8), ("inode_inc_iversion", "inode_inc_iversion"), 0.3),
    ("per-CPU nr_dentry", "", "true", (40, 8), (40, 8), ("d_alloc", "dentry_free"), 0.03),
    ("struct file", "f_count", "true", (56, 8), (56, 8), ("fget_light", "fput"), 0.1),
)
ARGUMENTS = {"link": ("old", "new"), "rename": ("src", "dst")}


def shared_line(index: int, call: str, other: str) -> Finding:
    """The `index`-th invented shared line, touched by two calls."""
    name, field, sharing, first, second, functions, _ = SHARED[index]
    one, two = (
        Access(core, core == 0 or sharing == "true", offset, size, function, stack)
        for core, (offset, size), function, stack in (
            (0, first, functions[0], _stack(functions[0], call)),
            (1, second, functions[1], _stack(functions[1], other)),
        )
    )
    fields = line_fields(name, field, first, second)
    address = 0xFFFF888000000000 + 64 * index
    kind: Literal["true", "false"] = "true" if sharing == "true" else "false"
    return Finding(address, name, field, kind, one, two, fields, touched((one, two)))


def line_fields(name: str, field: str, first: tuple[int, int], second: tuple[int, int]) -> tuple[LineField, ...]:
    """Fields of a line: those of the finding, and invented ones around them."""
    places = dict.fromkeys(zip((first, second), field.split(" | ") * 2, strict=False))
    ends = {offset: size for (offset, size), _ in places}
    named = [LineField(offset, size, f"{name}.{one}" if one else name) for (offset, size), one in places]
    rest = [
        LineField(at, 8, f"{name}.field_{at}")
        for at in range(0, 64, 8)
        if not any(at < offset + size and offset < at + 8 for offset, size in ends.items())
    ]
    distinct = {one.offset: one for one in [*rest, *named]}
    return tuple(distinct[offset] for offset in sorted(distinct))


def touched(accesses: Sequence[Access]) -> tuple[Touched, ...]:
    """What the accesses touch, and an invented read elsewhere in the line."""
    return tuple(
        Touched(
            one.core,
            ((56, 4),) if one.write else tuple(sorted({(one.offset, one.size_bytes), (56, 4)})),
            ((one.offset, one.size_bytes),) if one.write else (),
        )
        for one in accesses
    )


def _stack(function: str, call: str) -> tuple[str, ...]:
    inner = 31 + sum(map(ord, function + call)) % 200
    return (
        f"{function}+0x{inner:x}",
        f"path_lookupat+0x{inner + 9:x} fs/namei.c:{2400 + inner}",
        "filename_lookup+0xd4 fs/namei.c:2502",
        f"do_{call}at+0x{inner + 33:x} fs/namei.c:{3000 + inner}",
        f"__x64_sys_{call}+0x2b fs/namei.c:{4000 + inner}",
        *ENTRY,
    )


def call_args(call: str, names: Sequence[str]) -> dict[str, Value]:
    """Arguments for a call of `names` (or, invented, of any other call)."""
    if call == "open":
        return {"name": names[0], "creat": True, "excl": False}
    return dict(zip(ARGUMENTS.get(call, ("name",)), names, strict=False))


def pair_test(call: str, other: str, names: tuple[str, str], processes: int, words: str, path: int = 0) -> TestCase:
    """A test of two calls over `names`, whose outcomes are invented and the same in both orders."""
    mine, others = names
    inode: Value = {"struct": {"ino": {"sort": "Inum", "id": 0}, "nlink": 1}}
    results = tuple(inode if name == "stat" else 0 for name in (call, other))
    outcomes = (ExpectedOutcome(results, (inode, ABSENT)),)
    test = TestCase(
        id="",
        level="conflict",
        path=path,
        equivalence_class=words,
        calls=(
            PlacedCall(call, call_args(call, (mine, "n8")), 0, 0, 0),
            PlacedCall(other, call_args(other, (others, "n9")), processes - 1, 1 if processes == 1 else 0, 1),
        ),
        setup=tuple(
            SetupStep("open", {"name": name, "creat": True, "excl": True}, 0, 0) for name in dict.fromkeys(names)
        ),
        observe=(Step("stat", {"name": mine}, 0), Step("stat", {"name": others}, 0)),
        orders=(Order((0, 1), outcomes), Order((1, 0), outcomes)),
    )
    return with_id(test)


def with_id(test: TestCase) -> TestCase:
    """The test under the id that its content calls for."""
    return structs.replace(test, id=test.content_id())


def invented_run(calls: Sequence[str] = NAMES, tests_per_pair: int = 12, seed: int = 1) -> RunReport:
    """A run over all pairs of the calls; the same for the same arguments."""
    generator = random.Random(seed)
    tests = [
        judged
        for call, other in combinations_with_replacement(calls, 2)
        for judged in _pair(generator, call, other, generator.randint(2, 2 * tests_per_pair - 2))
    ]
    return RunReport(
        summary_of(tests),
        tests,
        {"kernel": "6.1.0-invented", "command": "commutant check names --target linux", "seed": str(seed)},
    )


def summary_of(tests: Sequence[JudgedTest], interface: str = "names", target: str = "linux") -> dict[str, object]:
    """The `summary.json` that belongs to judged tests."""
    sets: dict[tuple[str, ...], Counter[Judgement]] = {}
    for judged in tests:
        sets.setdefault(tuple(call.call for call in judged.test.calls), Counter())[judged.outcome] += 1
    total: Counter[Judgement] = sum(sets.values(), Counter())
    return {
        "schema_version": 1,
        "interface": interface,
        "target": target,
        "level": "conflict",
        "tests": total.total(),
        **{outcome.value: total[outcome] for outcome in Judgement},
        "windows": 2 * total.total(),
        "seconds": 12.5,
        "start_seconds": 4.0,
        "sets": [
            {"calls": list(calls), "tests": counts.total(), **{outcome.value: counts[outcome] for outcome in Judgement}}
            for calls, counts in sets.items()
        ],
        "ignored": {"timer": 37, "allocation": 512},
    }


def changed_run(run: RunReport, target: str = "linux:fs=ramfs") -> RunReport:
    """Another run of the same tests: some without what they shared, some with more, some tests not there, one added."""
    tests = []
    for index, judged in enumerate(run.tests):
        if index % 31 == 7:
            continue
        if judged.findings and index % 5 == 0:
            judged = JudgedTest(judged.test, Judgement.CONFLICT_FREE)
        elif judged.findings and index % 5 == 1:
            judged = JudgedTest(judged.test, Judgement.CONFLICTING, judged.findings[:1])
        elif judged.outcome is Judgement.CONFLICT_FREE and index % 3 == 0:
            judged = JudgedTest(judged.test, Judgement.CONFLICTING, (shared_line(7, *judged.calls),))
        tests.append(judged)
    added = pair_test("open", "stat", ("only", "here"), 2, "only in this run")
    tests.append(JudgedTest(added, Judgement.CONFLICTING, (shared_line(1, "open", "stat"),)))
    return RunReport(summary_of(tests, target=target), tests, {"kernel": "6.1.0-other"})


_CREATING = {"open": 1.0, "link": 0.9, "rename": 0.95, "unlink": 0.8, "write": 0.8, "mmap": 0.9, "munmap": 0.9}


def _pair(generator: random.Random, call: str, other: str, count: int) -> Iterator[JudgedTest]:
    heat = _CREATING.get(call, 0.1) * _CREATING.get(other, 0.1)
    for index in range(count):
        apart = generator.random() < 0.7
        processes = generator.choice((1, 2))
        where = "one process" if processes == 1 else "two processes"
        first, second = f"n{index}", f"n{index + 1 if apart else index}"
        words = (
            f"{'different names' if apart else 'one name'}, {'both exist' if index % 2 else 'first exists'}; {where}"
        )
        test = pair_test(call, other, (first, second), processes, words, path=index)
        found = tuple(
            shared_line(line, call, other) for line in range(len(SHARED)) if generator.random() < heat * SHARED[line][6]
        )
        outcome = Judgement.CONFLICTING if found else Judgement.CONFLICT_FREE
        detail = ""
        chance = generator.random()
        if found and chance < 0.03:
            outcome = Judgement.UNSTABLE
        elif chance > 0.998:
            outcome, detail, found = Judgement.WRONG_RESULT, f"{call} returned EBUSY, acceptable: 0", ()
        elif chance > 0.996:
            outcome, detail, found = Judgement.SKIPPED, f"the target does not know {other}", ()
        yield JudgedTest(test, outcome, found, detail)


HOSTILE_NAMES = (
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "<!--<script>",
    "]]>--><img src=x onerror=alert(3)>",
    '" onmouseover="alert(4)" x=\'',
    "*/ int main(void) { return 0; } /*",
    "??/ trigraph %s %n \\",
    "two\nlines\r\nand\ttabs",
    "\u2028line\u2029paragraph",
    "\u202eright to left",
    "\x1b]0;title\x07\x1b[2J",
    "{{ 7 * 7 }}{% raw %}[bold red]markup[/]",
    "nul\x00byte",
    "lone \ud800 surrogate",
    "x" * 10_000,
    "calls=a&test=b#c%20",
)
"""Names that try to be more than names, in HTML, scripts, C, terminals, templates or addresses."""


def hostile_test(name: str) -> TestCase:
    """A test in which everything that a file may name freely is called `name`."""
    value: Value = {"struct": {"ino": {"sort": "Inum", "id": 0}, "nlink": 1}}
    outcomes = (ExpectedOutcome((0, ABSENT), (value,)),)
    return with_id(
        TestCase(
            id="",
            level="conflict",
            path=0,
            equivalence_class=name,
            calls=(
                PlacedCall("open", {"name": name, "creat": True, "excl": False}, 0, 0, 0),
                PlacedCall("stat", {"name": name + "2"}, 1, 0, 1),
            ),
            setup=(SetupStep("open", {"name": name, "creat": True, "excl": True}, 0, 0),),
            observe=(Step("stat", {"name": name}, 0),),
            orders=(Order((0, 1), outcomes), Order((1, 0), outcomes)),
        )
    )


def hostile_run(names: Sequence[str] = HOSTILE_NAMES) -> RunReport:
    """A run in which tests, types, fields, functions, frames and facts have hostile names."""
    tests = []
    for name in names:
        one, two = (Access(core, True, 8 * core, 8, name, (name, f"{name}+0x1 {name}:1")) for core in (0, 1))
        fields = (LineField(0, 8, f"struct {name}.{name}"), LineField(8, 8, name))
        finding = Finding(0, f"struct {name}", name, "false", one, two, fields, touched((one, two)))
        tests.append(JudgedTest(hostile_test(name), Judgement.CONFLICTING, (finding,), name))
    summary = summary_of(tests, interface=names[0], target=names[1])
    return RunReport(summary, tests, dict(zip(names, names, strict=True)))
