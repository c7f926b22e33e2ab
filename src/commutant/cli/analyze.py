"""`commutant analyze`: when do the calls of an interface commute?"""

from __future__ import annotations

import click

from commutant.cli import console, options


@click.command(
    "analyze",
    short_help="When do the calls of an interface commute?",
    epilog=options.examples(
        "commutant analyze figure4",
        "commutant analyze figure4 --calls rename,rename --format smt2",
        "commutant analyze names --calls open,unlink --format json",
        "commutant analyze my_model.py:Counter --size 3",
    ),
)
@click.argument("interface", type=options.InterfaceArgument())
@options.calls
@options.size
@options.jobs
@options.no_cache
@options.executor
@options.output_format("text", "json", "smt2")
def command(
    interface: str,
    calls: tuple[str, ...] | None,
    size: int,
    jobs: int,
    no_cache: bool,
    executor: str,
    format_: str,
) -> int:
    """Prints the exact conditions under which the calls of INTERFACE commute.

    INTERFACE is a shipped name (figure4, names), FILE.py[:Class], or module:Class. Every order of each set of calls is
    explored symbolically. `--format smt2` prints conditions for a solver of your own.
    """
    from commutant.analyzer import analyze
    from commutant.lang import load_interface

    model = load_interface(interface)
    with console.ProgressBar("analysing") as bar:
        analysis = analyze(model, calls, size, jobs=jobs, progress=bar)
    if format_ == "json":
        console.write_json(analysis.to_json())
        return 0
    for index, one in enumerate(analysis.sets):
        if format_ == "smt2":
            if index:
                console.write("(reset)\n")
            console.write(one.to_smt2().rstrip() + "\n")
            continue
        if index:
            console.write("\n")
        console.write(f"{', '.join(one.calls)}: {_counts(one.paths, one.commutative_paths, one.unknown)}\n")
        for condition in one.conditions:
            console.write(f"  - {condition}\n")
    return 0


def _counts(paths: int, commutative: int, unknown: int) -> str:
    text = f"{paths} path{'' if paths == 1 else 's'}, {commutative} of them commute{'s' if commutative == 1 else ''}"
    return f"{text}, {unknown} unknown" if unknown else text
