"""`commutant check`: run the tests of an interface or corpus on a target and show which of them share memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from commutant.campaign import DEFAULT_REPEATS
from commutant.cli import options
from commutant.cli.campaign import Gate, carry_out, gated, refuse_existing
from commutant.cli.generate import make_corpus
from commutant.support import Shard, UsageError

if TYPE_CHECKING:
    from commutant.corpus import Corpus, Level


@click.command(
    "check",
    cls=options.ModelVerb,
    short_help="Run tests on a target and find what they share.",
    epilog=options.examples(
        "commutant check names",
        "commutant check names --target linux:fs=ramfs --calls open,link --repeats 1",
        "commutant check tests/open-link.jsonl.gz --target linux -o runs/today --fail-on findings",
        "commutant check names --target linux --fail-on new --baseline runs/names-linux-1",
        "commutant check names --size 3 --sample 20 --target scalefs",
        "commutant check names --format json | jq .conflict_free",
        "commutant check --of runs/base --sharing 'cred.*' --sample 20 --target linux:kernel=vmlinux",
    ),
)
@click.argument("what", metavar="[INTERFACE|CORPUS]", type=options.InterfaceArgument(), required=False)
@click.option(
    "--of",
    "of_run",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="RUN",
    help="Instead of all tests, those of this run that shared what --sharing names.",
)
@click.option("--sharing", metavar="PATTERN", help="With --of: variables such as 'cred.*'.")
@click.option(
    "--sample",
    type=click.IntRange(1),
    metavar="N",
    help="Only every Nth set of calls. With --of: also every Nth of the other tests.",
)
@click.option(
    "--target",
    type=options.TargetArgument(),
    default="linux",
    show_default=True,
    metavar="NAME[:KEY=VALUE,...]",
    help="The implementation to run on: linux, scalefs, plain, olf, library or gallery.",
)
@options.calls
@options.with_self
@options.size
@options.level
@options.shard
@click.option(
    "--repeats",
    type=click.IntRange(1, 99),
    default=DEFAULT_REPEATS,
    show_default=True,
    help="Windows per order for a test that shared memory; with 1, one window decides.",
)
@options.jobs
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="Order of the tests.")
@options.no_cache
@options.executor
@gated
@options.output("New run directory.  [default: runs/<interface>-<target>-<n>]")
@options.output_format("text", "json")
@click.pass_context
def command(
    ctx: click.Context,
    what: str | None,
    of_run: Path | None,
    sharing: str | None,
    sample: int | None,
    target: str,
    calls: tuple[str, ...] | None,
    with_self: bool,
    size: int,
    level: Level,
    shard: Shard | None,
    repeats: int,
    jobs: int,
    seed: int,
    no_cache: bool,
    executor: str | None,
    gate: Gate,
    output: Path | None,
    format_: str,
) -> int:
    """Runs the tests of INTERFACE or CORPUS on a target and judges which of them share memory although they commute.

    CORPUS is a file of `commutant generate`, or a directory that holds one. With `--of RUN --sharing PATTERN` the tests
    are those of an earlier run that a change may concern, so that it is judged in seconds. Prints the heat map of sets
    of calls and the most shared variables, and leaves a run directory with the findings and an HTML page.

    Exit code 1 if `--fail-on` says so, 3 if the run failed or a result was wrong.
    """
    from commutant.corpus import read_corpus
    from commutant.runs import Check, Generated, corpus_of_sharing, load_run
    from commutant.targets import load_target, on_executor

    calls = options.with_self_meant(calls, with_self)
    refuse_existing(output)
    implementation = on_executor(load_target(target), executor)
    if (what is None) == (of_run is None):
        raise click.UsageError("expected an interface or a corpus, or --of RUN instead", ctx)
    path, generated = None if what is None else _corpus_path(what), None
    if of_run is None and sharing is not None:
        raise click.UsageError("--sharing goes with --of RUN", ctx)
    if what is None:
        assert of_run is not None
        if sharing is None:
            raise click.UsageError("--of RUN needs --sharing PATTERN, such as 'cred.*'", ctx)
        _refuse(ctx, f"the tests are those of {of_run}", "size", "level", "no_cache")
        corpus = _part_of(corpus_of_sharing(load_run(of_run), sharing, sample), calls, shard)
    elif path is not None:
        _refuse(ctx, f"{what} is a corpus", "size", "sample", "level", "no_cache")
        corpus = _part_of(read_corpus(path), calls, shard)
    else:
        corpus = make_corpus(
            what,
            calls,
            size,
            level,
            sample=sample or 1,
            shard=shard,
            jobs=jobs,
            executor=executor,
            no_cache=no_cache,
        )
        # The tests of a shard are repeated from its corpus.
        generated = Generated(what, calls, size, sample or 1) if shard is None else None
    check = Check.new(
        corpus, implementation, jobs=jobs, repeats=repeats, seed=seed, directory=output, generated=generated
    )
    return carry_out(check, gate, format_)


def _part_of(corpus: Corpus, calls: tuple[str, ...] | None, shard: Shard | None) -> Corpus:
    """The tests of a corpus that were asked for."""
    from commutant.corpus import select_tests, shard_of_corpus

    chosen = corpus if calls is None else corpus.with_tests(select_tests(corpus.tests, calls))
    return chosen if shard is None else shard_of_corpus(chosen, shard)


def _refuse(ctx: click.Context, reason: str, *names: str) -> None:
    for name in names:
        if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{reason}: --{name.replace('_', '-')} cannot be given", ctx)


def _corpus_path(what: str) -> Path | None:
    """The corpus file that the argument means; None if it means an interface."""
    from commutant.corpus import looks_like_corpus
    from commutant.lang import SHIPPED
    from commutant.runs import CORPUS_FILE

    path = Path(what)
    if what in SHIPPED:
        return None
    if path.is_dir():
        if not (path / CORPUS_FILE).is_file():
            raise UsageError(f"{what} has no {CORPUS_FILE}; expected an interface, a corpus, or a directory with one")
        return path / CORPUS_FILE
    return path if looks_like_corpus(path) else None
