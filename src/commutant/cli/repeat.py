"""`commutant repeat RUN.JSON`: do again what a run did, from what it says of itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from commutant.cli import options
from commutant.cli.campaign import Gate, carry_out, gated, refuse_existing
from commutant.support import UsageError

if TYPE_CHECKING:
    from commutant.corpus import Corpus
    from commutant.runs import RunInfo


@click.command(
    "repeat",
    short_help="Repeat a run from its run.json.",
    epilog=options.examples(
        "commutant repeat runs/names-linux-1/run.json -o runs/again",
        "commutant repeat run.json --fail-on new --baseline runs/names-linux-1",
    ),
)
@click.argument("run_json", metavar="RUN.JSON", type=click.Path(path_type=Path))
@options.jobs
@options.no_cache
@options.executor
@gated
@options.output("New run directory.  [default: runs/<interface>-<target>-<n>]")
@options.output_format("text", "json")
@click.pass_context
def command(
    ctx: click.Context,
    run_json: Path,
    jobs: int,
    no_cache: bool,
    executor: str | None,
    gate: Gate,
    output: Path | None,
    format_: str,
) -> int:
    """Makes the tests of a run again and runs them on its target, in its order and with its number of windows.

    RUN.JSON is the file `run.json` of a run; nothing else is needed. It is an error if the tests or the target have
    changed since. Without --jobs, as many machines run as in that run.

    Exit code 1 if `--fail-on` says so, 3 if the run failed or a result was wrong.
    """
    from commutant.runs import Check, load_run_info

    refuse_existing(output)
    info = load_run_info(run_json)
    corpus = _corpus_of_run(info, run_json, jobs=jobs, executor=executor, no_cache=no_cache)
    if ctx.get_parameter_source("jobs") is not click.core.ParameterSource.COMMANDLINE:
        jobs = info.jobs
    return carry_out(Check.repeat(info, corpus, jobs=jobs, directory=output), gate, format_)


def _corpus_of_run(info: RunInfo, path: Path, *, jobs: int, executor: str | None, no_cache: bool) -> Corpus:
    """The tests of a run: the corpus next to its run.json if that is the run's, else made again."""
    from commutant.cli.generate import make_corpus
    from commutant.corpus import read_corpus
    from commutant.runs import CORPUS_FILE, hash_of_tests

    beside = path.with_name(CORPUS_FILE)
    corpus = read_corpus(beside) if beside.is_file() else None
    made = info.generated
    if corpus is not None and (made is None or hash_of_tests(corpus) == info.tests_sha256):
        return corpus
    if made is None:
        expected = f"expected that file as {CORPUS_FILE} beside run.json"
        raise UsageError(f"the run of {path} took its tests from a file; {expected}")
    info.require_origin(path)
    return make_corpus(
        made.interface,
        made.calls,
        made.size,
        info.level,
        sample=made.sample,
        jobs=jobs,
        executor=executor,
        no_cache=no_cache,
    )
