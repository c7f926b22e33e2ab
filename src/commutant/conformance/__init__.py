"""Random sequences of calls, on the model and on the real thing: do both return the same?

`draw` makes sequences from a model, `script` writes out what they must return, `search` runs them in numbers on a
target, `judge` looks for a resolution of the model's choices that explains what came, `shrink` makes the rest small.
"""

from commutant.conformance.conformance import Conform, Conformance, ConformDocument
from commutant.conformance.difference import Deviation
from commutant.conformance.keep import keep

__all__ = ["Conform", "ConformDocument", "Conformance", "Deviation", "keep"]
