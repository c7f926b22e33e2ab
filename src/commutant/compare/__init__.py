"""What became of tests and findings from one run to another, or of tests from one corpus to another.

Runs are compared by the ids of their tests and by the fingerprints of their findings, so that two kernels, two file
systems, two implementations or two commits can stand beside each other. Nothing here reads a file but a suppression
file.
"""

from commutant.compare.corpora import CorpusComparison, compare_corpora
from commutant.compare.gate import confirmed, examples_of, failing, findings_of
from commutant.compare.runs import RunComparison, compare_runs
from commutant.compare.suppressions import Suppression, Suppressions, read_suppressions

__all__ = [
    "CorpusComparison",
    "RunComparison",
    "Suppression",
    "Suppressions",
    "compare_corpora",
    "compare_runs",
    "confirmed",
    "examples_of",
    "failing",
    "findings_of",
    "read_suppressions",
]
