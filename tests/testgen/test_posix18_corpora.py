"""posix18's tests: every class of every level has a set-up, and each test was run in both orders on the model itself.

Generation replays each set-up, compares the state that it reaches with the one that was asked for, runs the calls in
every order, and refuses a class whose orders have no outcome in common; so `without_setup` being empty is the check.
"""

from __future__ import annotations

import pytest

from commutant.analyzer import sets_of_calls
from commutant.corpus import file as corpora
from commutant.lang import load_interface
from commutant.testgen import generate

POSIX18 = load_interface("posix18")
PAIRS = sets_of_calls(POSIX18, None, 2)


@pytest.mark.parametrize(
    "level, calls", [("path", ("open", "memread")), ("conflict", ("read", "write")), ("full", ("fstat", "close"))]
)
def test_every_class_of_a_pair_has_a_test(level: str, calls: tuple[str, ...]) -> None:
    corpus = generate(POSIX18, calls, level=level)
    assert corpus.tests and not corpus.without_setup


def test_arguments_that_a_call_does_not_use_make_no_classes() -> None:
    """An address without MAP_FIXED, a descriptor of anonymous memory: enumerated, they made 20,018 classes."""
    assert len(generate(POSIX18, ["mmap", "mmap"]).tests) < 1_000


@pytest.mark.long
@pytest.mark.parametrize("level, at_least", [("path", 10_000), ("conflict", 20_000), ("full", 80_000)])
def test_every_class_of_every_pair_has_a_test(level: str, at_least: int) -> None:
    corpus = generate(POSIX18, level=level, jobs=2)
    assert not corpus.without_setup
    assert len(corpus.tests) >= at_least
    assert len(corpora.tests_per_set(corpus.tests)) == len(PAIRS) == 171
