"""`commutant locks`: which locks of a program serialise work that touches disjoint data."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commutant.cli import console, options, results
from commutant.errors import UsageError

if TYPE_CHECKING:
    from commutant.syncchar import LockClass, LockStudy

_DEFAULT_FIELDS = 3


@click.command(
    "locks",
    short_help="Find locks that serialise work on disjoint data.",
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
    epilog=options.examples(
        "commutant locks -- pigz -p 2 -k -c big.txt",
        "commutant locks --sort independence -- ./server --threads 4",
        "commutant locks --format json -- ./a.out | jq '.locks[0].fields'",
        "commutant locks --window 50 --timeout 60 -- ./a.out",
        "commutant locks --format html -o locks.html -- ./a.out",
        "commutant locks --format folded -- ./a.out | flamegraph.pl > locks.svg",
    ),
)
@click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="-- PROGRAM [ARGS]...")
@click.option(
    "--window",
    type=click.IntRange(1, 65536),
    default=128,
    show_default=True,
    help="Sections of a lock that a new one is compared with.",
)
@click.option("--sort", default="hold_total", show_default=True, metavar="KEY", help="Order of the tables: see below.")
@click.option("--top", type=click.IntRange(1), default=15, show_default=True, help="Classes of locks to show.")
@click.option(
    "--fields",
    type=click.IntRange(0),
    default=_DEFAULT_FIELDS,
    show_default=True,
    help="Classes of which to show what they conflict on.",
)
@click.option(
    "--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="Stop the program then."
)
@click.option("--inlined/--no-inlined", default=True, help="Also find locks by their instructions, not only pthread's.")
@options.output_format("text", "json", "html", "parquet", "folded")
@options.output_file
def command(
    program: tuple[str, ...],
    window: int,
    sort: str,
    top: int,
    fields: int,
    timeout: float | None,
    inlined: bool,
    format_: str,
    output: Path | None,
) -> int:
    """Runs PROGRAM under the lock recorder and says of each lock whether its critical sections touch disjoint data:
    which locks could be split, elided or replaced, and what they conflict on.

    The program runs some tens of times slower. Programs that it starts run without the recorder; processes that it
    forks are recorded apart. Locks are those of pthread (and of C++ and others built on it), those that Rust's standard
    library and spin locks inline, and those annotated with `commutant_locks.h` or the crate `lock-annotation`.

    With any other format than text what PROGRAM prints goes to standard error. `html` (a page with a picture of all
    locks) and `parquet` (a row per class of locks) are written to a file, locks.html or locks.parquet unless `-o` says
    otherwise; `folded` is the time held by lock and caller, for flame graphs.

    Tables can be sorted by acquired, contended, avg_wait, wait_total, hold_total, independence, speedup.
    """
    from commutant.syncchar import record_program, study
    from commutant.syncchar.table import check_sort_key, sorted_classes

    if not program:
        raise UsageError("expected a program behind `--`, got nothing: commutant locks -- PROGRAM [ARGS]")
    check_sort_key(sort)
    path = output or (Path(f"locks.{format_}") if format_ in ("html", "parquet") else None)
    results.refuse_existing(path)
    # A document stands alone on standard output: what the program prints there goes to standard error.
    messages = sys.__stderr__.fileno() if sys.__stderr__ is not None else subprocess.DEVNULL  # closed, as with `2>&-`
    stream = None if format_ == "text" and path is None else messages
    run = record_program(program, window_sections=window, inlined=inlined, timeout_seconds=timeout, output=stream)
    studied = study(run.records[0])
    classes = sorted_classes(studied, sort)[:top]
    _show(studied, classes, fields, format_, path, Path(program[0]).name)
    if len(run.records) > 1:
        console.message(f"{program[0]} forked: {len(run.records) - 1} more processes were recorded and are not shown")
    if run.timed_out:
        console.message(f"{program[0]} was stopped after {timeout:g} s")
    elif run.exit_code:
        how = f"signal {-run.exit_code}" if run.exit_code < 0 else f"exit code {run.exit_code}"
        console.message(f"{program[0]} ended with {how}")
    return 0


def _show(
    studied: LockStudy, classes: Sequence[LockClass], fields: int, format_: str, path: Path | None, title: str
) -> None:
    from commutant.syncchar import export, page
    from commutant.syncchar.table import print_study, study_json

    if format_ == "parquet":
        assert path is not None
        export.write_parquet(studied, classes, path)
        console.write(f"{path}\n")
    elif format_ == "html":
        results.put([page.render_page(studied, classes, title)], path)
    elif format_ == "folded":
        results.put(export.folded_stacks(classes), path)
    elif format_ == "json":
        results.put([console.json_text(study_json(studied, classes))], path)
    else:
        results.draw(lambda terminal: print_study(studied, classes, terminal, fields=fields), path)
