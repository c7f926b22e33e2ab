"""The end of a run: once all is judged, its table, its figures and its page are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from commutant.campaign import KeyRate
from commutant.corpus import Corpus
from commutant.runs.directory import FINDINGS_FILE, REPORT_FILE, Run, RunWriter, load_run
from commutant.runs.lines import TimedVerdict
from commutant.support import has_parquet


class Took(NamedTuple):
    """How long a campaign took, and how long its target took to start."""

    seconds: float
    start_seconds: float


def finish(
    writer: RunWriter, corpus: Corpus, judged: Sequence[TimedVerdict], took: Took, keys: tuple[KeyRate, ...]
) -> Run:
    """The run whose verdicts were written, complete."""
    from commutant.report import write_html
    from commutant.runs.content import judged_tests, report_of
    from commutant.runs.table import write_findings

    run = load_run(writer.path, corpus, judged)
    info = run.info
    if has_parquet():
        write_findings(run.path / FINDINGS_FILE, judged_tests(run))
    tally, _ = run.tally()
    writer.finish(tally.summary(info.interface, info.target, info.level, *took, keys))
    write_html(report_of(run), run.path / REPORT_FILE)
    return run
