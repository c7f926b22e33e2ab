"""Parts of objects in tests drawn by chance on ext4, held against what else is recorded of the same accesses."""

from __future__ import annotations

import dataclasses
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path

from commutant.corpus import TestCase
from commutant.lang import load_interface
from commutant.mtrace import Access, Finding
from commutant.report.roles import role
from commutant.runs import Check
from commutant.runs.content import report_of
from commutant.targets.registry import load_target
from commutant.testgen import generate

SEED, DRAWN = 20261122, 200
LEAST_SHARE = 0.95
HAVE_PARTS = re.compile(r"struct (?:\w*inode\w*|dentry|address_space|xa_node|file|page|pipe_\w+)\b|page cache page")

# What only a directory or only a file of these tests is given to, by the kernel's source (fs/namei.c, fs/open.c,
# fs/ext4/namei.c, fs/stat.c): the functions of the accessing instruction and its callers, innermost first.
DIRECTORY = re.compile(
    r"down_(?:write|read) (?:path_openat|filename_create|do_unlinkat|lookup_slow|lock_rename|walk_component)\b"
    r"|(?:ext4_(?:find_entry|delete_entry|dx_\w+|search_dir)|add_dirent_to_buf|__ext4_find_entry) "
    r"|inode_permission link_path_walk\b|lockref_get_not_(?:zero|dead) dget_parent\b"
)
FILE = re.compile(
    r"(?:may_open|do_dentry_open|handle_truncate|generic_fillattr|ext4_getattr|security_inode_getattr"
    r"|drop_nlink|inc_nlink|ext4_orphan_add|ext4_file_open) "
)


# What takes a file's own i_rwsem, and no directory's (fs/open.c, fs/ext4/file.c).
FILE_LOCKED = re.compile(r"(?:do_truncate|ext4_buffered_write_iter) ")


def functions(access: Access) -> str:
    return " ".join(frame.partition("+")[0].partition(".")[0] for frame in access.stack[:6]) + " "


def names_of(test: TestCase) -> set[str]:
    return {
        value
        for step in (*test.calls, *test.setup, *test.observe)
        for value in step.args.values()
        if isinstance(value, str)
    }


def contradictions(test: TestCase, finding: Finding) -> Iterator[str]:
    """What is recorded next to the part and says another one."""
    told = role(test, finding)
    named = re.search(r"named (\S+)$|^the name (\S+)$", told)
    if named and (named[1] or named[2]) not in names_of(test):
        yield f"{told}: no name of the test"
    if finding.under == "struct inode.i_rwsem":
        callers = [
            " ".join(frame.partition("+")[0] for frame in side.stack) + " " for side in (finding.first, finding.second)
        ]
        expected = "f" if all(map(FILE_LOCKED.search, callers)) else "d"
        if not finding.under_owner.startswith(expected):
            yield f"under the lock of {finding.under_owner or 'nobody'}: {callers}"
    if not finding.name.startswith(("struct inode", "struct dentry", "struct ext4_inode")):
        return
    for access in (finding.first, finding.second):
        if DIRECTORY.match(functions(access)) and told != "the directory":
            yield f"{told}: {functions(access)}reaches directories"
        if FILE.match(functions(access)) and told == "the directory":
            yield f"{told}: {functions(access)}reaches files"


def test_parts_of_objects_are_told_and_right(tmp_path: Path) -> None:
    jobs = min(2, len(os.sched_getaffinity(0)))
    corpus = generate(load_interface("names"), None, 2, level="conflict", jobs=jobs)
    drawn = random.Random(SEED).sample(list(corpus.tests), DRAWN)
    corpus = dataclasses.replace(corpus, tests=drawn)
    with Check.new(corpus, load_target("linux:fs=ext4"), jobs=jobs, repeats=1, directory=tmp_path / "run") as check:
        check.start(lambda _doing: None)
        run = report_of(check.run())
    lines = [(judged.test, finding) for judged in run.tests for finding in judged.findings]
    asked = [(test, finding) for test, finding in lines if HAVE_PARTS.match(finding.name)]
    told = sum(bool(role(test, finding)) for test, finding in asked)
    assert len(asked) > 500 and told / len(asked) >= LEAST_SHARE, (told, len(asked))
    wrong = [(test.id, finding.name, said) for test, finding in asked for said in contradictions(test, finding)]
    held = sum(
        bool(DIRECTORY.match(functions(one)) or FILE.match(functions(one)))
        for _, finding in asked
        for one in (finding.first, finding.second)
    )
    print(f"{told} of {len(asked)} have a part; {held} accesses say it by their functions, too")
    assert held > 100 and not wrong
