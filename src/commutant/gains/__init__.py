"""What one interface gains over another: situations in which its calls commute and the other's do not."""

from commutant.gains.comparison import InterfaceComparison, compare_interfaces, comparison_lines
from commutant.gains.documents import CompareDocument
from commutant.gains.page import comparison_page

__all__ = ["CompareDocument", "InterfaceComparison", "compare_interfaces", "comparison_lines", "comparison_page"]
