"""`commutant diff`: what became of tests, findings or locks from one run, corpus or recording to another."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from commutant.cli import console, options, results
from commutant.documents import text
from commutant.support import UsageError

_Kind = Literal["run", "corpus", "recording of locks"]
_NAMES: dict[_Kind, str] = {"run": "runs", "corpus": "corpora", "recording of locks": "recordings of locks"}
_ANY = "a run directory, a corpus or a recording of locks"
_TWO = "two runs, two corpora or two recordings of locks"


@click.command(
    "diff",
    short_help="Compare two runs, corpora or recordings of locks.",
    epilog=options.examples(
        "commutant diff runs/names-linux-1 runs/names-linux-fs-ramfs-1",
        "commutant diff runs/before runs/after --fail-on new --suppress commutant.toml",
        "commutant diff runs/before runs/after --format markdown >> $GITHUB_STEP_SUMMARY",
        "commutant diff runs/before runs/after --format html -o both.html",
        "commutant diff old/corpus.jsonl.gz new/corpus.jsonl.gz",
        "commutant diff locks-before.json locks-after.json",
    ),
)
@click.argument("base", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@options.output_format("text", "json", "markdown", "html")
@click.option("--fail-on", type=click.Choice(["new"]), help="Exit with 1 if NEW has a finding that BASE never saw.")
@options.suppress
@options.output_file
def command(
    base: Path, new: Path, format_: str, fail_on: str | None, suppress: Path | None, output: Path | None
) -> int:
    """Compares NEW with BASE: two runs, two corpora or two recordings of locks, never one of each.

    For runs: tests that became better or worse, findings that appeared, went and stayed, and for each set of calls
    that became worse the variables behind it. To compare two kernels, file systems or implementations, run one corpus
    on both. For corpora: tests that were added and removed.

    A recording is what `commutant locks --format json` writes. Of locks with the same name it says for which threads
    wait less or more, whose sections became disjoint, and what was gained; those that only one has are listed.
    """
    results.refuse_existing(output)
    if format_ == "html" and output is None:
        raise click.UsageError("--format html needs -o FILE, the page to write")
    kind, other = _kind(base), _kind(new)
    if kind != other:
        raise UsageError(f"{base} is a {kind} and {new} is a {other}: expected {_TWO}")
    if kind == "run":
        return _diff_runs(base, new, format_, fail_on, suppress, output)
    for flag, value in (("--fail-on", fail_on), ("--suppress", suppress), ("--format html", format_ == "html")):
        if value:
            raise click.UsageError(f"{flag} is for runs; these are two {_NAMES[kind]}")
    if kind == "corpus":
        _diff_corpora(base, new, format_, output)
    else:
        _diff_locks(base, new, format_, output)
    return 0


def _kind(path: Path) -> _Kind:
    """What a path means; raises UsageError if it can be nothing of all that. Corpora begin as packed files do."""
    from commutant.corpus import looks_like_corpus
    from commutant.lock_view.shown import read_locks
    from commutant.runs import CORPUS_FILE, RUN_FILE

    if path.is_dir():
        if (path / RUN_FILE).is_file():
            return "run"
        if not (path / CORPUS_FILE).is_file():
            raise UsageError(f"{path} has no {RUN_FILE} and no {CORPUS_FILE}; expected {_ANY}")
        return "corpus"
    if not path.exists():
        raise UsageError(f"there is no {path}; expected {_ANY}")
    if looks_like_corpus(path):
        return "corpus"
    read_locks(path)  # what is no recording is not called one
    return "recording of locks"


def _diff_runs(
    base: Path, new: Path, format_: str, fail_on: str | None, suppress: Path | None, output: Path | None
) -> int:
    from commutant.compare import (
        compare_runs,
        failing,
        print_run_comparison,
        run_comparison_document,
        run_comparison_markdown,
        side_of_run,
    )
    from commutant.runs import load_run, report_of

    suppressions = results.load_suppressions(suppress)
    runs = [load_run(path) for path in (base, new)]
    contents = [report_of(run) for run in runs]
    before, after = contents
    results.say_if_named_otherwise(*runs)
    for run in runs:
        results.say_if_interrupted(run)
    if runs[0].info.model != runs[1].info.model:
        console.message("the corpora come from two versions of the model; only tests that are in both are compared")
    comparison = compare_runs(before, after)
    suppressions.apply(comparison.appeared)
    suppressions.apply(comparison.stayed)
    results.say_unused(suppress, suppressions)
    old, now = (side_of_run(str(run.path), content, run.complete) for run, content in zip(runs, contents, strict=True))
    if format_ == "json":
        document = run_comparison_document(comparison, old, now, suppressions)
        results.put([text(document)], output)
    elif format_ == "markdown":
        results.put([run_comparison_markdown(comparison, old, now)], output)
    elif format_ == "html":
        from commutant.report import write_html

        assert output is not None
        write_html(after, output, before)
        console.write_path(output)
    else:
        results.draw(lambda screen: print_run_comparison(comparison, old, now, screen), output)
    return 1 if fail_on == "new" and failing(comparison.appeared) else 0


def _diff_corpora(base: Path, new: Path, format_: str, output: Path | None) -> None:
    from commutant.compare import (
        compare_corpora,
        corpus_comparison_document,
        corpus_comparison_markdown,
        print_corpus_comparison,
        side_of_corpus,
    )
    from commutant.corpus import read_corpus
    from commutant.runs import CORPUS_FILE

    paths = [path / CORPUS_FILE if path.is_dir() else path for path in (base, new)]
    corpora = [read_corpus(path) for path in paths]
    old, now = (side_of_corpus(str(path), corpus) for path, corpus in zip((base, new), corpora, strict=True))
    comparison = compare_corpora(*corpora)
    if format_ == "json":
        document = corpus_comparison_document(comparison, old, now)
        results.put([text(document)], output)
    elif format_ == "markdown":
        results.put([corpus_comparison_markdown(comparison, old, now)], output)
    else:
        results.draw(lambda screen: print_corpus_comparison(comparison, old, now, screen), output)


def _diff_locks(base: Path, new: Path, format_: str, output: Path | None) -> None:
    from commutant.compare.locks import compare_locks, lock_comparison_markdown, print_lock_comparison
    from commutant.lock_view.shown import read_locks

    old, now = ((str(path), read_locks(path)) for path in (base, new))
    found = compare_locks(old, now)
    if format_ == "json":
        results.put([text(found)], output)
    elif format_ == "markdown":
        results.put([lock_comparison_markdown(found)], output)
    else:
        results.draw(lambda screen: print_lock_comparison(found, screen), output)
