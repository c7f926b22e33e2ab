"""Mutants of the Python package, for `make test-mutants`: how they are made, and which tests have to notice.

A mutant is a copy of the package with one operator, constant or condition changed. First the tests of the area run once
without a mutant, while coverage.py notes which test reaches which line. Then, for each mutant, the tests that reach its
line run first, the quick ones before the slow, and the others only if all of these pass: what runs in other processes,
or in a fixture that several tests share, is seen by none. Each mutant has a process of its own, forked from one that
has read the libraries already, with limits of time and memory.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import select
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeGuard

from mutants_kept import GRACE_SECONDS, KEPT, PATIENCE, Kept, Result, bounded, draw, key_of
from steps import ROOT, StepFailed, files_below

SOURCE = ROOT / "src" / "commutant"

AREAS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "verdict": (
        ("campaign/verdict.py", "campaign/collisions.py", "mtrace/fingerprint.py"),
        ("tests/campaign", "tests/compare/test_fingerprint.py"),
    ),
    "campaign": (("campaign/campaign.py", "campaign/summary.py", "runs/directory.py"), ("tests/campaign", "tests/cli")),
    "analyzer": (("analyzer/*.py",), ("tests/analyzer", "tests/test_cache.py")),
    "testgen": (("testgen/*.py",), ("tests/testgen", "tests/interfaces", "tests/test_cache.py")),
    "bounds": (
        ("support/*.py", "guest/package.py", "guest/elf.py", "guest/modules.py", "guest/bzimage.py"),
        ("tests/support", "tests/targets/test_kernel.py", "tests/targets/test_modules.py"),
    ),
}
"""By area: the files that are mutated, and the tests that have to notice."""

FIRST_LIMIT_SECONDS = 1800.0
PASSED = 42
"""A child's exit code once all tests have passed: a mutant that ends the process says something else."""

