"""posix, nested directories: what the model does against the kernel under this Python, and what its paths say of random
small trees against every order run on ordinary values."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from commutant.analyzer.analysis import explore_leaves, sets_of_calls
from commutant.analyzer.condition import Fact, constants_of
from commutant.interfaces.posix.files import LINK_CALLS, SymbolicLink, new_file
from commutant.interfaces.posix.tree_calls import SYMBOLIC_LINK, TreeStat
from commutant.interfaces.posix.trees import Caller, Entry
from commutant.lang import Errno, Interface, Map, load_interface
from commutant.lang.types import BoolType, IntType, OpaqueValue, Process, SortType, Type
from tests.analyzer.brute_force import commutes
from tests.analyzer.interpretation import World

POSIX = load_interface("posix")
NAMES = ["n0", "n1", "n2"]
DIRECTORIES = [OpaqueValue("Directory", f"directory.{number}") for number in range(5)]
FILES = [OpaqueValue("Inum", f"file.{number}") for number in range(2)]
LINKS = [OpaqueValue("LinkNumber", f"link.{number}") for number in range(2)]
DOMAINS: dict[str, Sequence[Any]] = {"Name": NAMES, "Directory": DIRECTORIES, "Inum": FILES, "LinkNumber": LINKS}
CALLS = [
    *("mkdir", "rmdir", "symlink", "readlink", "link", "unlink", "rename", "stat", "lstat"),
    *("open", "access", "truncate"),
]
PAIRS = sets_of_calls(POSIX, CALLS, 2)


def random_arguments(call: str, chance: random.Random) -> dict[str, Any]:
    return {name: _random_value(type_, chance) for name, type_ in POSIX.signature(call).parameters.items()}


def _random_value(type_: Type, chance: random.Random) -> Any:
    if isinstance(type_, BoolType):
        return chance.random() < 0.5
    if isinstance(type_, IntType):
        return chance.randrange(3)
    assert isinstance(type_, SortType)
    return 0 if type_.sort is Process else chance.choice(NAMES)


class Kernel:
    """The calls on a directory that stands for the root."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, deep: bool, parent: str, name: str) -> str:
        return f"{self.root}/{parent}/{name}" if deep else f"{self.root}/{name}"

    def call(self, call: str, given: Mapping[str, Any]) -> Any:
        try:
            return getattr(self, f"do_{call}")(**{name: one for name, one in given.items() if name != "process"})
        except OSError as error:
            assert error.errno is not None
            return Errno[_NAMES[error.errno]]

    def do_mkdir(self, **place: Any) -> int:
        os.mkdir(self.path(**place))
        return 0

    def do_rmdir(self, **place: Any) -> int:
        os.rmdir(self.path(**place))
        return 0

    def do_open(self, creat: bool, excl: bool, trunc: bool, **more: Any) -> int:
        place = {name: more[name] for name in ("deep", "parent", "name")}
        flags = os.O_RDWR | (os.O_CREAT if creat else 0) | (os.O_EXCL if excl and creat else 0)
        os.close(os.open(self.path(**place), flags | (os.O_TRUNC if trunc else 0), 0o600))
        return 0

    def do_truncate(self, length: int, **place: Any) -> int:
        os.truncate(self.path(**place), 4096 * length)
        return 0

    def do_symlink(self, target: str, **place: Any) -> int:
        os.symlink(f"{self.root}/{target}", self.path(**place))
        return 0

    def do_readlink(self, **place: Any) -> str:
        return os.readlink(self.path(**place)).removeprefix(f"{self.root}/")

    def do_link(self, **given: Any) -> int:
        old = self.path(given["old_deep"], given["old_parent"], given["old"])
        os.link(old, self.path(given["new_deep"], given["new_parent"], given["new"]), follow_symlinks=False)
        return 0

    def do_unlink(self, **place: Any) -> int:
        os.unlink(self.path(**place))
        return 0

    def do_rename(self, **given: Any) -> int:
        source = self.path(given["src_deep"], given["src_parent"], given["src"])
        os.rename(source, self.path(given["dst_deep"], given["dst_parent"], given["dst"]))
        return 0

    def do_access(self, write: bool, **place: Any) -> int:
        os.stat(self.path(**place))
        return 0

    def do_stat(self, **place: Any) -> tuple[Any, ...]:
        return _told(os.stat(self.path(**place)))

    def do_lstat(self, **place: Any) -> tuple[Any, ...]:
        return _told(os.lstat(self.path(**place)))


_NAMES = {getattr(__import__("errno"), one.name): one.name for one in Errno if hasattr(__import__("errno"), one.name)}


