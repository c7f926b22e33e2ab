"""`commutant generate`: one test for each class of states and arguments in which the calls commute."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commutant.cli import console, options
from commutant.support import Shard, UsageError, plural

if TYPE_CHECKING:
    from commutant.corpus import Corpus, Level
    from commutant.testgen import GenerateDocument


@click.command(
    "generate",
    cls=options.ModelVerb,
    short_help="Make test cases and keep them as a corpus.",
    epilog=options.examples(
        "commutant generate names",
        "commutant generate names --calls open,link --level path -o tests/open-link.jsonl.gz",
        "commutant generate names --size 3 --sample 20",
        "commutant generate names --format json | jq '.sets[] | {calls, tests}'",
    ),
)
@click.argument("interface", type=options.InterfaceArgument())
@options.calls
@options.with_self
@options.size
@click.option(
    "--sample",
    type=click.IntRange(1),
    default=1,
    metavar="N",
    help="Only every Nth set of calls; for sets of three and more.",
)
@options.level
@options.shard
@options.jobs
@options.no_cache
@options.executor
@options.output("New directory for corpus.jsonl.gz, or a new FILE.jsonl.gz.  [default: runs/<interface>-corpus-<n>]")
@options.output_format("text", "json")
def command(
    interface: str,
    calls: tuple[str, ...] | None,
    with_self: bool,
    size: int,
    sample: int,
    level: Level,
    shard: Shard | None,
    jobs: int,
    no_cache: bool,
    executor: str | None,
    output: Path | None,
    format_: str,
) -> int:
    """Analyses INTERFACE and writes a corpus: test cases as data, which `commutant check` runs on any target."""
    from commutant.corpus import first_test, tests_per_set, write_corpus
    from commutant.runs import CORPUS_FILE, new_directory, safe_folder_name

    if output is not None and output.exists():
        raise UsageError(f"{output} exists already; -o takes a new directory or a new file")
    started = time.monotonic()
    calls = options.with_self_meant(calls, with_self)
    corpus = make_corpus(
        interface,
        calls,
        size,
        level,
        sample=sample,
        shard=shard,
        jobs=jobs,
        executor=executor,
        no_cache=no_cache,
    )
    if output is not None and output.name.endswith(".jsonl.gz"):
        path = output
    else:
        path = new_directory(output, f"{safe_folder_name(corpus.interface)}-corpus") / CORPUS_FILE
    write_corpus(corpus, path)
    tests = tests_per_set(corpus.tests)
    if format_ == "json":
        console.write_document(_document(corpus, tests, time.monotonic() - started, path))
        return 0
    for calls_of_set, count in tests.items():
        console.write(f"{', '.join(calls_of_set):40} {count:6} test{'' if count == 1 else 's'}\n")
    for name, untested in corpus.untested.items():
        for one in untested:
            console.message(f"{name}: {one}")
    if corpus.has_searched:
        console.message(f"{corpus.interface} has no setup(): set-ups were found by a search over its calls")
    if corpus.level == "cover":
        left_out = sum(corpus.left_out.values())
        console.message(f"level cover leaves out at most {plural(left_out, 'test')} of level conflict")
    made = f"{plural(len(corpus.tests), 'test')} of {corpus.interface}, level {corpus.level}"
    console.write(f"{made}: {console.one_line(str(path))}\n")
    if (test := first_test(corpus.tests)) is not None:
        console.message(f"to read one of them: commutant show {test.id} --from {console.one_line(str(path))}")
    return 0


def make_corpus(
    interface: str,
    calls: tuple[str, ...] | None,
    size: int,
    level: Level,
    *,
    sample: int = 1,
    shard: Shard | None = None,
    jobs: int,
    executor: str | None = None,
    no_cache: bool = False,
) -> Corpus:
    """The corpus of an interface argument, with a progress bar; from the cache, unless `no_cache`."""
    from commutant.analyzer import executor_named
    from commutant.lang import load_interface
    from commutant.support import ResultCache
    from commutant.testgen import generate

    model = load_interface(interface)
    with console.ProgressBar("generating tests") as bar:
        return generate(
            model,
            calls,
            size,
            sample=sample,
            level=level,
            jobs=jobs,
            on_progress=bar,
            make_executor=executor_named(executor) if executor else None,
            cache=None if no_cache else ResultCache(console.message),
            shard=shard,
        )


def _document(corpus: Corpus, tests: Counter[tuple[str, ...]], seconds: float, path: Path) -> GenerateDocument:
    """The analysis with the number of tests per set."""
    from commutant.testgen import GenerateDocument, GeneratedSetEntry

    assert corpus.analysis is not None
    return GenerateDocument(
        interface=corpus.interface,
        size=corpus.analysis.size,
        seconds=round(seconds, 3),
        level=corpus.level,
        corpus=str(path),
        tests=len(corpus.tests),
        left_out=sum(corpus.left_out.values()),
        without_setup=corpus.without_setup,
        untested={name: tuple(of_set) for name, of_set in corpus.untested.items()},
        sets=tuple(
            GeneratedSetEntry(
                one.calls,
                one.paths,
                one.commutative_paths,
                one.unknown,
                tests.get(one.calls, 0),
                corpus.left_out.get(one.calls, 0),
            )
            for one in corpus.analysis.sets
        ),
    )
