"""Compares this checkout with another that is set up: `python -m bench.against OTHER [ROUNDS]`.

Analysis, generation, windows, a whole check and (once) triples run by turns in both, ROUNDS times (5). Per command it
prints the median processor seconds and peak memory, their ratios, and the least and greatest ratio of one round; a
change of the machine during the run meets both sides. The last column has what each found, since a model that has
changed is other work. Exit code 1 if the median of the ratios is above 1.03 somewhere.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from bench.commands import MEASURE, ROOT, Run

MOST = 1.03
"""A ratio above this is slower, or larger."""

COMMANDS = {
    "analysis": ("analyze", "posix18", "--no-cache", "--jobs", "1"),
    "generation": ("generate", "posix18", "--no-cache", "--jobs", "1", "-o", "corpus"),
    "windows": ("check", "names.jsonl.gz", "--target", "linux", "--jobs", "2", "-o", "windows"),
    "whole check": ("check", "names", "--no-cache", "--target", "linux", "--jobs", "2", "-o", "run"),
    "triples": ("analyze", "posix18", "--size", "3", "--no-cache", "--jobs", "2"),
}
"""What is measured; each runs in an empty folder that holds the corpus of `names`."""

ONCE = {"triples"}
"""What takes minutes."""


def run_in(checkout: Path, folder: Path, arguments: tuple[str, ...]) -> Run:
    """Runs the checkout's command in the folder. Raises RuntimeError if it fails."""
    argv = [sys.executable, "-c", MEASURE, str(checkout / ".venv" / "bin" / "commutant"), *arguments]
    result = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise RuntimeError(f"`commutant {' '.join(arguments)}` of {checkout}:\n{result.stderr}")
    return Run(*json.loads(result.stdout))


def compare(name: str, other: Path, corpus: Path, rounds: int) -> bool:
    """Measures one command on both sides and prints its line; returns whether it is neither slower nor larger."""
    seconds: list[tuple[float, float]] = []
    memory: list[tuple[float, float]] = []
    found: list[str] = ["", ""]
    for number in range(rounds):
        sides = [other, ROOT] if number % 2 else [ROOT, other]
        runs: dict[Path, Run] = {}
        for checkout in sides:
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / "names.jsonl.gz").write_bytes(corpus.read_bytes())
                runs[checkout] = run_in(checkout, Path(folder), COMMANDS[name])
        before, now = runs[other], runs[ROOT]
        seconds.append((before.processor_seconds, now.processor_seconds))
        memory.append((before.peak_memory_mib, now.peak_memory_mib))
        found = [(run.output.splitlines() or [""])[-1][:60] for run in (before, now)]
    kept = [_line(name, "s", seconds), _line(name, "MiB", memory)]
    print(f"{'':12} found: {found[0]} | {found[1]}", flush=True)
    return all(kept)


def _line(name: str, unit: str, pairs: list[tuple[float, float]]) -> bool:
    ratios = [now / before for before, now in pairs]
    before, now = (median(side) for side in zip(*pairs, strict=True))
    middle = median(ratios)
    spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
    print(f"{name:12} {before:9.2f} {now:9.2f} {unit:4} ratio {middle:.3f} ({spread})", flush=True)
    return middle <= MOST


def main(arguments: list[str]) -> int:
    """Measures all; returns the exit code."""
    if len(arguments) not in (1, 2) or not (Path(arguments[0]) / ".venv" / "bin" / "commutant").exists():
        print("usage: python -m bench.against OTHER [ROUNDS], OTHER a checkout after `make setup`", file=sys.stderr)
        return 2
    other, rounds = Path(arguments[0]).resolve(), int(arguments[1]) if len(arguments) == 2 else 5
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "names.jsonl.gz"
        run_in(other, Path(folder), ("generate", "names", "-o", str(corpus)))
        print(f"{'':12} {'before':>9} {'now':>9}")
        kept = [compare(name, other, corpus, 1 if name in ONCE else rounds) for name in COMMANDS]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
