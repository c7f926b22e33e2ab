"""Test cases from commutativity conditions (paper, section 5.2)."""

from commutant.corpus import Corpus, TestCase
from commutant.testgen.canonical import Canonical
from commutant.testgen.document import GenerateDocument, GeneratedSetEntry, KeptCounts
from commutant.testgen.examples import Example, Examples, commutes_concretely, difference
from commutant.testgen.generation import generate
from commutant.testgen.setups import untestable_beforehand
from commutant.testgen.valuation import Valuation, sorts_of

__all__ = [
    "Canonical",
    "Corpus",
    "Example",
    "Examples",
    "GenerateDocument",
    "GeneratedSetEntry",
    "KeptCounts",
    "TestCase",
    "Valuation",
    "commutes_concretely",
    "difference",
    "generate",
    "sorts_of",
    "untestable_beforehand",
]
