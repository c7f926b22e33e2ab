"""A run in the terminal: what to fix first, the heat map of pairs, what is shared most, what else happened.

Everything is also readable without colour: each cell carries its number and a bar whose height is the fraction. All
text is built as `rich.text.Text`, never as markup, so that a name cannot turn into a style.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rich import box
from rich.console import Console
from rich.style import Style
from rich.table import Table
from rich.text import Text

from commutant.campaign import Outcome
from commutant.mtrace import Finding
from commutant.report.data import RunReport, SetCounts, beside_only, read_sets, skipped_reasons, total_counts
from commutant.report.first import print_first
from commutant.report.for_keys import how_often, key_rates, spreading_of
from commutant.report.heat import HeatMap, heat_map, level, sorted_sets
from commutant.report.palette import LIGHT, text_colour
from commutant.report.ranking import FUNCTIONS_SHOWN, SharedVariable, rank_shared
from commutant.report.reach import not_reached
from commutant.support import percent, plural, safe_text

SHARED_LISTED = 10
"""Variables in the list of a run."""

LISTED_SETS = 40
"""Sets of calls in the list that stands for the heat map where sets are not pairs."""

_BARS = "▁▂▃▄▅▆▇█"
_ASCII_BARS = ".:-=+*%@"
_GAP = 1
_SHORTEST_CELL = 5
_FRACTION_CELL = 9
_LONGEST_LABEL = 12
_LINES_IN_USE = 5


def print_run(run: RunReport, console: Console, worth: Callable[[Finding], list[str]] | None = None) -> None:
    """The whole report of a run: what to fix first, and with `worth` what changes of it would free; heat map, most
    shared variables, tests not judged and why."""
    sets = read_sets(run.summary)
    if sets:
        _line(console, _title(run.summary, sets, beside_only(run.tests)))
        _print_not_reached(run.summary, console)
        console.print()
        print_first(run.tests, console, worth=worth)
    _print_map(sets, console)
    console.print()
    print_by_sharing(rank_shared(run.tests), console)
    _print_keys(run.summary, console)
    _print_ignored(run.summary, console)
    _print_skipped(run, console)
    _print_failures(run, console)


def _print_keys(summary: Mapping[str, object], console: Console) -> None:
    """What calls share for some keys and not for most."""
    rates = key_rates(summary)
    if not rates:
        return
    console.print()
    _line(console, Text("Shared for some keys", style="bold"))
    for rate in rates[:SHARED_LISTED]:
        advice = f"; {spreading}" if (spreading := spreading_of(rate)) else ""
        _line(console, Text(safe_text(f"{rate.sharing} sharing of {rate.variable}: {how_often(rate)}{advice}")))


def print_heat_map(summary: Mapping[str, object], console: Console) -> None:
    """Draws the pairs of a `summary.json` as a lower triangle; sets of another size as a sorted list.

    Raises UsageError if the document is not such a summary.
    """
    sets = read_sets(summary)
    if sets:
        _line(console, _title(summary, sets))
        _print_not_reached(summary, console)
        console.print()
    _print_map(sets, console)


def _print_map(sets: Sequence[SetCounts], console: Console) -> None:
    if not sets:
        _line(console, Text("No set of calls was tested."))
        return
    pairs = heat_map(sets)
    if pairs is None or not _print_triangle(pairs, console):
        _print_list(sets, console)
    console.print()
    _line(console, _legend(console))


def _print_not_reached(summary: Mapping[str, object], console: Console) -> None:
    """What the percentage above says nothing about."""
    if missing := not_reached(summary):
        console.print(Text(f"Not reached: {'; '.join(missing)}", style="dim"))


def print_by_sharing(ranking: Sequence[SharedVariable], console: Console, limit: int = SHARED_LISTED) -> None:
    """Lists the first variables of `rank_shared`: tests and sets that they break, kind of sharing, functions."""
    if not ranking:
        _line(console, Text("No memory was shared without need."))
        return
    shown = ranking[:limit]
    of = f" (of {len(ranking):,})" if len(ranking) > len(shown) else ""
    _line(console, Text(f"Most shared{of}", style="bold"))
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim", highlight=False)
    for heading in ("tests", "sets"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("sharing", no_wrap=True)
    table.add_column("variable", overflow="fold", ratio=5)
    table.add_column("mostly in", overflow="fold", ratio=3)
    for variable in shown:
        table.add_row(
            Text(f"{variable.tests:,}"),
            Text(f"{variable.sets:,}"),
            Text(variable.sharing),
            Text(safe_text(variable.name), style="bold"),
            Text(", ".join(map(safe_text, variable.functions[:FUNCTIONS_SHOWN]))),
        )
    console.print(table)
    with_neighbours = [variable for variable in shown if variable.line_in_use][:_LINES_IN_USE]
    if with_neighbours:
        _line(console, Text("Also in use on their lines", style="bold"))
    for variable in with_neighbours:
        _line(console, Text(f"{safe_text(variable.name)}: {variable.line_in_use}"))


def _title(summary: Mapping[str, object], sets: Sequence[SetCounts], beside: int = 0) -> Text:
    total = total_counts(sets)
    what = safe_text(f"{summary.get('interface', 'interface')} on {summary.get('target', 'target')}")
    text = Text(what, style="bold").append(": ", style="not bold")
    text.append(
        f"{total.not_conflict_free:,} of {plural(total.judged, 'test')} not conflict-free ({percent(total.fraction)})",
        style="not bold",
    )
    collisions, unreached = (
        count if isinstance(count := summary.get(name, 0), int) else 0 for name in ("collisions", "unreached")
    )
    for count, words in (
        (collisions, "of them not repeated under other seeds"),
        (beside, "of them by neighbouring lines alone"),
        (total.unstable, "of them unstable"),
        (total.wrong_result, "with a wrong result"),
        (total.crashed, "crashed"),
        (total.skipped, "skipped"),
        (unreached, "of them with a set-up that the target led elsewhere, as the model allows"),
    ):
        if count:
            text.append(f"; {count:,} {words}", style="not bold")
    return text


def _print_triangle(pairs: HeatMap, console: Console) -> bool:
    """Draws the triangle if it fits the console's width, and tells whether it did."""
    label_width = min(max(map(len, map(safe_text, (*pairs.calls, "all")))), _LONGEST_LABEL)
    labels = [_cut(safe_text(call), label_width) for call in pairs.calls]
    widest = max(_count_width(counts) for counts in (*pairs.cells.values(), *pairs.totals))
    room = (console.width - label_width) // len(labels) - _GAP
    width = min(room, max(_FRACTION_CELL, widest))
    shows_total = widest <= width
    if not shows_total:
        width = min(room, max(_SHORTEST_CELL, max(len(f"{c.not_conflict_free:,}") for c in pairs.totals) + 1))
        if width < len(f"{max(c.not_conflict_free for c in pairs.totals):,}") + 1:
            return False
    for row, label in enumerate(labels):
        line = Text(label.rjust(label_width))
        for column in range(row + 1):
            line.append(" " * _GAP).append_text(_cell(pairs.cells.get((row, column)), width, shows_total, console))
        _line(console, line)
    for heading in _staggered(labels, width, label_width):
        _line(console, Text(heading.rstrip(), style="dim"))
    console.print()
    line = Text("all".rjust(label_width))
    for counts in pairs.totals:
        line.append(" " * _GAP).append_text(_cell(counts, width, shows_total, console))
    _line(console, line)
    return True