def _told(found: os.stat_result) -> tuple[Any, ...]:
    kind = {0o100000: 1, 0o040000: 2, 0o120000: 3}[found.st_mode & 0o170000]
    return (kind, None if kind == 2 else found.st_nlink, found.st_size // 4096 if kind == 1 else None)


def shown(result: Any) -> Any:
    return (result.kind, result.nlink, result.size) if isinstance(result, TreeStat) else result


def empty_root() -> Any:
    state: Any = POSIX()
    state.callers[0] = Caller(is_superuser=True, user=0)
    return state


def sequence(root: Path, seed: object, length: int) -> None:
    chance = random.Random(f"{seed}")
    root.mkdir()
    kernel, state = Kernel(root), empty_root()
    trail = []
    for _ in range(length):
        call = chance.choice(CALLS)
        given = random_arguments(call, chance)
        trail.append((call, given))
        mine, theirs = shown(getattr(state, call)(**given)), kernel.call(call, given)
        if call == "open" and mine == 0:
            assert state.close(0, 0) == 0  # as the kernel's
        assert mine == theirs, f"model {mine}, kernel {theirs}: {trail}"
    shutil.rmtree(root)


def test_random_sequences_on_this_kernel(tmp_path: Path) -> None:
    for seed in range(60):
        sequence(tmp_path / "root", seed, 40)


@pytest.mark.long
def test_many_random_sequences_on_this_kernel(tmp_path: Path) -> None:
    for seed in range(20_000):
        sequence(tmp_path / "root", f"long {seed}", 30)


def random_tree(chance: random.Random, *, links: bool) -> Interface:
    """A small tree: files under several names, empty and full directories, links below the root."""
    state = empty_root()
    state.root = DIRECTORIES[0]
    state.directories = Map({DIRECTORIES[0]: state.new_directory("n0")})
    free = DIRECTORIES[1:]
    for inum in FILES:
        state.inodes[inum] = new_file(chance.randrange(3), 0, nlink=chance.randrange(1, 3))
    for number in LINKS:
        state.links[number] = SymbolicLink(nlink=chance.randrange(1, 3), target=chance.choice(NAMES), mtime=1, ctime=1)

    def fill(directory: OpaqueValue, depth: int) -> None:
        for name in NAMES:
            kind = chance.random()
            if kind < 0.35:
                continue
            if kind < 0.7 and depth < 2 and free:
                below = free.pop()
                node = state.directories[below] = state.new_directory(name)
                node.parent = directory
                state.directories[directory].entries[name] = Entry(is_directory=True, directory=below)
                if chance.random() < 0.6:
                    fill(below, depth + 1)
            elif links and depth and kind > 0.85:
                state.directories[directory].entries[name] = Entry(is_link=True, link=chance.choice(LINKS))
            elif depth < 2 or kind > 0.9:
                state.directories[directory].entries[name] = Entry(inum=chance.choice(FILES))

    fill(DIRECTORIES[0], 0)
    return state  # type: ignore[no-any-return]


class Tree:
    """The paths of a pair, by what they decide in turn."""

    def __init__(self, calls: tuple[str, ...]) -> None:
        self.root: dict[Any, Any] = {}
        self.calls = calls
        for leaf in explore_leaves(POSIX, calls):
            node = self.root
            for fact in leaf.facts:
                node["fact"] = fact
                node = node.setdefault(fact.holds, {})
            node["verdict"] = leaf.commutes if leaf.feasible else None

    def verdicts(self, world: World) -> set[bool | None]:
        """The verdicts of the paths that a situation is on: several where they differ by choices."""
        found, pending = set(), [self.root]
        while pending:
            node = pending.pop()
            fact: Fact | None = node.get("fact")
            if fact is None:
                found.add(node["verdict"])
            elif any(".choice." in name for name in constants_of(fact)):
                pending += [node[side] for side in (True, False) if side in node]
            else:
                node = node.get(fact.holds if world.holds(fact) else not fact.holds)
                assert node is not None, f"no path: {fact}"
                pending.append(node)
        return found


@cache
def tree_of(calls: tuple[str, ...]) -> Tree:
    return Tree(calls)


def check(calls: tuple[str, ...], chance: random.Random) -> bool:
    state = random_tree(chance, links=any(call in LINK_CALLS for call in calls))
    placed = [(call, random_arguments(call, chance)) for call in calls]
    if {*calls} <= {"link", "rename"}:
        for _, given in placed:
            given.update({name: True for name in given if name.endswith("deep")})
    verdicts = tree_of(calls).verdicts(World.of(state, placed))
    where = f"{state.directories} {state.inodes} {placed}"  # type: ignore[attr-defined]
    assert verdicts - {None}, f"no path for {where}"
    expected = commutes(state, placed, DOMAINS)
    assert (True in verdicts) == expected, f"paths say {not expected} of {where}"
    return expected


FEW_PATHS = [calls for calls in PAIRS if not {"link", "rename", "open", "access", "truncate"} & {*calls}]


def test_small_trees_of_pairs_with_few_paths() -> None:
    chance = random.Random(1)
    seen = {check(calls, chance) for calls in FEW_PATHS for _ in range(3)}
    assert seen == {True, False}


def test_small_trees_of_rename() -> None:
    chance = random.Random(2)
    seen = {check(calls, chance) for calls in (("mkdir", "rename"), ("rmdir", "rename")) for _ in range(20)}
    assert seen == {True, False}


@pytest.mark.long
@pytest.mark.parametrize("calls", PAIRS, ids="-".join)
def test_many_small_trees(calls: tuple[str, ...]) -> None:
    """100,000 situations of all pairs."""
    chance = random.Random("-".join(calls))
    for _ in range(1516):
        check(calls, chance)
    tree_of.cache_clear()


def test_a_file_does_not_replace_the_directory_that_it_stands_in() -> None:
    """ENOTEMPTY comes before EISDIR (do_renameat2, where lock_rename found the target above the source)."""
    state = empty_root()
    state.mkdir(False, "n0", "n0")
    state.open(0, True, "n0", "n1", True, False, False, True, True)
    assert state.rename(True, "n0", "n1", False, "n0", "n0") == Errno.ENOTEMPTY


def test_links_that_lead_to_themselves_are_a_loop() -> None:
    state = empty_root()
    assert state.symlink("n0", False, "n0", "n0") == 0
    assert state.stat(False, "n0", "n0") == Errno.ELOOP
    assert state.lstat(False, "n0", "n0").kind == SYMBOLIC_LINK
    assert state.mkdir(True, "n0", "n1") == Errno.ELOOP
