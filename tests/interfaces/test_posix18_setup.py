"""posix18: every class of states has a set-up, and observations show what a caller could tell."""

from __future__ import annotations

import pytest

from commutant.analyzer.analysis import sets_of_calls
from commutant.lang import load_interface
from commutant.testgen import Corpus, generate

POSIX18 = load_interface("posix18")


def corpus(*calls: str) -> Corpus:
    return generate(POSIX18, calls, level="path")


@pytest.mark.parametrize(
    "calls",
    [("open", "memread"), ("read", "close"), ("write", "pipe"), ("mprotect", "memwrite"), ("link", "fstat")],
    ids="-".join,
)
def test_every_class_has_a_set_up(calls: tuple[str, ...]) -> None:
    generated = corpus(*calls)
    assert generated.tests
    assert generated.without_setup == {}


@pytest.mark.long
@pytest.mark.parametrize("calls", sets_of_calls(POSIX18, None, 2), ids="-".join)
def test_every_class_of_every_pair_has_a_set_up(calls: tuple[str, ...]) -> None:
    assert generate(POSIX18, calls, level="conflict").without_setup == {}
