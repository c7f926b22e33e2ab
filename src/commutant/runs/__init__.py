"""Run directories and the checks that fill them: `directory` on disk, `check` from start to end, `table` in Parquet,
`content` as what a report shows.
"""

from commutant.runs import check
from commutant.runs.again import again_folder, run_again
from commutant.runs.check import Check
from commutant.runs.content import judged_tests, report_of
from commutant.runs.directory import (
    CORPUS_FILE,
    FINDINGS_FILE,
    REPORT_FILE,
    RUN_FILE,
    Generated,
    Run,
    RunInfo,
    hash_of_tests,
    load_run,
    load_run_info,
    new_directory,
    safe_folder_name,
    write_atomically,
    write_document,
)
from commutant.runs.lines import VERDICT_LINES
from commutant.runs.lookup import FoundTest, find_test, ids_beginning, tests_of_calls
from commutant.runs.merge import merge_runs
from commutant.runs.selection import corpus_of_sharing
from commutant.runs.table import write_findings

__all__ = [
    "CORPUS_FILE",
    "FINDINGS_FILE",
    "REPORT_FILE",
    "RUN_FILE",
    "VERDICT_LINES",
    "Check",
    "FoundTest",
    "Generated",
    "Run",
    "RunInfo",
    "again_folder",
    "check",
    "corpus_of_sharing",
    "find_test",
    "hash_of_tests",
    "ids_beginning",
    "judged_tests",
    "load_run",
    "load_run_info",
    "merge_runs",
    "new_directory",
    "report_of",
    "run_again",
    "safe_folder_name",
    "tests_of_calls",
    "write_atomically",
    "write_document",
    "write_findings",
]
