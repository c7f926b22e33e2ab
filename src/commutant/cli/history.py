"""`commutant history`: which shared variables came, went and moved over several runs of one corpus."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from commutant.cli import console, options, results
from commutant.documents import text
from commutant.support import UsageError, paused_collector

if TYPE_CHECKING:
    from commutant.runs import Run

_MOST = 20


@click.command(
    "history",
    short_help="Which shared variables came, went and moved over several runs.",
    epilog=options.examples(
        "commutant history runs/linux-6.1 runs/linux-6.12",
        "commutant history runs/linux-* --limit 50 --format html -o history.html",
    ),
)
@click.argument("run", type=click.Path(path_type=Path, file_okay=False), nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(1, 10_000), default=_MOST, show_default=True, help="Variables to list.")
@options.output_format("text", "html", "json")
@options.output_file
def command(run: tuple[Path, ...], limit: int, format_: str, output: Path | None) -> int:
    """Counts, in each RUN, the tests that share each variable: two kernels or more, oldest first, over one corpus.

    Only tests that all runs judged are counted. A variable came, went, or is shared by more or fewer tests; where the
    same two functions share memory under another name, it moved.
    """
    from commutant.remedy import history, history_document, history_page, print_history
    from commutant.runs import judged_tests, load_run

    results.refuse_existing(output)
    if len(run) < 2:
        raise click.UsageError("expected two runs or more, oldest first")
    with paused_collector():
        loaded = [load_run(path) for path in run]
        results.say_if_named_otherwise(*loaded)
        for one in loaded:
            results.say_if_interrupted(one)
            if one.info.model != loaded[0].info.model:
                console.message(
                    f"{one.path} is of another version of the model; only tests that are in all are counted"
                )
        shown = history([list(judged_tests(one)) for one in loaded])
    if not shown.tests:
        raise UsageError("no test was judged in all runs; expected runs of one corpus")
    if format_ == "json":
        results.put([text(history_document(shown, [(str(one.path), _label(one)) for one in loaded]))], output)
    elif format_ == "html":
        results.put([history_page(shown, [_label(one) for one in loaded], limit)], output)
    else:
        labels = [_label(one) for one in loaded]
        results.draw(lambda screen: print_history(shown, labels, limit, screen), output)
    return 0


def _label(run: Run) -> str:
    """The kernel that a run is of, or else its target."""
    kernel = run.info.target_description.get("kernel")
    return f"{kernel}{results.patches_of(run)}" if isinstance(kernel, str) else run.info.target
