"""`commutant conform`: run random sequences of calls on model and target, and show a shortest one that differs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from commutant.cli import console, options
from commutant.support import CommutantError, UsageError, plural

if TYPE_CHECKING:
    from commutant.conformance import Conform, Conformance

_SEQUENCES = 2000
_LENGTH = 20
_MAX_SEQUENCES = 10**9
_MAX_LENGTH = 200


@click.command(
    "conform",
    cls=options.ModelVerb,
    short_help="Run random sequences of calls on model and target.",
    epilog=options.examples(
        "commutant conform names",
        "commutant conform posix18 --target linux:fs=ramfs --sequences 100000",
        "commutant conform posix18 --calls open,unlink,stat --length 8 --differences 5",
        "commutant conform names --target scalefs --seed 1234 --sequences 1 -o found",
        "commutant conform names --format json | jq .differences",
    ),
)
@click.argument("interface", type=options.InterfaceArgument())
@click.option(
    "--target",
    type=options.TargetArgument(),
    default="linux",
    show_default=True,
    metavar="NAME[:KEY=VALUE,...]",
    help="The implementation to run on: linux, scalefs, plain, olf, library or gallery.",
)
@click.option(
    "--sequences",
    type=click.IntRange(1, _MAX_SEQUENCES),
    default=_SEQUENCES,
    show_default=True,
    metavar="N",
    help="How many sequences.",
)
@click.option(
    "--length",
    type=click.IntRange(1, _MAX_LENGTH),
    default=_LENGTH,
    show_default=True,
    metavar="N",
    help="The most calls of a sequence.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**62),
    default=0,
    show_default=True,
    metavar="N",
    help="The number of the first sequence; sequence N is always the same.",
)
@click.option(
    "--calls",
    type=options.CallsArgument(),
    metavar="A,B,...",
    help="Only these calls.",
)
@click.option(
    "--differences",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    metavar="N",
    help="Stop after this many distinct differences.",
)
@options.jobs
@options.output("New directory for what is found.  [default: runs/<interface>-<target>-conform-<n>, if anything is]")
@options.output_format("text", "json")
def command(
    interface: str,
    target: str,
    sequences: int,
    length: int,
    seed: int,
    calls: tuple[str, ...] | None,
    differences: int,
    jobs: int,
    output: Path | None,
    format_: str,
) -> int:
    """Draws random sequences of calls from INTERFACE, runs them on model and target, and compares all that they return
    and the state that they leave.

    A sequence in which the two differ is shrunk to a shortest one and printed: the calls, what was expected, what came,
    and the command that runs it again. An interrupted run says how to go on.

    Exit code 3 if there is a difference.
    """
    from commutant.conformance import Conform
    from commutant.lang import load_interface
    from commutant.targets import load_target

    if output is not None and output.exists():
        raise UsageError(f"{output} exists already; -o takes the name of a new directory")
    conform = Conform(
        load_interface(interface),
        load_target(target),
        argument=interface,
        calls=calls,
        sequences=sequences,
        length=length,
        seed=seed,
        max_differences=differences,
        jobs=jobs,
    )
    found = _run(conform)
    if format_ == "json":
        console.write_document(found.document())
    else:
        console.write(found.text() + "\n")
    if found.differences or output is not None:
        _keep(conform, found, output)
    return _exit_code(conform, found)


def _run(conform: Conform) -> Conformance:
    with conform:
        with console.ProgressBar(f"starting {conform.target.argument}") as bar:
            conform.start(bar)
        with console.ProgressBar("running sequences") as bar:
            return conform.run(bar)


def _keep(conform: Conform, found: Conformance, output: Path | None) -> None:
    from commutant.conformance import keep
    from commutant.runs import new_directory, safe_folder_name

    name = f"{safe_folder_name(found.interface)}-{safe_folder_name(found.target)}-conform"
    path = keep(found, conform.interface, new_directory(output, name))
    console.message(f"kept in {path}")


def _exit_code(conform: Conform, found: Conformance) -> int:
    if found.ended is None:
        return 3 if found.differences else 0
    what = "interrupted" if isinstance(found.ended, KeyboardInterrupt) else str(found.ended)
    requested = plural(found.sequences_requested, "sequence is", "sequences are")
    console.error(
        f"{what}; {found.tally.sequences:,} of {requested} judged: `{conform.command_to_go_on(found)}` runs the rest"
    )
    if isinstance(found.ended, KeyboardInterrupt):
        return 130
    return found.ended.exit_code if isinstance(found.ended, CommutantError) else 3
