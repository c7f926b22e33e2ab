"""`commutant analyze`: when do the calls of an interface commute?"""

from __future__ import annotations

from typing import Literal

import click

from commutant.cli import console, options
from commutant.support import Shard

_DETAILS: dict[str, Literal["conditions", "data", "smt2"]] = {"text": "conditions", "json": "data", "smt2": "smt2"}
"""What is worked out for each format."""


@click.command(
    "analyze",
    cls=options.ModelVerb,
    short_help="When do the calls of an interface commute?",
    epilog=options.examples(
        "commutant analyze figure4",
        "commutant analyze figure4 --calls rename,rename --format smt2",
        "commutant analyze names --calls open,unlink --format json",
        "commutant analyze names --calls open,unlink --self",
        "commutant analyze names --calls open,unlink --why",
        "commutant analyze my_model.py:Counter --size 3",
    ),
)
@click.argument("interface", type=options.InterfaceArgument())
@options.calls
@options.with_self
@options.size
@options.shard
@options.jobs
@options.no_cache
@options.executor
@click.option("--examples", is_flag=True, help="Also print cases that do not commute, and an example of each.")
@click.option("--why", is_flag=True, help="As --examples, with two orders that a caller can tell apart.")
@options.output_format("text", "json", "smt2")
def command(
    interface: str,
    calls: tuple[str, ...] | None,
    with_self: bool,
    size: int,
    shard: Shard | None,
    jobs: int,
    no_cache: bool,
    executor: str | None,
    examples: bool,
    why: bool,
    format_: str,
) -> int:
    """Prints the exact conditions under which the calls of INTERFACE commute.

    \b
    INTERFACE is a shipped name (allocator, counter, events, events-any, figure4, interner,
    kv, lists, lists-ends, map, map-len, map-len-relaxed, map-relaxed, metrics, names,
    ordered-map, pool, posix, posix18, posix-close-to-open, posix-commutative, processes,
    put-max, queue, queue-unordered, refcount, refcount-exact, release, release-later,
    sockets, sockets-unordered, stack), FILE.py[:Class], or module:Class.

    Every order of each set of calls is explored symbolically. `--format smt2` prints conditions for a solver of your
    own. Of sets of more than two calls, conditions are printed if --calls names one set. What shards have analysed on
    machines with one cache folder, a command without --shard finds there.
    """
    from commutant.analyzer import analyze, conditions_fit_on_a_screen, executor_named
    from commutant.cli.cases import lines_of
    from commutant.lang import load_interface
    from commutant.support import ResultCache
    from commutant.testgen import untestable_beforehand

    model = load_interface(interface)
    readable = conditions_fit_on_a_screen(calls, size)
    with console.ProgressBar("analysing") as bar:
        analysis = analyze(
            model,
            calls,
            size,
            with_self=with_self,
            detail=_DETAILS[format_] if readable or format_ == "smt2" else "counts",
            jobs=jobs,
            on_progress=bar,
            make_executor=executor_named(executor) if executor else None,
            cache=None if no_cache else ResultCache(console.message),
            shard=shard,
        )
    for warning in untestable_beforehand(model):
        console.message(warning)
    if format_ == "json":
        console.write_document(analysis.document())
        return 0
    for index, one in enumerate(analysis.sets):
        if format_ == "smt2":
            if index:
                console.write("(reset)\n")
            console.write(one.to_smt2().rstrip() + "\n")
            continue
        if index and readable:
            console.write("\n")
        console.write(f"{', '.join(one.calls)}: {one.counts_text}\n")
        if not readable:
            continue
        lines = lines_of(one, why=why) if examples or why else (f"  - {condition}" for condition in one.conditions)
        for line in lines:
            console.write(f"{line}\n")
    if not readable:
        example = ",".join(analysis.sets[0].calls)
        console.message(f"for the conditions of a set of {size}, name its calls: --calls {example}")
    return 0
