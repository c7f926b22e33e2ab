"""Draws the lists of corners again: what random calls reach of (call, error, kind of object, what the caller is to it).

    scripts/corners.py [CALLS]

The calls of `make test ALL=1` reach some corners, and 400,000 calls of each kind reach others as well. The
lists have both. A test holds that nothing else is reached, and that the calls of `make test ALL=1` miss none of the
former; after each of the others stands how often it came.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping

from steps import ROOT, StepFailed, run

LISTS = ROOT / "crates" / "file-system" / "scalefs" / "tests" / "tmpfs" / "corners"
COMMAND = ["cargo", "test", "--release", "--locked", "--offline", "--package=scalefs", "--test=tmpfs"]
FILTER = ["--", "--show-output", "as_on_tmpfs"]
LINE = r"(?m)^((?:names|data|small): .*)\t(\d+)$"


def reached(extra: Mapping[str, str]) -> dict[str, int]:
    """The corners, and how often each was reached."""
    printed = run([*COMMAND, *FILTER], env={"SCALEFS_NEW_CORNERS": "1", **extra})
    return {corner: int(count) for corner, count in re.findall(LINE, printed)}


def main(arguments: list[str]) -> int:
    """Writes the lists."""
    if len(arguments) > 1 or not all(re.fullmatch(r"[1-9]\d{0,8}", text) for text in arguments):
        print(f"usage: corners.py [CALLS], not {' '.join(arguments)}", file=sys.stderr)
        return 2
    calls = int(arguments[0]) if arguments else 400_000
    try:
        usual, many = reached({}), reached({"SCALEFS_FUZZ_CALLS": str(calls)})
    except StepFailed as failure:
        print(failure, file=sys.stderr)
        return 1
    rare = {corner: f"{corner} ({count} of {calls:,} calls)" for corner, count in many.items()}
    lines = [corner if corner in usual else rare[corner] for corner in sorted({*usual, *many})]
    for kind in ("names", "data", "small"):
        of_kind = [line for line in lines if line.startswith(f"{kind}:")]
        (LISTS / f"{kind}.txt").write_text("".join(f"{line}\n" for line in of_kind), encoding="utf-8")
    more = len(lines) - len(usual)
    print(f"{len(usual)} corners reached by make test ALL=1, {more} more by {calls:,} calls of each kind")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
