"""Test cases from commutativity conditions (paper, section 5.2)."""

from commutant.testgen.corpus import Corpus
from commutant.testgen.generation import generate
from commutant.testgen.testcase import TestCase

__all__ = ["Corpus", "TestCase", "generate"]
