"""`commutant report`: show a run again, as text, page or JSON."""

from __future__ import annotations

from pathlib import Path

import click

from commutant.cli import console, options

_MOST_SHARED = 10


@click.command(
    "report",
    short_help="Show a run again: heat map, most shared variables, page.",
    epilog=options.examples(
        "commutant report runs/names-linux-1",
        "commutant report runs/names-linux-1 --format html",
        "commutant report runs/names-linux-1 --format json | jq '.most_shared[].name'",
    ),
)
@click.argument("run", type=click.Path(path_type=Path, file_okay=False))
@options.output_format("text", "html", "json")
def command(run: Path, format_: str) -> int:
    """Shows the run directory RUN; an interrupted run is shown as far as it got.

    `--format html` writes report.html into the run directory again and prints its path.
    """
    from commutant import report
    from commutant.run_report import report_of
    from commutant.rundir import REPORT_FILE, load_run

    loaded = load_run(run)
    content = report_of(loaded)
    if not loaded.complete:
        judged = loaded.summary.counts.tests
        console.message(f"this run was interrupted after {judged} of {loaded.info.tests} tests")
    if format_ == "html":
        page = loaded.path / REPORT_FILE
        report.write_html(content, page)
        console.write(f"{page}\n")
    elif format_ == "json":
        ranking = report.rank_shared(content.tests)
        document = {
            **content.summary,
            "complete": loaded.complete,
            "most_shared": report.ranking_json(ranking, _MOST_SHARED),
        }
        console.write_json(document)
    else:
        report.print_run(content, console.results())
    return 0
