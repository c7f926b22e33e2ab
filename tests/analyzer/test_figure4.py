"""The paper's example: two renames commute exactly where the six bullets of section 5.1 say."""

from __future__ import annotations

import pytest
import z3

from commutant.analyzer import SetAnalysis, analyze
from commutant.lang import load_interface
from tests.analyzer.interpretation import Z3Terms, all_signatures, proved, read_condition

SIX = [
    "src.0 = dst.0; src.1 = dst.1",
    "src.0 in names; src.0 = dst.0; src.0 ≠ src.1  (or the calls exchanged)",
    "dst.0 ≠ dst.1; dst.0 ≠ src.1; dst.1 ≠ src.0; src.0 ≠ src.1",
    "src.0 and src.1 in names; dst.0 = dst.1; src.0 and src.1 are two names of one file; src.0 ≠ src.1",
    "src.1 not in names; dst.0 ≠ src.1  (or the calls exchanged)",
    "src.0 and src.1 not in names",
]


@pytest.fixture(scope="module")
def renames() -> SetAnalysis:
    return analyze(load_interface("figure4"), ["rename", "rename"]).sets[0]


def six_bullets() -> list[z3.BoolRef]:
    """The bullets in the paper's order; rename(a, b) and rename(c, d)."""
    name, inum = z3.DeclareSort("Name"), z3.DeclareSort("Inum")
    exists = z3.Function("names_has", name, z3.BoolSort())
    inode = z3.Function("names_value", name, inum)
    a, b = z3.Const("rename.0.src", name), z3.Const("rename.0.dst", name)
    c, d = z3.Const("rename.1.src", name), z3.Const("rename.1.dst", name)
    return [
        z3.And(exists(a), exists(c), z3.Distinct(a, b, c, d)),
        z3.Or(z3.And(exists(a), z3.Not(exists(c)), b != c), z3.And(exists(c), z3.Not(exists(a)), d != a)),
        z3.And(z3.Not(exists(a)), z3.Not(exists(c))),
        z3.And(a == b, c == d),
        z3.Or(z3.And(exists(a), a == b, a != c), z3.And(exists(c), c == d, a != c)),
        z3.And(exists(a), exists(c), inode(a) == inode(c), a != c, b == d),
    ]


def test_the_printed_condition_is_the_papers(renames: SetAnalysis) -> None:
    assert proved(read_condition(renames.to_smt2()) == z3.Or(six_bullets()))


@pytest.mark.parametrize("bullet", range(6))
def test_each_bullet_is_needed(renames: SetAnalysis, bullet: int) -> None:
    """The comparison above would notice a bullet that is missing."""
    others = [formula for number, formula in enumerate(six_bullets()) if number != bullet]
    assert not proved(read_condition(renames.to_smt2()) == z3.Or(others))


def test_the_raw_paths_say_the_same_as_the_simplified_condition(renames: SetAnalysis) -> None:
    terms = Z3Terms(all_signatures(renames.interface, renames.calls))
    commuting = terms.union(leaf.facts for leaf in renames.leaves if leaf.commutes)
    refused = terms.union(leaf.facts for leaf in renames.leaves if leaf.feasible and not leaf.commutes)
    assert proved(commuting == terms.union(renames.cubes))
    assert proved(z3.Not(z3.And(commuting, refused)))
    assert proved(z3.Or(commuting, refused))


def test_the_refusals_cover_all_that_does_not_commute(renames: SetAnalysis) -> None:
    from commutant.analyzer.simplify import refusals

    terms = Z3Terms(all_signatures(renames.interface, renames.calls))
    refused = terms.union(cube for _, cube in refusals(renames.leaves, renames.choices))
    assert proved(refused == z3.Not(terms.union(renames.cubes)))


def test_counts(renames: SetAnalysis) -> None:
    """24 commutative paths, as an independent prototype of this design found."""
    assert (renames.paths, renames.commutative_paths, renames.unknown) == (55, 24, 0)


def test_the_six_sentences(renames: SetAnalysis) -> None:
    assert renames.conditions == SIX


def test_differences_name_what_a_caller_sees(renames: SetAnalysis) -> None:
    assert [difference for difference, _ in renames.refusals] == [
        "result of rename.0",
        "result of rename.1",
        "state after rename.0 and rename.1",
    ]


def test_triples_of_renames_are_explored_without_an_unknown() -> None:
    triple = analyze(load_interface("figure4"), ["rename", "rename", "rename"], size=3).sets[0]
    assert triple.unknown == 0
    assert 0 < triple.commutative_paths < triple.paths
