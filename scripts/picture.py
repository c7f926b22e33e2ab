"""Draws the heat maps of runs side by side, as the paper's Figure 6: `python scripts/picture.py RUN... OUTPUT.svg`.

The same table of numbers and the same colours as in the terminal and on the page (`commutant.report`). A picture refers
to nothing on the network and asks for no font.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from commutant.documents import builtins
from commutant.report.data import SetCounts, read_sets, total_counts
from commutant.report.heat import COLOUR_STEPS, HeatMap, heat_map, level
from commutant.report.palette import LIGHT, text_colour
from commutant.runs.directory import load_run
from commutant.support.errors import CommutantError, UsageError

CELL_WIDTH, CELL_HEIGHT = 34, 21
LABEL_WIDTH = 78
HEAD_HEIGHT = 62
FOOT_HEIGHT = 104
"""Room for the names of the columns, which are written upwards, and for the scale."""
GAP = 28
STYLE = (
    "text{font:12px ui-sans-serif,system-ui,sans-serif;fill:#24292f}"
    ".title{font-weight:600;font-size:15px}.small{font-size:12px;fill:#57606a}"
    ".n{text-anchor:middle;font-size:11px}.row{text-anchor:end}.none{fill:#afb8c1}"
    ".cell{stroke:#d0d7de;stroke-width:1}"
)


def draw(runs: Sequence[Path]) -> str:
    """The heat maps of run directories as one SVG document. Raises UsageError if one is none, or not of pairs."""
    panels = [_panel(run) for run in runs]
    width = sum(panel[1] for panel in panels) + GAP * (len(panels) + 1)
    height = max(panel[2] for panel in panels)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">']
    lines += [f"<style>{STYLE}</style>", f'<rect width="{width}" height="{height}" fill="#ffffff"/>']
    left = GAP
    for body, panel_width, _ in panels:
        lines += [f'<g transform="translate({left} 0)">', *body, "</g>"]
        left += panel_width + GAP
    return "\n".join([*lines, "</svg>"]) + "\n"


def _panel(run: Path) -> tuple[list[str], int, int]:
    """One run's map, and the width and height that it takes."""
    loaded = load_run(run)
    sets = read_sets(builtins(loaded.summary))
    pairs = heat_map(sets)
    if pairs is None:
        raise UsageError(f"{run}: expected a run of pairs of calls, got sets of another size; draw a run with --size 2")
    total = total_counts(sets)
    percent = 100 * total.conflict_free / total.judged if total.judged else 0
    # A fraction that rounds to 100 % although something is left would lie.
    shown = f"{percent:.0f}" if percent <= 99 or percent == 100 else f"{min(percent, 99.9):.1f}"
    skipped = f"; {total.skipped:,} tests of calls that it does not have" if total.skipped else ""
    counts = f"{total.conflict_free:,} of {total.judged:,} tests conflict-free ({shown} %){skipped}"
    body = [
        _text(0, 22, f"{loaded.info.interface} on {loaded.info.target}", "title"),
        _text(0, 42, counts, "small"),
        *_triangle(pairs),
    ]
    height = HEAD_HEIGHT + CELL_HEIGHT * len(pairs.calls) + FOOT_HEIGHT
    body += _scale(height - 26)
    return body, LABEL_WIDTH + CELL_WIDTH * len(pairs.calls), height


def _triangle(pairs: HeatMap) -> Iterator[str]:
    """Rows and columns with their names, and in each cell how many tests are not conflict-free."""
    for row, call in enumerate(pairs.calls):
        top = HEAD_HEIGHT + row * CELL_HEIGHT
        yield _text(LABEL_WIDTH - 8, top + 15, call, "row")
        left, bottom = LABEL_WIDTH + row * CELL_WIDTH, HEAD_HEIGHT + len(pairs.calls) * CELL_HEIGHT + 8
        turned = f"translate({left + CELL_WIDTH // 2 + 4} {bottom}) rotate(-90)"
        yield f'<text class="row" transform="{turned}">{escape(call)}</text>'
        for column in range(row + 1):
            counts = pairs.cells.get((row, column))
            if counts is not None:
                yield from _cell(LABEL_WIDTH + column * CELL_WIDTH, top, counts)


def _cell(left: int, top: int, counts: SetCounts) -> Iterator[str]:
    names = " and ".join(counts.calls)
    if not counts.judged:
        title, text, colour, kind = f"{names}: no test could be run", "–", LIGHT[0], "n none"
    else:
        title = f"{names}: {counts.not_conflict_free} of {counts.judged} tests are not conflict-free"
        colour, kind = LIGHT[level(counts)], "n"
        text = str(counts.not_conflict_free) if counts.not_conflict_free else ""
    yield (
        f'<rect class="cell" x="{left}" y="{top}" width="{CELL_WIDTH}" height="{CELL_HEIGHT}" fill="{colour}">'
        f"<title>{escape(title)}</title></rect>"
    )
    if text:
        fill = "" if "none" in kind else f' style="fill:{text_colour(colour)}"'
        yield f'<text class="{kind}" x="{left + CELL_WIDTH // 2}" y="{top + 15}"{fill}>{text}</text>'


def _scale(top: int) -> Iterator[str]:
    """What the colours mean."""
    yield _text(0, top + 14, "not conflict-free:", "small")
    left = 110
    for step in range(1, COLOUR_STEPS):
        yield f'<rect class="cell" x="{left}" y="{top}" width="18" height="18" fill="{LIGHT[step]}"/>'
        yield _text(left + 24, top + 14, f"to {100 * step // (COLOUR_STEPS - 1)} %", "small")
        left += 84


def _text(left: int, top: int, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{left}" y="{top}">{escape(text)}</text>'


def main(arguments: list[str]) -> int:
    """Writes the picture; returns the exit code."""
    if len(arguments) < 2:
        print("usage: picture.py RUN... OUTPUT.svg", file=sys.stderr)
        return 2
    *runs, output = map(Path, arguments)
    try:
        output.write_text(draw(runs))
    except CommutantError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
