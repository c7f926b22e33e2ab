"""`commutant merge RUN...`: one run, or one corpus, out of its shards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from commutant.cli import console, options
from commutant.cli.campaign import Gate, conclude, gated, refuse_existing
from commutant.support import UsageError, plural

if TYPE_CHECKING:
    from commutant.corpus import Corpus


@click.command(
    "merge",
    short_help="Put shards together.",
    epilog=options.examples(
        "commutant merge runs/shard-1 runs/shard-2 runs/shard-3 -o runs/whole",
        "commutant merge shard-*.jsonl.gz -o whole.jsonl.gz",
        "commutant merge runs/shard-* --fail-on new --baseline runs/before",
    ),
)
@click.argument("shards", metavar="RUN...|CORPUS...", type=click.Path(path_type=Path), nargs=-1, required=True)
@gated
@options.output("New run directory, or of corpora a new FILE.jsonl.gz.  [default: runs/<interface>-<target>-<n>]")
@options.output_format("text", "json")
@click.pass_context
def command(ctx: click.Context, shards: tuple[Path, ...], gate: Gate, output: Path | None, format_: str) -> int:
    """Puts the shards together that `--shard` has made of one corpus: runs of `check`, or corpora of `generate`.

    The result is what one machine would have made. Each shard must be there once, and complete; runs must have been
    made by one version on one kind of target. Of runs, the heat map is printed as `check` does.

    Exit code 1 if `--fail-on` says so, 3 if a result was wrong.
    """
    from commutant.runs import RUN_FILE, merge_runs

    refuse_existing(output)
    are_runs = [path.is_dir() and (path / RUN_FILE).exists() for path in shards]
    if all(are_runs):
        with console.ProgressBar("merging"):
            run = merge_runs(shards, output)
        return conclude(run, gate, format_)
    if any(are_runs):
        run_path, corpus_path = shards[are_runs.index(True)], shards[are_runs.index(False)]
        if not corpus_path.exists():
            raise UsageError(f"{corpus_path}: expected the folder of a run, found no such folder")
        raise UsageError(f"{run_path} is a run, {corpus_path} is none; expected shards of one kind")
    for name in ("fail_on", "baseline", "suppress", "format_"):
        if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"corpora are merged: --{name.strip('_').replace('_', '-')} cannot be given", ctx)
    _merge_corpora(shards, output)
    return 0


def _merge_corpora(paths: tuple[Path, ...], output: Path | None) -> None:
    from commutant.corpus import in_order, read_corpus, together, write_corpus
    from commutant.runs import CORPUS_FILE, new_directory, safe_folder_name

    named: list[tuple[str, Corpus]] = [
        (str(path), read_corpus(path / CORPUS_FILE if path.is_dir() else path)) for path in paths
    ]
    corpus = together([named[place][1] for place in in_order(named)])
    if output is not None and output.name.endswith(".jsonl.gz"):
        path = output
    else:
        path = new_directory(output, f"{safe_folder_name(corpus.interface)}-corpus") / CORPUS_FILE
    write_corpus(corpus, path)
    made = f"{plural(len(corpus.tests), 'test')} of {corpus.interface}, level {corpus.level}"
    console.write(f"{made}: {console.one_line(str(path))}\n")
