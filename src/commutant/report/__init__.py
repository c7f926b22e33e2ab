"""Reports on runs and tests: terminal, HTML page, C programs, JSON.

Everything here takes plain data (`commutant.report.data`) and reads no run directory itself.
"""

from commutant.report.cprogram import c_program
from commutant.report.data import JudgedTest, RunReport
from commutant.report.page import write_html
from commutant.report.ranking import SharedVariable, rank_shared, ranking_json
from commutant.report.show import print_test, test_json
from commutant.report.terminal import print_heat_map, print_most_shared, print_run

__all__ = [
    "JudgedTest",
    "RunReport",
    "SharedVariable",
    "c_program",
    "print_heat_map",
    "print_most_shared",
    "print_run",
    "print_test",
    "rank_shared",
    "ranking_json",
    "test_json",
    "write_html",
]
