"""`make test-mutants`: how many of the small faults that a tool makes the tests find.

`mutants.py AREA... --count N --seed N` draws N mutants of each of the named areas of the Python package
(`mutants_python.py`) and crates (`mutants_rust.py`). What is drawn depends on the seed alone, and a larger count draws
more of the same. Results are kept (`mutants_kept.py`), so that an interrupted run goes on where it ended, and parts can
be run apart (`--part 2/5`). A whole draw's score goes into `target/mutants/scores.json`, and with `--write` all scores
go into `docs/notes/checks.md`.
"""

from __future__ import annotations

import argparse
import sys

import mutants_kept
import mutants_python
import mutants_rust
from steps import StepFailed, install_locked

LOCK = "requirements-mutants.lock"
EVERY = [*mutants_python.AREAS, *mutants_rust.CRATES]
GOALS = {"verdict": 98, "mtrace": 98, **dict.fromkeys(mutants_rust.SCALES, 95)}
"""Of what makes a difference, this many of a hundred are to be noticed; elsewhere 90."""


def main(arguments: list[str]) -> int:
    """Runs what the arguments ask for, prints the scores and the survivors, and keeps them."""
    parser = argparse.ArgumentParser(prog="mutants.py", description="how many small faults the tests find")
    parser.add_argument("areas", nargs="*", metavar="AREA", help=f"of {', '.join(EVERY)}; all if none is named")
    parser.add_argument("--count", type=int, default=40, help="mutants of each area or crate (40)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", default="1/1", help="N/M: every M-th mutant from the N-th on")
    parser.add_argument("--quick", action="store_true", help="without the models of `make test-long`")
    parser.add_argument("--write", action="store_true", help="write the table of docs/notes/checks.md")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.areas if name not in EVERY]
    number, slash, parts = given.part.partition("/")
    if unknown or not slash or not (number.isdigit() and parts.isdigit() and 1 <= int(number) <= int(parts)):
        parser.error(f"unknown area {unknown[0]!r}" if unknown else f"--part takes N/M, got {given.part!r}")
    if given.count < 1:
        parser.error(f"--count takes a number from 1 on, got {given.count}")
    try:
        install_locked(LOCK, "coverage", "tree_sitter", "tree_sitter_rust")
        part = int(number), int(parts)
        for names in mutants_rust.TOGETHER:
            crates = [mutants_rust.Crate(name) for name in names if name in (given.areas or EVERY)]
            mutants_rust.try_together(crates, given.count, given.seed, part, given.quick)
        for name in given.areas or EVERY:
            show(name, given.count, given.seed, part, given.quick)
    except StepFailed as failure:
        print(failure, file=sys.stderr)
        return 1
    if given.write:
        mutants_kept.write_page(EVERY)
    return 0


def show(name: str, count: int, seed: int, part: tuple[int, int], quick: bool) -> None:
    """Tries the mutants of an area, and prints its score and its survivors. Raises StepFailed if that cannot be."""
    area = mutants_python.Area(name) if name in mutants_python.AREAS else mutants_rust.Crate(name)
    score = mutants_kept.score(area.results(count, seed, part, quick), len(area.every))
    if part == (1, 1):
        mutants_kept.keep_score(name, GOALS.get(name, 90), seed, score)
    print(
        f"{name}: {score.counted} mutants of {score.every}, {len(score.missed)} survived, {score.timed_out} timed out "
        f"({score.unviable} more do not build, {score.equivalent} make no difference): {score.percent:.1f} % noticed",
        flush=True,
    )
    for survivor in score.missed:
        print(f"  survived: {survivor}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
