"""The comparison of two interfaces as a page of its own: a heat map for each, and below them what changed.

A cell is a pair of calls; its colour says in what part of the pair's situations the calls do not commute. Pairs that
are the same in both interfaces were not explored together, so that theirs come from an analysis of the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from commutant.gains.documents import ChangedEntry, CompareDocument, ComparedSetEntry
from commutant.report import LIGHT, text_colour

Counts = Mapping[tuple[str, ...], tuple[int, int]]
"""Per set of calls, the situations in which they do not commute, and all of them."""

_STYLE = """body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:75em;
padding:0 1em;color:#111;background:#fff}
.maps{display:flex;flex-wrap:wrap;gap:2em}table{border-collapse:collapse}caption{font-weight:600;padding:.4em}
.map td,.map th{font-size:11px;padding:.25em .35em;text-align:right;border:1px solid #ddd;font-weight:400}
.map td.changed{outline:2px solid #0b57d0;outline-offset:-2px}
.list td,.list th{padding:.35em .7em;border-bottom:1px solid #ddd;text-align:left;vertical-align:top}
code{font-size:12px;overflow-wrap:anywhere}"""


def comparison_page(document: CompareDocument, same: Counts) -> str:
    """The page; `same`: of the sets that are the same in both interfaces, how many situations they have."""
    first, second = (escape(name) for name in (document.first, document.second))
    before = {one.calls: (one.refused, one.refused + one.commuting) for one in document.sets if not one.same}
    after = {
        one.calls: (
            one.refused - (one.gained.wholly if one.gained else 0) + _count(one.lost),
            one.refused + one.commuting,
        )
        for one in document.sets
        if not one.same
    }
    title = f"{first} and {second}"
    return (
        f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head>\n<body>\n<h1>{title}</h1>\n"
        f"<p>{second} gains {document.gained} situations in which calls of {first} do not commute, and loses "
        f"{document.lost}. A number counts the situations of a pair in which its calls do not commute; outlined pairs "
        "changed.</p>\n"
        f'<div class="maps">\n{_map(document, document.first, {**same, **before}, 0)}\n'
        f"{_map(document, document.second, {**same, **after}, 1)}\n</div>\n{_list(document)}\n</body>\n</html>\n"
    )


def _count(entry: ChangedEntry | None) -> int:
    """How many situations changed, be it in part."""
    return 0 if entry is None else entry.situations


def _map(document: CompareDocument, interface: str, counts: Counts, side: int) -> str:
    names: dict[str, str] = {}
    for one in document.sets:
        names.update(zip(one.calls, (one.calls, one.calls_of_second)[side], strict=True))
    order = list(names)
    changed = {one.calls for one in document.sets if one.gained or one.lost}
    rows = []
    for number, row in enumerate(order):
        cells = [
            _cell(counts.get(pair), pair in changed)
            for column in order[: number + 1]
            for pair in [(column, row) if (column, row) in counts else (row, column)]
        ]
        rows.append(f'<tr><th scope="row">{escape(names[row])}</th>{"".join(cells)}</tr>')
    head = "".join(f'<th scope="col">{escape(names[call])}</th>' for call in order)
    return (
        f'<table class="map"><caption>{escape(interface)}</caption>\n{chr(10).join(rows)}\n'
        f"<tr><td></td>{head}</tr></table>"
    )


def _cell(found: tuple[int, int] | None, changed: bool) -> str:
    if found is None:
        return "<td></td>"
    refused, every = found
    steps = len(LIGHT) - 1
    colour = LIGHT[min(refused * steps // max(every, 1) + 1, steps) if refused else 0]
    mark = ' class="changed"' if changed else ""
    style = f"background:{colour};color:{text_colour(colour)}"
    return f'<td{mark} style="{style}" title="{refused} of {every}">{refused or ""}</td>'


def _list(document: CompareDocument) -> str:
    rows = [row for one in document.sets for row in _rows(one)]
    if not rows:
        return "<p>Nothing is gained and nothing is lost.</p>"
    return (
        '<table class="list"><tr><th>calls</th><th>situations</th><th>with</th><th>smallest example</th></tr>\n'
        + "\n".join(rows)
        + "</table>"
    )


def _rows(one: ComparedSetEntry) -> Sequence[str]:
    rows = []
    for kind, entry in (("gained", one.gained), ("lost", one.lost)):
        if entry is not None:
            part = f", {entry.in_part} in part" if entry.in_part else ""
            doubt = "" if entry.example.confirmed else "<br>(not confirmed)"
            rows.append(
                f"<tr><td>{escape(', '.join(one.calls))}</td><td>{entry.situations} {kind}{part}</td>"
                f"<td>{escape(', '.join(entry.parameters))}</td>"
                f"<td><code>{escape(entry.example.first)}</code><br><code>{escape(entry.example.second)}</code>"
                f"{doubt}</td></tr>"
            )
    return rows
