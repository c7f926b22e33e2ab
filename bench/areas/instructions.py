"""What a plain call on ScaleFS costs in instructions, below the front door and through it, and what it cost at a commit
whose figures are kept for good: below not one more, through the front at most 25 more of each call.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from bench.commands import ROOT, text_of
from bench.figure import Figure, Goal

TITLE = "Instructions of calls on ScaleFS"
KEPT: Final = Path(__file__).parents[1] / "instructions_82fcdb68.json"
"""Counted by this area's program, built at that commit by the compiler that the file names."""
FRONT = "front-"
MORE_IN_THE_FRONT = 25
_COUNTS = (640, 1280)
_FOLDER = ROOT / "target" / "instructions"
_PROGRAM = "target/instructions/target/release/instructions"
_MANIFEST = """[package]
name = "counted"
version = "0.0.0"
edition = "2024"
[workspace]
[dependencies]
percpu = { path = "../../crates/structures/percpu" }
scalefs = { path = "../../crates/file-system/scalefs" }
sync = { path = "../../crates/structures/sync" }
[[bin]]
name = "instructions"
path = "../../crates/file-system/scalefs/examples/instructions.rs"
"""
"""A package of its own: built among the others, the program would have what their tests add to these crates."""
_COLLECTED = re.compile(r"Collected : (\d+)")


def measure() -> list[Figure]:
    """Instructions of each row that is kept."""
    _build()
    kept: dict[str, float] = json.loads(KEPT.read_text())["rows"]
    counted = count(ROOT / _PROGRAM, list(kept))
    return [
        Figure(f"instructions of {row}", "", (counted[row],), command(row), Goal("at_most", before + allowed(row)))
        for row, before in kept.items()
    ]


def _build() -> None:
    _FOLDER.mkdir(parents=True, exist_ok=True)
    (_FOLDER / "Cargo.toml").write_text(_MANIFEST)
    shutil.copy(ROOT / "Cargo.lock", _FOLDER)
    text_of("cargo", "build", "--release", "--offline", "--manifest-path", str(_FOLDER / "Cargo.toml"))


def allowed(row: str) -> int:
    """How many more than before a row may take: of one whose name says two calls, twice as many."""
    if not row.startswith(FRONT):
        return 0
    # The file that is made is also closed.
    calls = row.removeprefix(FRONT).replace("create", "create-close").split("-")
    return MORE_IN_THE_FRONT * len(calls)


def command(row: str) -> str:
    """What counts a row."""
    return f"valgrind --tool=callgrind {_PROGRAM} {row} {_COUNTS[1]}"


def count(program: Path, rows: list[str]) -> dict[str, float]:
    """Instructions of one round of each row: from the difference of two runs, less that of no calls."""
    nothing = {front: _difference(program, f"{front}nothing") for front in ("", FRONT)}
    return {row: _difference(program, row) - nothing[FRONT if row.startswith(FRONT) else ""] for row in rows}


def _difference(program: Path, row: str) -> float:
    few, many = (_collected(program, row, rounds) for rounds in _COUNTS)
    return (many - few) / (_COUNTS[1] - _COUNTS[0])


def _collected(program: Path, row: str, rounds: int) -> int:
    counting = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", str(program), row, str(rounds)]
    result = subprocess.run(counting, capture_output=True, text=True, check=False)
    found = _COLLECTED.search(result.stderr)
    if result.returncode != 0 or found is None:
        raise RuntimeError(f"counting instructions of {row}:\n{result.stderr}")
    return int(found[1])
