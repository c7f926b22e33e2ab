"""Reports on runs and tests: terminal, HTML page, C programs, and the formats that other programs read.

Everything here takes plain data (`commutant.report.data`) and reads no run directory itself.
"""

from commutant.report.cprogram import c_program
from commutant.report.data import JudgedTest, RunReport
from commutant.report.groups import FindingGroup, group_json
from commutant.report.junit import junit
from commutant.report.overview import run_markdown
from commutant.report.page import write_html
from commutant.report.ranking import SharedVariable, rank_shared, ranking_json
from commutant.report.sarif import sarif
from commutant.report.show import print_test, test_json
from commutant.report.terminal import print_heat_map, print_most_shared, print_run

__all__ = [
    "FindingGroup",
    "JudgedTest",
    "RunReport",
    "SharedVariable",
    "c_program",
    "group_json",
    "junit",
    "print_heat_map",
    "print_most_shared",
    "print_run",
    "print_test",
    "rank_shared",
    "ranking_json",
    "run_markdown",
    "sarif",
    "test_json",
    "write_html",
]
