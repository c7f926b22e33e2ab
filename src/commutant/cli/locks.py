"""`commutant locks`: which locks of a program serialise work that touches disjoint data."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commutant.cli import console, options, results
from commutant.documents import text
from commutant.support import UsageError, plural

if TYPE_CHECKING:
    from commutant.lock_view import LockClass, LockStudy
    from commutant.lock_view.recording import KernelRun, RecordedSpan

_DEFAULT_FIELDS = 3
_LONGEST_SECONDS = 1e6


class _Interval(click.ParamType[tuple[float, float]]):
    """Two numbers from 0, the smaller first, or one for both."""

    name = "least,most"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, float]:
        """The two numbers; fails with one line."""
        if isinstance(value, tuple):
            return value
        try:
            numbers = [float(text) for text in str(value).split(",")]
        except ValueError:
            numbers = []
        if not 1 <= len(numbers) <= 2 or not 0 <= numbers[0] <= numbers[-1] < math.inf:
            self.fail(
                f"expected two numbers of instructions, the smaller first, such as 80,12000, got {value}", param, ctx
            )
        return numbers[0], numbers[-1]


class _SpanType(click.ParamType["RecordedSpan"]):
    """`annotations`, `signal`, or two numbers of seconds: from when, and for how long."""

    name = "span"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> RecordedSpan:
        """The span; fails with one line."""
        from commutant.lock_view.recording import RecordedSpan

        if value in ("annotations", "signal"):
            return RecordedSpan(value, announce=console.message)
        try:
            start, length = (float(text) for text in str(value).split(","))
        except ValueError:
            start = length = math.nan
        if not (0 <= start < _LONGEST_SECONDS and 0 < length < _LONGEST_SECONDS):
            self.fail(
                f"expected annotations, signal, or seconds as FROM,FOR such as 2,5 (5 s from 2 s on), got {value}",
                param,
                ctx,
            )
        return RecordedSpan("time", start, length, console.message)


class _Seconds(click.FloatRange):
    """A time that ends: neither nan nor inf, which compare as if they were in range."""

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number of seconds; fails with one line."""
        seconds: float = super().convert(value, param, ctx)
        if not math.isfinite(seconds):
            self.fail(f"expected a number of seconds, got {value}", param, ctx)
        return seconds