_SWAPPED: dict[type[ast.AST], str] = {
    ast.Eq: "!=", ast.NotEq: "==", ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.In: "not in",
    ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is", ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.FloorDiv: "*",
    ast.Mod: "*", ast.And: "or", ast.Or: "and", ast.BitAnd: "|", ast.BitOr: "&", ast.LShift: ">>", ast.RShift: "<<",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A change of one place of a file: bytes from `start` to `end` become `text`."""

    path: Path
    line: int
    start: int
    end: int
    was: str
    text: str

    @property
    def name(self) -> str:
        """`campaign/verdict.py:97: a == b -> a != b`, on one line."""
        was, text = (" ".join(part.split()) for part in (self.was, self.text))
        return f"{self.path.relative_to(SOURCE)}:{self.line}: {was} -> {text}"

    def described(self) -> str:
        """Its name with the line that it stands in, so that no other of the file has the same but for its number."""
        line = self.path.read_text(encoding="utf-8").splitlines()[self.line - 1].strip()
        return f"{self.name} in {line}"

    def applied(self, content: bytes) -> bytes:
        """The file's text with the change."""
        return content[: self.start] + self.text.encode() + content[self.end :]


def mutants_of(path: Path) -> Iterator[Mutant]:
    """All mutants of a file; annotations, docstrings and what only types need are left as they are."""
    content = path.read_bytes()
    starts = [0]
    for line in content.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def mutant(node: ast.expr | ast.stmt, text: str) -> Mutant:
        assert node.end_lineno is not None and node.end_col_offset is not None
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        return Mutant(path, node.lineno, start, end, content[start:end].decode(), text)

    for node in _reached(ast.parse(content)):
        if isinstance(node, ast.Compare | ast.BinOp | ast.BoolOp):
            operators = node.ops if isinstance(node, ast.Compare) else [node.op]
            for position, operator in enumerate(operators):
                if type(operator) in _SWAPPED:
                    yield mutant(node, f"({_swapped(node, position)})")
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield mutant(node, f"bool({ast.unparse(node.operand)})")
        elif isinstance(node, ast.If | ast.While | ast.IfExp) and not isinstance(node.test, ast.Compare | ast.BoolOp):
            yield mutant(node.test, f"(not ({ast.unparse(node.test)}))")
        elif isinstance(node, ast.Constant) and type(node.value) is bool:
            yield mutant(node, str(not node.value))
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            yield mutant(node, str(node.value + 1))
        elif _can_be_left_out(node):
            yield mutant(node, "pass")
        elif isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
            yield mutant(node, "return None")


def _can_be_left_out(node: ast.AST) -> TypeGuard[ast.stmt]:
    called = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    return called or isinstance(node, ast.Continue | ast.Break)


def _swapped(node: ast.Compare | ast.BinOp | ast.BoolOp, position: int) -> str:
    if isinstance(node, ast.BinOp):
        return f"({ast.unparse(node.left)}) {_SWAPPED[type(node.op)]} ({ast.unparse(node.right)})"
    if isinstance(node, ast.BoolOp):
        return f" {_SWAPPED[type(node.op)]} ".join(f"({ast.unparse(value)})" for value in node.values)
    operands = [f"({ast.unparse(value)})" for value in (node.left, *node.comparators)]
    words = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.In: "in",
             ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not"}  # fmt: skip
    text = operands[0]
    for index, (operator, operand) in enumerate(zip(node.ops, operands[1:], strict=True)):
        text += f" {_SWAPPED[type(operator)] if index == position else words[type(operator)]} {operand}"
    return text


def _reached(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run: not annotations, nor what stands under `if TYPE_CHECKING`, nor within an f-string."""
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _reached(child)


class Area:
    """The files and tests of an area, with a mutated copy of the package for them."""

    def __init__(self, name: str) -> None:
        patterns, self.tests = AREAS[name]
        self.name = name
        self.files = sorted({path for pattern in patterns for path in SOURCE.glob(pattern)})
        self.every = [mutant for path in self.files for mutant in mutants_of(path)]
        self._copy = KEPT / f"{name}-{os.getpid()}"
        self._by_line: dict[tuple[str, int], list[str]] = {}
        self._seconds: dict[str, float] = {}

    def results(self, count: int, seed: int, part: tuple[int, int], quick: bool = False) -> list[Result]:
        """What becomes of the mutants that are drawn; those that are known are not tried again; quick or not.

        Raises StepFailed if the tests fail without a mutant.
        """
        kept = Kept(self.name, files_below(*self.tests))
        drawn = draw(self.every, count, seed, part)
        keys = [key_of(mutant.path.read_bytes(), f"{mutant.name} {mutant.start}") for mutant in drawn]
        missing = [(key, mutant) for key, mutant in zip(keys, drawn, strict=True) if kept.find(key) is None]
        if missing:
            with self.copied():
                self.look_without_mutant()
                for number, (key, mutant) in enumerate(missing, start=1):
                    result = self.outcome(mutant)
                    kept.add(key, result)
                    print(f"{self.name} {number}/{len(missing)}: {result.outcome:8} {mutant.name}", flush=True)
        found = [(mutant, kept.find(key)) for key, mutant in zip(keys, drawn, strict=True)]
        return [replace(result, mutant=mutant.described()) for mutant, result in found if result is not None]

    @contextlib.contextmanager
    def copied(self) -> Iterator[None]:
        """Holds a copy of the package, which is removed afterwards."""
        KEPT.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copytree(SOURCE, self._copy / "commutant", ignore=shutil.ignore_patterns("__pycache__"))
            yield
        finally:
            shutil.rmtree(self._copy, ignore_errors=True)

    def look_without_mutant(self) -> None:
        """Runs all tests, and notes how long each takes and which lines it reaches."""
        report = self._copy / "reached.json"
        ended = self._tested(list(self.tests), FIRST_LIMIT_SECONDS, report)
        if ended != "survived" or not report.exists():
            raise StepFailed(
                f"{self.name}: the tests fail without a mutant: {' '.join(self.tests)} (see {KEPT / 'first.log'})"
            )
        reached = json.loads(report.read_text())
        self._seconds = reached["seconds"]
        for file, lines in reached["lines"].items():
            for line, tests in lines.items():
                self._by_line[file, int(line)] = sorted(tests, key=lambda test: self._seconds.get(test, 0.0))

    def outcome(self, mutant: Mutant) -> Result:
        """What the tests do with a mutant: those that reach its lines first, then the others."""
        place = self._copy / "commutant" / mutant.path.relative_to(SOURCE)
        content = mutant.path.read_bytes()
        place.write_bytes(mutant.applied(content))
        lines = range(mutant.line, mutant.line + mutant.was.count("\n") + 1)
        file = str(mutant.path.relative_to(SOURCE))
        first = list(dict.fromkeys(test for line in lines for test in self._by_line.get((file, line), [])))
        others = sorted(set(self._seconds) - set(first), key=lambda test: self._seconds[test])
        try:
            for tests in filter(None, (first, others)):
                usual_seconds = sum(self._seconds[test] for test in tests)
                ended = self._tested(tests, PATIENCE * usual_seconds + GRACE_SECONDS)
                if ended != "survived":
                    return Result(mutant.name, ended, "a test that reaches it" if tests is first else "another test")
            return Result(mutant.name, "survived")
        finally:
            place.write_bytes(content)

    def _tested(self, tests: Sequence[str], limit_seconds: float, report: Path | None = None) -> str:
        """`killed` if one of the tests fails, `timeout` if they do not end, else `survived`."""
        _read_libraries()
        child = os.fork()
        if child == 0:
            _run_tests(tests, self._copy, self.files if report else [], report)
        try:
            ended = _wait(child, limit_seconds)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)
        return "timeout" if ended is None else "survived" if ended == PASSED << 8 else "killed"


def _read_libraries() -> None:
    """What all children need and no mutant changes; pytest reads its own plugins itself."""
    import click
    import coverage
    import msgspec
    import pytest
    import rich
    import z3

    del click, coverage, msgspec, pytest, rich, z3


def _wait(child: int, limit_seconds: float) -> int | None:
    """The child's wait status, or nothing after so long."""
    descriptor = os.pidfd_open(child)
    try:
        if not select.select([descriptor], [], [], limit_seconds)[0]:
            return None
        return os.waitpid(child, 0)[1]
    finally:
        os.close(descriptor)


def _run_tests(tests: Sequence[str], copy: Path, files: Sequence[Path], report: Path | None) -> None:
    """In a child: runs pytest on the copy of the package and ends the process with its exit code."""
    os.setsid()
    bounded()
    quiet = os.open(os.devnull, os.O_RDWR)
    log = quiet if report is None else os.open(KEPT / "first.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(quiet, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.chdir(ROOT)
    os.environ.update({"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"})
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(copy))
    code = 3
    try:
        import pytest

        plugins = [] if report is None else [_Reached(copy / "commutant", files, report)]
        options = ["-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=2013"]
        code = int(pytest.main([*options, *tests], plugins)) or PASSED
    except BaseException:  # noqa: BLE001 - the child's exit code says it
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


class _Reached:
    """A plugin of pytest: which test reaches which line of the files, and how long each takes."""

    def __init__(self, package: Path, files: Sequence[Path], report: Path) -> None:
        import coverage

        self._package, self._report = package, report
        self._names = [str(path.relative_to(SOURCE)) for path in files]
        self._seconds: dict[str, float] = {}
        self._coverage = coverage.Coverage(
            data_file=None, config_file=False, include=[str(package / name) for name in self._names]
        )
        self._coverage.start()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """What is reached from now on, this test reaches."""
        self._coverage.switch_context(nodeid)
        self._seconds[nodeid] = -time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Its time has ended."""
        self._seconds[nodeid] += time.monotonic()

    def pytest_sessionfinish(self) -> None:
        """Writes all into the report."""
        self._coverage.stop()
        data = self._coverage.get_data()
        lines = {
            name: {line: [test for test in tests if test] for line, tests in found.items()}
            for name in self._names
            if (found := data.contexts_by_lineno(str(self._package / name)))
        }
        self._report.write_text(json.dumps({"seconds": self._seconds, "lines": lines}))
