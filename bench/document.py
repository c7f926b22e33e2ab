"""The page of figures, docs/benchmarks.md, made from docs/benchmarks.json, so that no figure on it is typed by hand.

The JSON file holds, per area, its title, when and on which machine it was measured, and all samples. Measuring one area
replaces that area alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.figure import Figure, number
from bench.machine import describe

DOCS = Path(__file__).resolve().parent.parent / "docs"
RESULTS = DOCS / "benchmarks.json"
PAGE = DOCS / "benchmarks.md"

HEADER = """# Benchmarks

Made by `make bench` from measurements; `make bench-AREA` measures one area again. A figure is the median of its
samples, with the smallest and the largest beside it. Each area names the machine and the commit that were measured.
"""


def load() -> dict[str, Any]:
    """The recorded areas by name; empty before the first measurement."""
    if not RESULTS.exists():
        return {}
    recorded: dict[str, Any] = json.loads(RESULTS.read_text())["areas"]
    return recorded


def store(name: str, title: str, figures: list[Figure], picture: str | None = None) -> None:
    """Replaces what is recorded of one area and writes the page anew; `picture` is a file beside the page."""
    areas = load()
    areas[name] = {
        "title": title,
        "date": datetime.now(UTC).date().isoformat(),
        "machine": describe(),
        "figures": [figure.to_json() for figure in figures],
        **({"picture": picture} if picture else {}),
    }
    document = {"schema_version": 1, "areas": {key: areas[key] for key in sorted(areas)}}
    RESULTS.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    PAGE.write_text(page(areas))


def page(areas: Mapping[str, Any]) -> str:
    """The Markdown page for the recorded areas."""
    return "\n".join([HEADER, *(_section(name, areas[name]) for name in sorted(areas))])


def _section(name: str, area: Mapping[str, Any]) -> str:
    figures = [Figure.from_json(figure) for figure in area["figures"]]
    machine = ", ".join(f"{key} {value}" for key, value in area["machine"].items())
    lines = [
        f"## {area['title']}",
        "",
        f"`make bench-{name}`, {area['date']}; {machine}.",
        "",
        *([f"![{area['title']}]({area['picture']})", ""] if "picture" in area else []),
        "| figure | median | smallest to largest | goal | command |",
        "| --- | --- | --- | --- | --- |",
        *(_row(figure) for figure in figures),
        "",
    ]
    return "\n".join(lines)


def _row(figure: Figure) -> str:
    spread = f"{number(min(figure.samples))} to {number(max(figure.samples))} ({len(figure.samples)} samples)"
    goal = "" if figure.goal is None else f"{figure.goal}, {'reached' if figure.met else '**missed**'}"
    return f"| {figure.name} | {number(figure.median)} {figure.unit} | {spread} | {goal} | `{figure.command}` |"
