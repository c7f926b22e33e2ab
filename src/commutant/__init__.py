"""Commutant: find the cache lines that commuting calls share without need.

The way of the data is the list of packages: a model written with `lang` is explored by `symbolic`, `analyzer` turns the
paths into commutativity conditions, `testgen` turns those into test cases, a target of `targets` runs them, `mtrace`
judges what they shared, and `report` shows it.
"""

__version__ = "0.1.0"

from commutant.support import CommutantError, RunError, UsageError

__all__ = ["CommutantError", "RunError", "UsageError", "__version__"]