def _print_annotations(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    from commutant.support import annotations_folder

    if value:
        console.write_path(annotations_folder())
        ctx.exit()


@click.command(
    "locks",
    short_help="Find locks that serialise work on disjoint data.",
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
    epilog=options.examples(
        "commutant locks -- pigz -p 2 -k -c big.txt",
        "commutant locks --sort independence -- ./server --threads 4",
        "commutant locks --format json -- ./a.out | jq '.locks[0].fields'",
        "commutant locks --window 50 --timeout 60 -- ./a.out",
        "commutant locks --span 10,30 --timeout 45 -- ./server",
        "commutant locks --format html -o locks.html -- ./a.out",
        "commutant locks --format folded -- ./a.out | flamegraph.pl > locks.svg",
        "commutant locks --target linux",
        "commutant locks --target linux:cpus=8 --workload build.sh --by instance",
    ),
)
@click.option(
    "--annotations",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_annotations,
    help="Print the folder of commutant_locks.h, for `cc -I`, and exit.",
)
@click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="-- PROGRAM [ARGS]...")
@click.option(
    "--window",
    type=click.IntRange(1, 65536),
    default=128,
    show_default=True,
    help="Sections of a lock that a new one is compared with.",
)
@click.option("--sort", default="hold_total", show_default=True, metavar="KEY", help="Order of the tables: see above.")
@click.option("--top", type=click.IntRange(1), default=15, show_default=True, help="Classes of locks to show.")
@click.option(
    "--fields",
    type=click.IntRange(0),
    default=_DEFAULT_FIELDS,
    show_default=True,
    help="Classes of which to show what they conflict on.",
)
@click.option(
    "--target", metavar="linux[:KEY=VALUE,...]", help="Record a kernel's locks instead: options kernel=PATH, cpus=N."
)
@click.option(
    "--workload",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Shell script that the kernel's guest runs. [default: a parallel compilation of libFLAC]",
)
@click.option(
    "--by", type=click.Choice(["class", "instance"]), default="class", show_default=True, help="What a row stands for."
)
@click.option(
    "--timeout",
    type=_Seconds(),
    metavar="SECONDS",
    help="Stop the program or workload then. [default: 900 for a workload]",
)
@click.option(
    "--span",
    type=_SpanType(),
    metavar="SPAN",
    help="Record only a part of the run: annotations, signal, or seconds FROM,FOR.",
)
@click.option(
    "--inlined/--no-inlined",
    default=True,
    show_default=True,
    help="Also find locks by their instructions, not only pthread's.",
)
@click.option(
    "--hand-over",
    type=_Interval(),
    default="80,12000",
    show_default=True,
    metavar="LEAST,MOST",
    help="Instructions that could be executed while a lock goes from one thread to the next.",
)
@options.output_format("text", "json", "html", "parquet", "folded")
@options.output_file
def command(
    program: tuple[str, ...],
    window: int,
    sort: str,
    top: int,
    fields: int,
    target: str | None,
    workload: Path | None,
    by: str,
    timeout: float | None,
    span: RecordedSpan | None,
    inlined: bool,
    hand_over: tuple[float, float],
    format_: str,
    output: Path | None,
) -> int:
    """Runs PROGRAM under the lock recorder and says of each lock whether its critical sections touch disjoint data:
    which locks could be split, elided or replaced, and what they conflict on.

    The program runs some tens of times slower. Ctrl-C stops it and shows what was recorded until then, as `--timeout`
    does. Programs that it starts run without the recorder; processes that it forks are recorded apart. Locks are those
    of pthread (and of C++ and others built on it), those that Rust's standard library and spin locks inline, and those
    annotated with `commutant_locks.h` or the crate `lock-annotation`.

    With any other format than text what PROGRAM prints goes to standard error. `html` (a page with a picture of all
    locks) and `parquet` (a row per class of locks) are written to a file, locks.html or locks.parquet unless `-o` says
    otherwise. `folded` is the time held by lock and caller, for flame graphs.

    With `--target linux` a Linux guest boots, runs a workload, and the locks of its kernel are recorded: spin locks,
    reader-writer locks, mutexes and reader-writer semaphores. A workload is a shell script; comments at its start name
    the Debian packages (`# packages: gcc make`) and sources (`# sources: flac`, unpacked as /src/flac) that it needs.

    With `--span` only a part of the run is recorded: between COMMUTANT_LOCK_SPAN_BEGIN and COMMUTANT_LOCK_SPAN_END
    (`annotations`), between two signals SIGUSR2 to this process (`signal`), or FOR seconds from FROM seconds after the
    start on. Several spans count together, and the program runs to its end.

    Tables can be sorted by acquired, contended, avg_wait, wait_total, hold_total, independence, speedup.
    """
    from commutant.lock_view import record_program, study
    from commutant.lock_view.shown import check_sort_key, sorted_classes

    check_sort_key(sort)
    path = output or (Path(f"locks.{format_}") if format_ in ("html", "parquet") else None)
    if target is not None:
        if program:
            raise UsageError(f"expected a program or --target, got both: {program[0]} and {target}")
        if span is not None:
            raise UsageError(
                "--span is for programs; a workload begins and ends its own with `# recorded: between switches`"
            )
        results.refuse_existing(path)
        _locks_of_kernel(target, workload, window, timeout, (sort, top, fields, by, hand_over), format_, path)
        return 0
    if workload is not None:
        raise UsageError("--workload is run in a kernel's guest: expected --target linux with it")
    if not program:
        raise UsageError("expected a program after `--`, got nothing: commutant locks -- PROGRAM [ARGS]")
    results.refuse_existing(path)
    # A document stands alone on standard output: what the program prints there goes to standard error.
    messages = sys.__stderr__.fileno() if sys.__stderr__ is not None else subprocess.DEVNULL  # closed, as with `2>&-`
    stream = None if format_ == "text" and path is None else messages
    run = record_program(
        program, window_sections=window, inlined=inlined, timeout_seconds=timeout, output=stream, span=span
    )
    studied = study(run.records[0], by=by, hand_overs=hand_over)
    classes = sorted_classes(studied, sort)[:top]
    _show(studied, classes, fields, format_, path, Path(program[0]).name)
    if children := run.records[1:]:
        acquires = sum(lock.acquires for child in children for lock in child.locks)
        count = "a child was" if len(children) == 1 else f"{len(children)} children were"
        console.message(f"{program[0]} forked: {count} recorded and not shown, with {plural(acquires, 'acquire')}")
    if run.left_behind:
        count = "a process" if run.left_behind == 1 else f"{run.left_behind} processes"
        console.message(f"{program[0]} left {count} running, stopped now: a daemon is recorded in the foreground only")
    if run.interrupted:
        console.message(f"{program[0]} was interrupted; what it did until then is shown")
        return 130
    if run.timed_out:
        console.message(f"{program[0]} was stopped after {timeout:g} s")
    elif run.exit_code:
        console.message(f"{program[0]} ended with {run.ending}")
    return 0


def _locks_of_kernel(
    target: str,
    workload: Path | None,
    window: int,
    timeout: float | None,
    shown: tuple[str, int, int, str, tuple[float, float]],
    format_: str,
    path: Path | None,
) -> None:
    from commutant.lock_view import study
    from commutant.lock_view.recording import (
        DEFAULT_TIMEOUT_SECONDS,
        DEFAULT_WORKLOAD,
        KernelTarget,
        read_workload,
        record_kernel,
    )
    from commutant.lock_view.shown import sorted_classes
    from commutant.lock_view.study import KernelAddressNames

    sort, top, fields, by, hand_over = shown
    chosen = KernelTarget.parse(target)
    script = read_workload(workload or DEFAULT_WORKLOAD)
    seconds = timeout or DEFAULT_TIMEOUT_SECONDS
    run = record_kernel(
        script,
        chosen,
        window_sections=window,
        timeout_seconds=seconds,
        on_progress=lambda progress: console.message(progress.text),
    )
    studied = study(run.record, KernelAddressNames(run.kallsyms), by=by, hand_overs=hand_over)
    classes = sorted_classes(studied, sort)[:top]
    _show(studied, classes, fields, format_, path, f"Linux {run.release}: {run.workload}", run)
    if run.timed_out:
        console.message(f"{run.workload} was stopped after {seconds:g} s")


def _show(
    studied: LockStudy,
    classes: Sequence[LockClass],
    fields: int,
    format_: str,
    path: Path | None,
    title: str,
    kernel: KernelRun | None = None,
) -> None:
    from commutant.lock_view.shown import export, locks_document, page, print_kernel_study, print_study

    if format_ == "parquet":
        assert path is not None
        export.write_parquet(studied, classes, path)
        console.write_path(path)
    elif format_ == "html":
        results.put([page.render_page(studied, classes, title)], path)
    elif format_ == "folded":
        results.put(export.folded_stacks(classes), path)
    elif format_ == "json":
        results.put([text(locks_document(studied, classes, kernel))], path)
    elif kernel:
        results.draw(lambda terminal: print_kernel_study(kernel, studied, classes, terminal, fields=fields), path)
    else:
        results.draw(lambda terminal: print_study(studied, classes, terminal, fields=fields), path)
