"""The page's tables of domains without coherence, from the figures of area `domains`, with Hare's next to them."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from typing import Any

from bench.areas.domains import PER_CALL, SERVER, SPLIT, SYSTEMS, TMPFS
from bench.figure import Figure, number

HARE_TECHNIQUES = {
    "distribution": "0.97, 1.93, 1.37, 5.50",
    "broadcast": "0.99, 1.43, 1.07, 3.93",
    "direct access": "0.98, 1.18, 1.01, 2.39",
    "caches": "0.87, 1.44, 1.42, 2.42",
    "affinity": "0.96, 1.02, 1.00, 1.16",
}
"""Least, average, median and largest gain (figure 9 of the paper)."""

HEAD = """
## Hare's benchmarks on domains without coherence
*Hare*'s 13 benchmarks as calls, without what programs compute; [the page on domains](reference/domains.md#benchmarks)
says what each configuration is, and what each benchmark does. Throughput is that of tmpfs in the same round: 1 is
equal, more is faster. Hare's median on one core is 0.39 of ramfs's (section 5.3.3 of its paper).
"""

CALLS = """
### Calls of each benchmark
Of all calls of one program, in percent (Hare: figure 5).
"""

SIMULATED = """
### Simulated, with Hare's constants
In virtual time, every core with a program and a server. A speed-up is that over one domain, which sends no message;
Hare's is 14 on average over its server on one core (section 1). A gain is throughput with a technique over that
without it. Data have Hare's level, `close-to-open`: its column says what that gains over `posix`, where each read and
write of another's file is a message.
"""


def section(area: Mapping[str, Any] | None) -> list[str]:
    """Lines of Markdown. Other pages have links to its heading, so that stands there from the beginning."""
    return [HEAD, "Not recorded yet: `make bench-domains` does it.", ""] if area is None else list(_lines(area))


def _lines(area: Mapping[str, Any]) -> Iterator[str]:
    figures = {entry["name"]: Figure.from_json(entry) for entry in area["figures"]}
    end = f", {TMPFS}: a call"
    benchmarks = [name.removesuffix(end) for name in figures if name.endswith(end)]
    yield HEAD
    yield f"Measured on {area['date']} at commit {area['machine']['commit'][:7]} by `make bench-domains`."
    yield ""
    yield f"| benchmark | {TMPFS}, ns a call | {' | '.join(SYSTEMS)} | {' | '.join(PER_CALL)} a call |"
    yield f"| --- | --- | {' | '.join('---' for _ in (*SYSTEMS, *PER_CALL))} |"
    for benchmark in benchmarks:
        ratios = [_value(figures, f"{benchmark}, {system}: throughput, of tmpfs's") for system in SYSTEMS]
        counts = [
            " / ".join(_value(figures, f"{benchmark}, {system}: {count}, per call") for system in (SPLIT, SERVER))
            for count in PER_CALL
        ]
        time = _value(figures, f"{benchmark}{end}")
        yield f"| {benchmark} | {time} | {' | '.join([*ratios, *counts])} |"
    medians = [_goal(figures, f"median of all, {system}: throughput, of tmpfs's") for system in SYSTEMS]
    yield f"| median | | {' | '.join(medians)} | {' | '.join('' for _ in PER_CALL)} |"
    yield ""
    yield f"Messages, bytes, lines and waits: of {SPLIT} / {SERVER}, of both domains together."
    yield ""
    yield "| what | here | goal | Hare |"
    yield "| --- | --- | --- | --- |"
    hare = {f"{SPLIT}: rename": "4171 ns", "time-shared: rename": "7204 ns"}
    for name, figure in figures.items():
        if ": bare" in name or ": rename" in name:
            yield f"| {name} | {number(figure.median)} {figure.unit} | {figure.goal_text} | {hare.get(name, '')} |"
    yield CALLS
    of_calls = [
        name.removeprefix(f"{one}: calls of ")
        for one in benchmarks
        for name in figures
        if name.startswith(f"{one}: calls of ")
    ]
    kinds = list(dict.fromkeys(of_calls))
    yield f"| benchmark | {' | '.join(kinds)} |"
    yield f"| --- | {' | '.join('---' for _ in kinds)} |"
    for benchmark in benchmarks:
        yield f"| {benchmark} | {' | '.join(_percent(figures, f'{benchmark}: calls of {kind}') for kind in kinds)} |"
    yield SIMULATED
    techniques = [name.removeprefix("average gain of ") for name in figures if name.startswith("average gain of ")]
    techniques = [name for name in techniques if ":" not in name]
    yield f"| benchmark | speed-up | {' | '.join(techniques)} |"
    yield f"| --- | --- | {' | '.join('---' for _ in techniques)} |"
    for benchmark in benchmarks:
        speed_up = next((name for name in figures if name.startswith(f"{benchmark}, ") and "speed-up" in name), "")
        gains = [_value(figures, f"{benchmark}: gain of {technique}") for technique in techniques]
        yield f"| {benchmark} | {_value(figures, speed_up)} | {' | '.join(gains)} |"
    speed_up = _goal(figures, "average speed-up on simulated cores")
    ours = [_spread(figures, technique, benchmarks) for technique in techniques]
    yield f"| here: least, average, median, largest | average {speed_up} | {' | '.join(ours)} |"
    theirs = [HARE_TECHNIQUES.get(technique, "ours alone") for technique in techniques]
    yield f"| Hare: least, average, median, largest | average 14 | {' | '.join(theirs)} |"
    yield ""
    yield "| what | here | goal |"
    yield "| --- | --- | --- |"
    for name, figure in figures.items():
        if (
            "from Hare's" in name
            or "gain of distribution, at" in name
            or "simulated hosts" in name
            or "a million" in name
        ):
            yield f"| {name} | {number(figure.median)} {figure.unit} | {figure.goal_text} |"
    yield ""


def _spread(figures: Mapping[str, Figure], technique: str, benchmarks: list[str]) -> str:
    """The gains of a technique as Hare's figure 9 has them."""
    named = (f"{benchmark}: gain of {technique}" for benchmark in benchmarks)
    gains = [figures[name].median for name in named if name in figures]
    if not gains:
        return ""
    return ", ".join(number(of(gains)) for of in (min, statistics.mean, statistics.median, max))


def _percent(figures: Mapping[str, Figure], name: str) -> str:
    return number(100 * figures[name].median) if name in figures else ""


def _value(figures: Mapping[str, Figure], name: str) -> str:
    return number(figures[name].median) if name in figures else ""


def _goal(figures: Mapping[str, Figure], name: str) -> str:
    if name not in figures:
        return ""
    goal = figures[name].goal_text
    return f"**{number(figures[name].median)}**{f' ({goal})' if goal else ''}"
