"""`commutant compare`: what does a change of an interface gain?"""

from __future__ import annotations

from pathlib import Path

import click

from commutant.cli import console, options, results


def _declared(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for value in values:
        new, equals, old = value.partition("=")
        if not equals or not new or not old:
            raise click.BadParameter(f"expected NEW=OLD, calls of B and A that correspond, got {value!r}")
        if found.get(new, old) != old:
            raise click.BadParameter(f"{new} stands for one call, got {new}={found[new]} and {value}")
        found[new] = old
    return found


@click.command(
    "compare",
    cls=options.ModelVerb,
    short_help="What does one interface gain over another?",
    epilog=options.examples(
        "commutant compare posix18 posix-commutative",
        "commutant compare posix18 posix-commutative --calls open,open",
        "commutant compare before.py after.py --per-change",
        "commutant compare before.py after.py --call insert=put --format json",
    ),
)
@click.argument("first", metavar="A", type=options.InterfaceArgument())
@click.argument("second", metavar="B", type=options.InterfaceArgument())
@options.calls
@options.with_self
@options.size
@click.option(
    "--call",
    "declared",
    multiple=True,
    metavar="NEW=OLD",
    callback=_declared,
    help="A call of B that stands for a call of A of another name; any number of times.",
)
@click.option("--per-change", is_flag=True, help="Also print what each changed call gains and loses.")
@options.jobs
@options.output_format("text", "json", "html")
@options.output_file
def command(
    first: str,
    second: str,
    calls: tuple[str, ...] | None,
    with_self: bool,
    size: int,
    declared: dict[str, str],
    per_change: bool,
    jobs: int,
    format_: str,
    output: Path | None,
) -> int:
    """Says when calls of B commute that do not commute in A, and the reverse.

    Both interfaces are explored together over one unknown state. Attributes, calls and parameters correspond by name;
    a class of B declares other calls by `stands_for`, and --call does for this comparison. Each situation gained or
    lost comes with a smallest example, which both models confirm.
    """
    from commutant.analyzer import analyze
    from commutant.documents import text
    from commutant.gains import compare_interfaces, comparison_lines, comparison_page
    from commutant.lang import load_interface
    from commutant.support import ResultCache

    results.refuse_existing(output)
    if format_ == "html" and (output is None or size != 2):
        raise click.UsageError("--format html draws pairs, and needs -o FILE, the page to write")
    one = load_interface(first)
    other = load_interface(second, beside=one)
    with console.ProgressBar("comparing") as bar:
        comparison = compare_interfaces(
            one, other, calls, size, with_self=with_self, declared=declared, jobs=jobs, on_progress=bar
        )
    document = comparison.document
    if format_ == "json":
        results.put([text(document)], output)
    elif format_ == "html":
        same = {one.calls for one in document.sets if one.same}
        analysis = analyze(one, None, 2, jobs=jobs, cache=ResultCache(console.message))
        counts = {
            found.calls: (found.paths - found.commutative_paths, found.paths)
            for found in analysis.sets
            if found.calls in same
        }
        results.put([comparison_page(document, counts)], output)
    else:
        results.put([f"{line}\n" for line in comparison_lines(document, per_change=per_change)], output)
    return 0
