"""Times analysis, generation and triples in two set-up clones by turns, so that a busy machine is busy for both.

    python scripts/side_by_side.py OTHER_CLONE [--rounds 5] [--triples]

Prints, per command, the least processor and wall seconds in either clone, and their ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = {
    "analysis": ("analyze", "posix18", "--no-cache", "--format", "json"),
    "analysis with conditions": ("analyze", "posix18", "--no-cache"),
    "generation": ("generate", "posix18", "--no-cache", "-o"),
    "generation, one process": ("generate", "posix18", "--no-cache", "--jobs", "1", "-o"),
}
TRIPLES = {"triples": ("analyze", "posix18", "--size", "3", "--no-cache", "--format", "json")}


def taken(clone: Path, arguments: tuple[str, ...]) -> dict[str, float]:
    """What a command takes in a clone, by the way of measuring; SystemExit if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        argv = [str(clone / ".venv" / "bin" / "commutant"), *arguments]
        if arguments[-1] == "-o":
            argv.append(str(Path(folder) / "corpus.jsonl.gz"))
        before, started = os.times(), time.monotonic()
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
        wall, after = time.monotonic() - started, os.times()
    if done.returncode:
        sys.exit(f"{' '.join(argv)} returned {done.returncode}: {done.stderr.strip()}")
    if arguments[-1] == "json":  # what is printed beside the analysis has grown: what it says of itself is compared
        return {"by its own clock": float(json.loads(done.stdout)["seconds"])}
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return {"processor": used, "wall": wall}


def main() -> None:
    """Runs each command in both clones, `--rounds` times (triples once), and prints a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="another clone, in which `make setup` has run")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--triples", action="store_true", help="also all sets of three calls, which take minutes")
    options = parser.parse_args()
    clones = (options.other.resolve(), ROOT)
    print(f"{'seconds, the least of the rounds':42}{'other clone':>14}{'this clone':>14}{'ratio':>8}")
    for name, arguments in (COMMANDS | (TRIPLES if options.triples else {})).items():
        rounds = 1 if name in TRIPLES else options.rounds
        runs: tuple[list[dict[str, float]], list[dict[str, float]]] = ([], [])
        for _ in range(rounds):
            for of_clone, clone in zip(runs, clones, strict=True):
                of_clone.append(taken(clone, arguments))
        for way in runs[0][0]:
            theirs, ours = (min(run[way] for run in of_clone) for of_clone in runs)
            print(f"{name + ', ' + way:42}{theirs:14.2f}{ours:14.2f}{ours / theirs:8.2f}", flush=True)


if __name__ == "__main__":
    main()
