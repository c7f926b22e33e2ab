"""What became of tests and findings from one run to another, or of tests from one corpus to another.

Runs are compared by the ids of their tests and by the fingerprints of their findings, so that two kernels, two file
systems, two implementations or two commits can stand next to each other. Nothing here reads a file but a suppression
file. Recordings of locks are compared in `locks`.
"""

from commutant.compare.corpora import CorpusComparison, compare_corpora
from commutant.compare.documents import (
    CorpusComparisonDocument,
    RunComparisonDocument,
    corpus_comparison_document,
    run_comparison_document,
)
from commutant.compare.gate import Gated, confirmed, examples_of, failing, findings_of, gate
from commutant.compare.markdown import corpus_comparison_markdown, run_comparison_markdown
from commutant.compare.runs import RunComparison, compare_runs
from commutant.compare.sides import side_of_corpus, side_of_run
from commutant.compare.suppressions import Suppression, Suppressions, read_suppressions
from commutant.compare.terminal import print_corpus_comparison, print_run_comparison

__all__ = [
    "CorpusComparison",
    "CorpusComparisonDocument",
    "Gated",
    "RunComparison",
    "RunComparisonDocument",
    "Suppression",
    "Suppressions",
    "compare_corpora",
    "compare_runs",
    "confirmed",
    "corpus_comparison_document",
    "corpus_comparison_markdown",
    "examples_of",
    "failing",
    "findings_of",
    "gate",
    "print_corpus_comparison",
    "print_run_comparison",
    "read_suppressions",
    "run_comparison_document",
    "run_comparison_markdown",
    "side_of_corpus",
    "side_of_run",
]
