"""Unknown values that a model computes with: booleans, values of a sort, integers.

Comparisons are decided at once (see `context`), so a comparison is a plain bool and a model's `if`, `and` and `not`
need no help. An unknown boolean is decided when Python asks for its truth. Unknown values are not hashable: a Python
dict or set would compare them behind the engine's back. They are native: models do little else than compare.
"""

from commutant._native import BoolValue, IntValue, SortValue

__all__ = ["BoolValue", "IntValue", "SortValue"]
