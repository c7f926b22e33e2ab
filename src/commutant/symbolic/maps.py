"""Maps of unknown content: the first access to a key decides whether it equals a key touched before; if not, an initial
entry with an unknown presence and an unknown value comes into being.

Initial entries (`MapContent`) are shared by all orders of the calls; what an order writes lies in its own view
(`SymbolicMap`), on top of the view that it is a copy of. Only touched keys can differ between two views, so comparing
those is comparing the states. No quantifier is needed anywhere. They are native: an exploration does little else than
look things up in maps.
"""

from commutant._native import Cell, Entry, MapContent, SymbolicMap
from commutant._native import len as length

__all__ = ["Cell", "Entry", "MapContent", "SymbolicMap", "length"]
