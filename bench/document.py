"""The pages of figures, made from docs/benchmarks.json, so that no figure on them is typed by hand.

docs/benchmarks.md begins with the dozen figures that matter; docs/notes/benchmark-samples.md has every row. The JSON
file holds, per area, its title, when and on which machine it was measured, and all samples. Measuring one area replaces
that area alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.areas.scale import PER_CORE
from bench.doors import section as of_programs
from bench.figure import Figure, number
from bench.hare import section as of_domains
from bench.highlights import rows
from bench.machine import describe
from bench.plot import bars
from bench.scaling import section as scaling
from bench.txos import section as beside_txos

DOCS = Path(__file__).resolve().parent.parent / "docs"
RESULTS = DOCS / "benchmarks.json"
PAGE = DOCS / "benchmarks.md"

SAMPLES = DOCS / "notes" / "benchmark-samples.md"
TIMES = DOCS / "scalefs-times.svg"
OF_TMPFS = ", of tmpfs's time"

HEADER = """# Benchmarks

The figures that matter, each a median, against its goal and, where there is one, its peer. `make bench` measures all of
them, `make bench-AREA` one area. [Every sample](notes/benchmark-samples.md) has its spread, machine and command.

| what | measured | goal | peer | by, when, at commit |
| --- | --- | --- | --- | --- |
"""

PICTURES = """
## How the analysis grows
Processor time, paths and memory by the number of calls, for sets of one to four calls:

![Growth of the analysis with the number of calls and the size of sets](analysis-growth.svg)

## ScaleFS beside tmpfs
The part of tmpfs's time that a call takes on ScaleFS, in the same run. tmpfs enters the kernel, ScaleFS does not:

![Times of calls on ScaleFS as parts of those on tmpfs](scalefs-times.svg)
"""

PROCESSES = """
## What a child costs
posix_spawn reads the descriptors that survive `exec` and nothing else; fork takes all, and the memory, with it. Each
with the child's exit and the parent's wait, by what the parent has:

![Times of posix_spawn and fork by the descriptors and pages of the parent](process-times.svg)
"""

SAMPLES_HEADER = """# Samples of the benchmarks

Made by `make bench`, as is [the page of figures](../benchmarks.md). A figure is the median of its samples, with the
smallest and the largest beside it. Each area names the machine and the commit that were measured.
"""


def load() -> dict[str, Any]:
    """The recorded areas by name; empty before the first measurement."""
    if not RESULTS.exists():
        return {}
    recorded: dict[str, Any] = json.loads(RESULTS.read_text())["areas"]
    return recorded


def store(name: str, title: str, figures: list[Figure], picture: str | None = None) -> None:
    """Replaces what is recorded of one area and writes the pages again; `picture` is a file in docs/."""
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
    write(areas)


def write(areas: Mapping[str, Any]) -> None:
    """Writes both pages, and the picture of the file system's times, again from what is recorded."""
    PAGE.write_text(page(areas))
    SAMPLES.write_text(samples(areas))
    TIMES.write_text(times(areas))


def page(areas: Mapping[str, Any]) -> str:
    """The page that begins with what matters."""
    pictures = PICTURES + (PROCESSES if "processes" in areas else "")
    return HEADER + "\n".join(
        [
            *rows(areas),
            *beside_txos(areas.get("transactions")),
            *of_domains(areas.get("domains")),
            *of_programs(areas.get("programs")),
            *scaling(areas.get("scale")),
            pictures,
        ]
    )


def samples(areas: Mapping[str, Any]) -> str:
    """The page of all rows, area by area."""
    return "\n".join([SAMPLES_HEADER, *(_section(name, areas[name]) for name in sorted(areas))])


def times(areas: Mapping[str, Any]) -> str:
    """A bar for each call of area `scalefs`: its part of tmpfs's time."""
    figures = [Figure.from_json(figure) for figure in areas.get("scalefs", {"figures": []})["figures"]]
    parts = {figure.name.removesuffix(OF_TMPFS): figure.median for figure in figures if OF_TMPFS in figure.name}
    return bars(parts, "part of tmpfs's time")


def _section(name: str, area: Mapping[str, Any]) -> str:
    figures = [Figure.from_json(figure) for figure in area["figures"]]
    machine = ", ".join(f"{key} {value}" for key, value in area["machine"].items())
    lines = [
        f"## {area['title']}",
        "",
        f"`make bench-{name}`, {area['date']}; {machine}.",
        "",
        *([f"![{area['title']}](../{area['picture']})", ""] if "picture" in area else []),
        "| figure | median | smallest to largest | goal | command |",
        "| --- | --- | --- | --- | --- |",
        # The others are points of the area's picture.
        *(_row(figure) for figure in figures if not figure.name.endswith(PER_CORE)),
        "",
    ]
    return "\n".join(lines)


def _row(figure: Figure) -> str:
    spread = f"{number(min(figure.samples))} to {number(max(figure.samples))} ({len(figure.samples)} samples)"
    median = f"{number(figure.median)} {figure.unit}"
    return f"| {figure.name} | {median} | {spread} | {figure.goal_text} | `{figure.command}` |"
