"""Draws the heat map of a run as a picture: `python scripts/picture.py RUN OUTPUT.svg`.

The picture is the terminal's own drawing, recorded, so that what the README shows is what a user sees. It refers to no
font and nothing else on the network.
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI

from commutant.errors import CommutantError
from commutant.report import print_heat_map
from commutant.rundir import load_run

COLUMNS = 72
COLUMNS_PER_CALL = 8
"""What a cell of a large map takes, with the gap in front of it."""


def draw(run: Path) -> str:
    """The heat map of the run directory as an SVG document. Raises UsageError if it is none."""
    loaded = load_run(run)
    calls = {call for counts in loaded.summary.sets for call in counts.calls}
    columns = max(COLUMNS, COLUMNS_PER_CALL * (len(calls) + 1))
    console = Console(
        file=io.StringIO(), record=True, width=columns, force_terminal=True, color_system="truecolor", highlight=False
    )
    print_heat_map(loaded.summary.to_json(), console)
    title = f"commutant check {loaded.info.interface} --target {loaded.info.target}"
    picture = console.export_svg(title=title, theme=DIMMED_MONOKAI, unique_id="heatmap")
    without_web_fonts = re.sub(r"@font-face \{.*?\}\n", "", picture, flags=re.DOTALL)
    return "\n".join(line.rstrip() for line in without_web_fonts.strip().splitlines()) + "\n"


def main(arguments: list[str]) -> int:
    """Writes the picture; returns the exit code."""
    if len(arguments) != 2:
        print("usage: picture.py RUN OUTPUT.svg", file=sys.stderr)
        return 2
    try:
        Path(arguments[1]).write_text(draw(Path(arguments[0])))
    except CommutantError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