def _staggered(labels: Sequence[str], width: int, label_width: int) -> list[str]:
    """The column labels: on one line where all fit, else by turns on two, so that each has twice the room."""
    pitch = width + _GAP
    if max(map(len, labels)) <= width:
        return [" " * label_width + "".join(label.rjust(pitch) for label in labels)]
    lines = []
    for turn in (0, 1):
        line = ""
        for index in range(turn, len(labels), 2):
            end = label_width + (index + 1) * pitch
            label = labels[index][: 2 * pitch - 1]
            line = line.ljust(end - len(label)) + label
        lines.append(line)
    return lines


def _cell(counts: SetCounts | None, width: int, shows_total: bool, console: Console) -> Text:
    if counts is None:
        return Text("·".rjust(width) if console.encoding == "utf-8" else "".rjust(width), style="dim")
    mark = "!" if counts.failed else ""
    if not counts.judged:
        return Text(f"{mark}–".rjust(width) if console.encoding == "utf-8" else f"{mark}-".rjust(width), style="dim")
    number = f"{mark}{counts.not_conflict_free:,}" + (f"/{counts.judged:,}" if shows_total else "")
    text = Text(number.rjust(width - 1) + _bar(counts, console), style=_style(counts))
    if not counts.not_conflict_free:
        text.stylize("dim")
    return text


