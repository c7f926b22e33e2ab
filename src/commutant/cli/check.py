"""`commutant check`: run the tests of an interface or corpus on a target and show which of them share memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commutant.campaign import DEFAULT_REPEATS
from commutant.cli import console, gate, options, results
from commutant.support import UsageError, plural

if TYPE_CHECKING:
    from commutant.campaign import Progress
    from commutant.corpus import Corpus
    from commutant.runs import Check, Run, RunInfo


_OF_THE_RUN = ("what", "target", "calls", "size", "level", "repeats", "seed")
"""Parameters that a run that is resumed or repeated has already."""


@click.command(
    "check",
    cls=options.ModelVerb,
    short_help="Run tests on a target and find what they share.",
    epilog=options.examples(
        "commutant check names",
        "commutant check names --target linux:fs=ramfs --calls open,link --repeats 1",
        "commutant check tests/open-link.jsonl.gz --target linux -o runs/today --fail-on findings",
        "commutant check names --target linux --fail-on new --baseline runs/names-linux-1",
        "commutant check --resume runs/names-linux-1",
        "commutant check --repeat runs/names-linux-1/run.json -o runs/again",
        "commutant check names --format json | jq .conflict_free",
    ),
)
@click.argument("what", metavar="INTERFACE|CORPUS", type=options.InterfaceArgument(), required=False)
@click.option(
    "--target",
    type=options.TargetArgument(),
    default="linux",
    show_default=True,
    metavar="NAME[:KEY=VALUE,...]",
    help="The implementation to run on.",
)
@options.calls
@options.size
@options.level
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
@click.option(
    "--fail-on",
    type=click.Choice(["findings", "new"]),
    help="Exit with 1 if there are findings that stand; `new`: only if a baseline never saw them.",
)
@options.baseline
@options.suppress
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="Go on with an interrupted run, as it was started.",
)
@click.option(
    "--repeat",
    type=click.Path(path_type=Path),
    metavar="RUN.JSON",
    help="Do again what a run did, from its run.json: the same tests, target, order and number of windows.",
)
@options.output("New run directory.  [default: runs/<interface>-<target>-<n>]")
@options.output_format("text", "json")
@click.pass_context
def command(
    ctx: click.Context,
    what: str | None,
    target: str,
    calls: tuple[str, ...] | None,
    size: int,
    level: str,
    repeats: int,
    jobs: int,
    seed: int,
    no_cache: bool,
    executor: str | None,
    fail_on: str | None,
    baseline: tuple[Path, ...],
    suppress: Path | None,
    resume: Path | None,
    repeat: Path | None,
    output: Path | None,
    format_: str,
) -> int:
    """Runs the tests of INTERFACE or CORPUS on a target and judges which of them share memory although they commute.

    CORPUS is a file of `commutant generate`, or a directory that holds one. Prints the heat map of sets of calls and
    the most shared variables, and leaves a run directory with the findings and an HTML page.

    Exit code 1 if `--fail-on` says so, 3 if the run failed or a result was wrong.
    """
    from commutant.corpus import read_corpus, select_tests
    from commutant.runs import Check, Generated, load_run, load_run_info
    from commutant.targets import load_target

    if fail_on == "new" and not baseline:
        raise click.UsageError("--fail-on new needs --baseline RUN, the run that says what is known", ctx)
    known = [load_run(path) for path in baseline]
    suppressions = results.load_suppressions(suppress)
    if resume is not None:
        _refuse(ctx, "--resume takes everything from the run", *_OF_THE_RUN, "no_cache", "output", "repeat")
        check = Check.resume(resume, jobs)
    elif repeat is not None:
        _refuse(ctx, "--repeat takes everything from the run", *_OF_THE_RUN)
        _refuse_existing(output)
        info = load_run_info(repeat)
        corpus = _corpus_of_run(info, repeat, jobs=jobs, executor=executor, no_cache=no_cache)
        if ctx.get_parameter_source("jobs") is not click.core.ParameterSource.COMMANDLINE:
            jobs = info.jobs
        check = Check.repeat(info, corpus, jobs=jobs, directory=output)
    else:
        if what is None:
            raise click.UsageError("expected an interface or a corpus, --resume RUN or --repeat RUN.JSON", ctx)
        _refuse_existing(output)
        implementation = load_target(target)
        path, generated = _corpus_path(what), None
        if path is not None:
            _refuse(ctx, f"{what} is a corpus", "size", "level", "no_cache")
            corpus = read_corpus(path)
            if calls is not None:
                corpus = replace(corpus, tests=select_tests(corpus.tests, calls))
        else:
            from commutant.cli.generate import make_corpus

            corpus = make_corpus(what, calls, size, level, jobs=jobs, executor=executor, no_cache=no_cache)
            generated = Generated(what, calls, size)
        check = Check.new(
            corpus, implementation, jobs=jobs, repeats=repeats, seed=seed, directory=output, generated=generated
        )
    for earlier in known:
        gate.refuse_without_common_test(earlier, check)
    run = _run(check)
    if format_ == "json":
        console.write_json(run.summary.to_json())
        console.message(f"run: {run.path}")
    else:
        _show(run)
    if run.summary.counts.wrong_result:
        console.error(
            f"wrong results in {plural(run.summary.counts.wrong_result, 'test')}: model and target disagree; "
            f"`commutant report {run.path}` lists them"
        )
        return 3
    if fail_on is None:
        return 0
    failed = gate.failures(run, known, suppressions)
    results.say_unused(suppress, suppressions)
    return 1 if failed else 0


def _refuse_existing(output: Path | None) -> None:
    """Raises UsageError if there is something where a new run directory is to be."""
    if output is not None and output.exists():
        raise UsageError(f"{output} exists already; -o takes the name of a new directory")


def _corpus_of_run(info: RunInfo, path: Path, *, jobs: int, executor: str | None, no_cache: bool) -> Corpus:
    """The tests of a run: the corpus beside its run.json if that is the run's, else made anew."""
    from commutant.cli.generate import make_corpus
    from commutant.corpus import read_corpus
    from commutant.runs import CORPUS_FILE, hash_of_tests

    beside = path.with_name(CORPUS_FILE)
    corpus = read_corpus(beside) if beside.is_file() else None
    made = info.generated
    if corpus is not None and (made is None or hash_of_tests(corpus) == info.tests_sha256):
        return corpus
    if made is None:
        raise UsageError(f"the tests of {path} came out of a file; expected it as {CORPUS_FILE} beside run.json")
    return make_corpus(
        made.interface, made.calls, made.size, info.level, jobs=jobs, executor=executor, no_cache=no_cache
    )


def _refuse(ctx: click.Context, reason: str, *names: str) -> None:
    for name in names:
        if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            shown = "an interface or corpus" if name == "what" else f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{reason}: {shown} cannot be given", ctx)


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


def _run(check: Check) -> Run:
    with check:
        with console.ProgressBar(f"starting {check.target.argument}") as bar:
            check.start(bar.say)
        if limits := check.target.describe().get("limits"):
            console.message(f"note: {limits}")
        with console.ProgressBar("checking") as bar:

            def show(state: Progress, rate: float) -> None:
                bar(state.judged, state.tests, f"{rate:,.0f} windows/s")

            return check.run(show)


def _show(run: Run) -> None:
    from commutant import report
    from commutant.runs import REPORT_FILE, report_of

    report.print_run(report_of(run), console.results())
    console.write("\n")
    console.write_path(run.path / REPORT_FILE)
