"""Test cases from commutativity conditions (paper, section 5.2)."""

from commutant.corpus import Corpus, TestCase
from commutant.testgen.canonical import Canonical
from commutant.testgen.document import GenerateDocument, GeneratedSetEntry, KeptCounts
from commutant.testgen.examples import Examples, difference
from commutant.testgen.generation import generate
from commutant.testgen.setups import untestable_beforehand

__all__ = [
    "Canonical",
    "Corpus",
    "Examples",
    "GenerateDocument",
    "GeneratedSetEntry",
    "KeptCounts",
    "TestCase",
    "difference",
    "generate",
    "untestable_beforehand",
]
