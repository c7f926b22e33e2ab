"""The table of faults that can be planted in our Rust code, and of the tests that must find each.

A fault is a place that asks `planted("CRATE: what is wrong")` (crate `sync`). Tests name it where they plant it. Both
are read from the sources, so that the table in docs/notes/planted-faults.md cannot say anything else; `--write` draws
it again.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from steps import ROOT

PAGE = ROOT / "docs" / "notes" / "planted-faults.md"
BEGIN = "<!-- drawn by scripts/planted_faults.py: begin -->"
END = "<!-- drawn by scripts/planted_faults.py: end -->"
BY_HAND: dict[str, str] = {
    "durable: a group goes on after what is not decided": "the unit test in `durable/src/log.rs`",
    "transact: who takes each other's places has no spare one": "the unit test in `transact/src/descriptors.rs`",
}
"""Faults that no test plants, and why."""
_ASKED = re.compile(r'\bplanted\(\s*"([^"]+)"')
_NAMED = re.compile(r'"([a-z-]+: [^"\n]+)"')


def asked() -> dict[str, Path]:
    """By fault: the file with the place that it changes."""
    sources = sorted(path for folder in ("src", "shim/src") for path in ROOT.glob(f"crates/*/*/{folder}/**/*.rs"))
    models = sorted(path for path in ROOT.glob("crates/*/*/tests/**/*.rs"))
    return {name: path for path in (*models, *sources) for name in _ASKED.findall(path.read_text(encoding="utf-8"))}


def finders() -> dict[str, list[Path]]:
    """By fault: the tests and scripts that plant it and must find it."""
    found: dict[str, list[Path]] = {name: [] for name in asked()}
    for path in sorted([*ROOT.glob("crates/*/*/tests/**/*.rs"), ROOT / "scripts" / "fuzz.py"]):
        text = path.read_text(encoding="utf-8")
        for name in set(_NAMED.findall(_ASKED.sub("", text))):
            if name in found:
                found[name].append(path)
    return found


def rows(places: Mapping[str, Path], by: Mapping[str, Sequence[Path]]) -> list[str]:
    """One line of Markdown a fault: what it is, where, who finds it."""
    lines = []
    for name in sorted(places):
        tests = ", ".join(f"`{_short(path)}`" for path in by[name]) or BY_HAND.get(name, "nobody")
        lines.append(f"| {name} | `{_short(places[name])}` | {tests} |")
    return lines


def table() -> str:
    """The table in Markdown, below how many faults there are."""
    lines = rows(asked(), finders())
    return "\n".join(
        [f"{len(lines)} faults:", "", "| fault | planted in | must be found by |", "| --- | --- | --- |", *lines]
    )


def _short(path: Path) -> str:
    return str(path.relative_to(ROOT)).removeprefix("crates/")


def drawn(page: str) -> str:
    """The page with the table as it must be."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def main(arguments: list[str]) -> int:
    """Prints the table, or writes it into its page."""
    if arguments == ["--write"]:
        PAGE.write_text(drawn(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    elif arguments:
        print(f"usage: planted_faults.py [--write], not {' '.join(arguments)}", file=sys.stderr)
        return 2
    else:
        print(table())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
