"""Reports on runs and tests: terminal, HTML page, C programs, and the formats that other programs read.

Everything here takes plain data (`commutant.report.data`) and reads no run directory itself.
"""

from commutant.report.causes import Cause, RunCause, causes, rank_causes
from commutant.report.cprogram import Loop, c_program, loop_of, loop_program
from commutant.report.data import BADNESS, JudgedTest, RunReport, read_sets, total_counts
from commutant.report.documents import GroupEntry, NamedCount, ReportDocument, Some, group_entries, report_document
from commutant.report.first import print_first
from commutant.report.for_keys import how_often, spreading_of
from commutant.report.groups import (
    FindingGroup,
    FingerprintTable,
    by_weight,
    group_findings,
    has_failing_call,
    has_idle_call,
    may_fail,
)
from commutant.report.hints import HintKind, hint, kind_by_name, kind_of
from commutant.report.junit import junit
from commutant.report.listing import chosen_tests, line_of_test, lines_of_tests, rows_of_tests
from commutant.report.markdown import cell, code, folded, table
from commutant.report.overview import run_markdown
from commutant.report.page import write_html
from commutant.report.palette import LIGHT, text_colour
from commutant.report.parallel import ParallelCall, parallel_calls
from commutant.report.ranking import SharedVariable, rank_shared
from commutant.report.reach import not_reached
from commutant.report.sarif import sarif
from commutant.report.show import json_of_test, print_test
from commutant.report.terminal import print_by_sharing, print_heat_map, print_run
from commutant.report.variables import by_variable

__all__ = [
    "BADNESS",
    "LIGHT",
    "Cause",
    "FindingGroup",
    "FingerprintTable",
    "GroupEntry",
    "HintKind",
    "JudgedTest",
    "Loop",
    "NamedCount",
    "ParallelCall",
    "ReportDocument",
    "RunCause",
    "RunReport",
    "SharedVariable",
    "Some",
    "by_variable",
    "by_weight",
    "c_program",
    "causes",
    "cell",
    "chosen_tests",
    "code",
    "folded",
    "group_entries",
    "group_findings",
    "has_failing_call",
    "has_idle_call",
    "hint",
    "how_often",
    "json_of_test",
    "junit",
    "kind_by_name",
    "kind_of",
    "line_of_test",
    "lines_of_tests",
    "loop_of",
    "loop_program",
    "may_fail",
    "not_reached",
    "parallel_calls",
    "print_by_sharing",
    "print_first",
    "print_heat_map",
    "print_run",
    "print_test",
    "rank_causes",
    "rank_shared",
    "read_sets",
    "report_document",
    "rows_of_tests",
    "run_markdown",
    "sarif",
    "spreading_of",
    "table",
    "text_colour",
    "total_counts",
    "write_html",
]
