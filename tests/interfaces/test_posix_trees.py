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
from commutant.interfaces.posix.trees import LINK_CALLS, SYMBOLIC_LINK, Entry, Inode, Node, Stat
from commutant.lang import Errno, Interface, Map, load_interface
from commutant.lang.types import BoolType, OpaqueValue
from tests.analyzer.brute_force import commutes
from tests.analyzer.interpretation import World

POSIX = load_interface("posix")
NAMES = ["n0", "n1", "n2"]
DIRECTORIES = [OpaqueValue("Directory", f"directory.{number}") for number in range(5)]
FILES = [OpaqueValue("Inum", f"file.{number}") for number in range(4)]
DOMAINS: dict[str, Sequence[Any]] = {"Name": NAMES, "Directory": DIRECTORIES, "Inum": FILES}
PAIRS = sets_of_calls(POSIX, None, 2)


def random_arguments(call: str, chance: random.Random) -> dict[str, Any]:
    types = POSIX.signature(call).parameters
    return {
        name: chance.random() < 0.5 if isinstance(type_, BoolType) else chance.choice(NAMES)
        for name, type_ in types.items()
    }


class Kernel:
    """The calls on a directory that stands for the root."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, deep: bool, parent: str, name: str) -> str:
        return f"{self.root}/{parent}/{name}" if deep else f"{self.root}/{name}"

    def call(self, call: str, given: Mapping[str, Any]) -> Any:
        try:
            return getattr(self, f"do_{call}")(**given)
        except OSError as error:
            assert error.errno is not None
            return Errno[_NAMES[error.errno]]

    def do_mkdir(self, **place: Any) -> int:
        os.mkdir(self.path(**place))
        return 0

    def do_rmdir(self, **place: Any) -> int:
        os.rmdir(self.path(**place))
        return 0

    def do_open(self, creat: bool, excl: bool, **place: Any) -> int:
        flags = os.O_RDWR | (os.O_CREAT if creat else 0) | (os.O_EXCL if excl and creat else 0)
        os.close(os.open(self.path(**place), flags, 0o600))
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

    def do_access(self, **place: Any) -> int:
        os.stat(self.path(**place))
        return 0

    def do_stat(self, **place: Any) -> tuple[Any, ...]:
        return _told(os.stat(self.path(**place)))

    def do_lstat(self, **place: Any) -> tuple[Any, ...]:
        return _told(os.lstat(self.path(**place)))


_NAMES = {getattr(__import__("errno"), one.name): one.name for one in Errno if hasattr(__import__("errno"), one.name)}


def _told(found: os.stat_result) -> tuple[Any, ...]:
    kind = {0o100000: 1, 0o040000: 2, 0o120000: 3}[found.st_mode & 0o170000]
    return (kind, None if kind == 2 else found.st_nlink)


def shown(result: Any) -> Any:
    return (result.kind, result.nlink) if isinstance(result, Stat) else result


def sequence(root: Path, seed: object, length: int) -> None:
    chance = random.Random(f"{seed}")
    root.mkdir()
    kernel, state = Kernel(root), POSIX()
    trail = []
    for _ in range(length):
        call = chance.choice(POSIX.call_names())
        given = random_arguments(call, chance)
        trail.append((call, given))
        mine, theirs = shown(getattr(state, call)(**given)), kernel.call(call, given)
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
    state: Any = POSIX()
    state.root = DIRECTORIES[0]
    state.directories = Map({DIRECTORIES[0]: Node(entries=Map(), parent=DIRECTORIES[0], name="n0")})
    free = DIRECTORIES[1:]
    kinds = {inum: links and place >= 2 for place, inum in enumerate(FILES)}
    for inum in FILES:
        state.inodes[inum] = Inode(nlink=chance.randrange(1, 3), is_link=kinds[inum], target=chance.choice(NAMES))

    def fill(directory: OpaqueValue, depth: int) -> None:
        for name in NAMES:
            kind = chance.random()
            if kind < 0.35:
                continue
            if kind < 0.7 and depth < 2 and free:
                below = free.pop()
                state.directories[below] = Node(entries=Map(), parent=directory, name=name)
                state.directories[directory].entries[name] = Entry(is_directory=True, directory=below)
                if chance.random() < 0.6:
                    fill(below, depth + 1)
            elif depth < 2 or kind > 0.9:
                inum = chance.choice([one for one in FILES if depth or not kinds[one]])
                state.directories[directory].entries[name] = Entry(inum=inum)

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
    verdicts = tree_of(calls).verdicts(World.of(state, placed))
    where = f"{state.directories} {state.inodes} {placed}"  # type: ignore[attr-defined]
    assert verdicts - {None}, f"no path for {where}"
    expected = commutes(state, placed, DOMAINS)
    assert (True in verdicts) == expected, f"paths say {not expected} of {where}"
    return expected


FEW_PATHS = [calls for calls in PAIRS if not {"link", "rename", "open"} & {*calls}]


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
    state: Any = POSIX()
    state.mkdir(False, "n0", "n0")
    state.open(True, "n0", "n1", True, False)
    assert state.rename(True, "n0", "n1", False, "n0", "n0") == Errno.ENOTEMPTY


def test_links_that_lead_to_themselves_are_a_loop() -> None:
    state: Any = POSIX()
    assert state.symlink("n0", False, "n0", "n0") == 0
    assert state.stat(False, "n0", "n0") == Errno.ELOOP
    assert state.lstat(False, "n0", "n0").kind == SYMBOLIC_LINK
    assert state.mkdir(True, "n0", "n1") == Errno.ELOOP
