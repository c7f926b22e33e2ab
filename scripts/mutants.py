"""`make test-mutants`: how many small faults in our own code the tests find, and which they do not.

The areas are of the Python half, the crates those of `mutants_rust`. A mutant of the former is a copy of the package
with one operator, constant or condition changed. The tests of its area run against it: if one fails, or does not end,
it is killed; else it survives, and is either a test that is missing or a change that makes no difference. What is drawn
depends on the seed alone. Results are kept by the content of the file, so that an interrupted run goes on where it
ended, and parts can be run apart (`--part 2/5`). Scores and survivors are kept in `target/mutants/scores.json`.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeGuard

import mutants_rust
from steps import ROOT, VENV, StepFailed

SOURCE = ROOT / "src" / "commutant"
KEPT = ROOT / "target" / "mutants"
"""The mutated copy of the package, and the results, one line a mutant."""

AREAS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "verdict": (
        ("campaign/verdict.py", "campaign/collisions.py", "mtrace/fingerprint.py"),
        ("tests/campaign", "tests/compare/test_fingerprint.py"),
    ),
    "campaign": (("campaign/campaign.py", "campaign/summary.py", "runs/directory.py"), ("tests/campaign", "tests/cli")),
    "analyzer": (("analyzer/*.py",), ("tests/analyzer",)),
    "testgen": (("testgen/*.py",), ("tests/testgen", "tests/interfaces")),
    "bounds": (
        ("support/*.py", "guest/package.py", "guest/elf.py", "guest/modules.py", "guest/bzimage.py"),
        ("tests/support", "tests/targets/test_kernel.py", "tests/targets/test_modules.py"),
    ),
}
"""By area: the files that are mutated, and the tests that have to notice."""

MEMORY_BYTES = 6 << 30
PATIENCE = 4
"""A mutant may take so many times as long as the tests took without one."""

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

    def key(self, content: bytes) -> str:
        """What its result is kept under: another text of the file makes another mutant."""
        described = f"{self.path.name} {self.start} {self.end} {self.text} "
        return hashlib.sha256(described.encode() + content).hexdigest()[:24]

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
        self._results = KEPT / f"{name}.jsonl"
        self._copy = KEPT / f"{name}-{os.getpid()}"

    def drawn(self, count: int, seed: int, part: tuple[int, int]) -> list[Mutant]:
        """So many mutants of all files, of which a part is to be run."""
        every = [mutant for path in self.files for mutant in mutants_of(path)]
        few = random.Random(seed).sample(every, min(count, len(every)))
        return few[part[0] - 1 :: part[1]]

    def known(self) -> dict[str, dict[str, object]]:
        """Results that are kept, by the mutant's key."""
        with contextlib.suppress(OSError):
            lines = self._results.read_text().splitlines()
            return {entry["key"]: entry for entry in map(json.loads, lines)}
        return {}

    def keep(self, entry: dict[str, object]) -> None:
        """Adds a result."""
        with self._results.open("a") as file:
            file.write(json.dumps(entry) + "\n")

    @contextlib.contextmanager
    def copied(self) -> Iterator[None]:
        """Meanwhile there is a copy of the package, which is removed afterwards."""
        KEPT.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copytree(SOURCE, self._copy / "commutant", ignore=shutil.ignore_patterns("__pycache__"))
            yield
        finally:
            shutil.rmtree(self._copy, ignore_errors=True)

    def outcome(self, mutant: Mutant | None, limit_seconds: float) -> str:
        """What the tests do with a mutant: `killed`, `timeout` or `survived`."""
        if mutant is None:
            return self._tested(limit_seconds)
        place = self._copy / "commutant" / mutant.path.relative_to(SOURCE)
        content = mutant.path.read_bytes()
        place.write_bytes(mutant.applied(content))
        try:
            return self._tested(limit_seconds)
        finally:
            place.write_bytes(content)

    def _tested(self, limit_seconds: float) -> str:
        command = [str(VENV / "bin" / "python"), "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *self.tests]
        environment = {**os.environ, "PYTHONPATH": str(self._copy), "PYTHONDONTWRITEBYTECODE": "1"}
        process = subprocess.Popen(
            [*command, "--hypothesis-seed=2013"], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, preexec_fn=_bounded,
        )  # fmt: skip
        try:
            return "survived" if process.wait(limit_seconds) == 0 else "killed"
        except subprocess.TimeoutExpired:
            return "timeout"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _bounded() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def run(area: Area, count: int, seed: int, part: tuple[int, int]) -> list[dict[str, object]]:
    """Runs what is not known yet; the results of all that was drawn."""
    drawn, known = area.drawn(count, seed, part), area.known()
    # Other tests may find what these did not.
    tests = " ".join(area.tests).encode()
    keys = {mutant: mutant.key(mutant.path.read_bytes() + tests) for mutant in drawn}
    missing = [mutant for mutant in drawn if keys[mutant] not in known]
    if missing:
        with area.copied():
            started = time.monotonic()
            if area.outcome(None, 3600.0) != "survived":
                raise SystemExit(f"{area.name}: the tests fail without a mutant: {' '.join(area.tests)}")
            limit_seconds = PATIENCE * (time.monotonic() - started) + 10.0
            for number, mutant in enumerate(missing, start=1):
                outcome = area.outcome(mutant, limit_seconds)
                known[keys[mutant]] = {"key": keys[mutant], "mutant": mutant.name, "outcome": outcome}
                area.keep(known[keys[mutant]])
                print(f"{area.name} {number}/{len(missing)}: {outcome:8} {mutant.name}", flush=True)
    return [known[keys[mutant]] for mutant in drawn]


def scored(area: str, count: int, seed: int, part: tuple[int, int]) -> mutants_rust.Score:
    """The score of an area of the Python half."""
    results = run(Area(area), count, seed, part)
    outcomes = [entry["outcome"] for entry in results]
    return mutants_rust.Score(
        drawn=len(outcomes),
        caught=outcomes.count("killed"),
        timed_out=outcomes.count("timeout"),
        unviable=0,
        equivalent=0,
        missed=[str(entry["mutant"]) for entry in results if entry["outcome"] == "survived"],
    )


def keep_score(name: str, count: int, seed: int, part: str, score: mutants_rust.Score) -> None:
    """Writes what was measured into the file of all scores, in the place of an earlier one of the same draw."""
    file = KEPT / "scores.json"
    KEPT.mkdir(parents=True, exist_ok=True)
    known = json.loads(file.read_text()) if file.exists() else {}
    drawn = {"count": count, "seed": seed, "part": part}
    known[f"{name}, {count}, {seed}, {part}"] = {"name": name, **drawn, **asdict(score), "percent": score.percent}
    file.write_text(json.dumps(known, indent=1) + "\n")


def main(arguments: list[str]) -> int:
    """Runs what the arguments ask for, prints the scores and the survivors, and keeps them."""
    every = [*AREAS, *mutants_rust.CRATES]
    parser = argparse.ArgumentParser(prog="mutants.py", description="how many small faults the tests find")
    parser.add_argument("areas", nargs="*", metavar="AREA", help=f"of {', '.join(every)}; all if none is named")
    parser.add_argument("--count", type=int, default=40, help="mutants of each area or crate, about (40)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", default="1/1", help="N/M: every M-th mutant from the N-th on, of an area in Python")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.areas if name not in every]
    number, slash, parts = given.part.partition("/")
    if unknown or not slash or not (number.isdigit() and parts.isdigit() and 1 <= int(number) <= int(parts)):
        parser.error(f"unknown area {unknown[0]!r}" if unknown else f"--part takes N/M, got {given.part!r}")
    if given.count < 1:
        parser.error(f"--count takes a number from 1 on, got {given.count}")
    survivors: list[str] = []
    for name in given.areas or every:
        if name in AREAS:
            score = scored(name, given.count, given.seed, (int(number), int(parts)))
        else:
            try:
                score = mutants_rust.try_mutants(name, given.count, given.seed)
            except StepFailed as failure:
                print(failure, file=sys.stderr)
                return 1
        keep_score(name, given.count, given.seed, given.part, score)
        left_out = f", {score.unviable} do not build, {score.equivalent} make no difference" if score.unviable else ""
        print(
            f"{name}: {score.drawn} mutants, {len(score.missed)} survived, {score.timed_out} timed out{left_out}: "
            f"{score.percent:.1f} % killed",
            flush=True,
        )
        survivors += score.missed
    for survivor in survivors:
        print(f"  survived: {survivor}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
