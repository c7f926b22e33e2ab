"""`commutant resume RUN`: judge what an interrupted check left."""

from __future__ import annotations

from pathlib import Path

import click

from commutant.cli import options
from commutant.cli.campaign import Gate, carry_out, gated


@click.command(
    "resume",
    short_help="Continue an interrupted check.",
    epilog=options.examples("commutant resume runs/names-linux-1", "commutant resume runs/names-linux-1 --jobs 1"),
)
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@options.jobs
@gated
@options.output_format("text", "json")
def command(
    run: Path,
    jobs: int,
    gate: Gate,
    format_: str,
) -> int:
    """Continues the check that left the run directory RUN, with the tests, target and order that it was started with.

    Exit code 1 if `--fail-on` says so, 3 if the run failed or a result was wrong.
    """
    from commutant.runs import Check

    return carry_out(Check.resume(run, jobs), gate, format_)