def _count_width(counts: SetCounts) -> int:
    return len(f"{counts.not_conflict_free:,}/{counts.judged:,}") + 1 + bool(counts.failed)


def _bar(counts: SetCounts, console: Console) -> str:
    if not counts.not_conflict_free:
        return " "
    bars = _BARS if console.encoding == "utf-8" else _ASCII_BARS
    return bars[min(int(counts.fraction * len(bars)), len(bars) - 1)]


def _style(counts: SetCounts) -> Style:
    step = level(counts)
    return Style(color=text_colour(LIGHT[step]), bgcolor=LIGHT[step]) if step else Style()


def _print_list(sets: Sequence[SetCounts], console: Console) -> None:
    ranked = sorted_sets(sets)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("not conflict-free", justify="right", no_wrap=True)
    table.add_column("of", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("calls", overflow="fold")
    for counts in ranked[:LISTED_SETS]:
        table.add_row(
            Text(f"{counts.not_conflict_free:,}"),
            Text(f"{counts.judged:,}"),
            Text(f" {percent(counts.fraction):>6}{_bar(counts, console)} ", style=_style(counts)),
            Text(", ".join(map(safe_text, counts.calls)) + ("  !" if counts.failed else "")),
        )
    console.print(table)
    if len(ranked) > LISTED_SETS:
        rest = total_counts(ranked[LISTED_SETS:])
        _line(
            console,
            Text(f"and {plural(len(ranked) - LISTED_SETS, 'set')} more: {rest.not_conflict_free:,} of {rest.judged:,}"),
        )


def _legend(console: Console) -> Text:
    text = Text("tests that are not conflict-free; fraction up to ", style="dim")
    bars = _BARS if console.encoding == "utf-8" else _ASCII_BARS
    for step in range(1, len(LIGHT)):
        bar = bars[(2 * step - 1) * len(bars) // (2 * (len(LIGHT) - 1))]
        text.append(f"{step * 20}{bar}", style=Style(color=text_colour(LIGHT[step]), bgcolor=LIGHT[step]))
        text.append(" ")
    return text.append("%", style="dim")


def _print_ignored(summary: Mapping[str, object], console: Console) -> None:
    """What the rules left out: a reader must know that there were such lines, and of which rule."""
    ignored = summary.get("ignored")
    if not isinstance(ignored, Mapping) or not ignored:
        return
    rules = ", ".join(f"{safe_text(str(rule))} {safe_text(str(count))}" for rule, count in ignored.items())
    console.print()
    _line(console, Text(f"Shared lines left out, by rule: {rules}", style="dim"))


def _print_skipped(run: RunReport, console: Console) -> None:
    reasons = skipped_reasons(run.tests)
    if not reasons:
        return
    console.print()
    _line(console, Text(f"Skipped ({sum(tests for _, tests in reasons):,})", style="bold"))
    for why, tests in reasons[:SHARED_LISTED]:
        _line(console, Text(safe_text(f"{plural(tests, 'test')}: {why}")))
    if len(reasons) > SHARED_LISTED:
        _line(console, Text(f"and {plural(len(reasons) - SHARED_LISTED, 'more reason')}"))


def _print_failures(run: RunReport, console: Console) -> None:
    failed = [judged for judged in run.tests if judged.outcome in (Outcome.WRONG_RESULT, Outcome.CRASHED)]
    if not failed:
        return
    console.print()
    _line(console, Text(f"Wrong results and crashes ({len(failed):,})", style="bold"))
    table = Table(box=box.SIMPLE_HEAD, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("test", no_wrap=True)
    table.add_column("what", overflow="fold")
    for judged in failed[:SHARED_LISTED]:
        table.add_row(Text(safe_text(judged.test.id)), Text(safe_text(judged.detail)))
    console.print(table)
    if len(failed) > SHARED_LISTED:
        _line(console, Text(f"and {len(failed) - SHARED_LISTED:,} more"))


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _line(console: Console, text: Text) -> None:
    """Prints one line as it is, without wrapping that depends on what stands in it."""
    console.print(text, soft_wrap=True)
