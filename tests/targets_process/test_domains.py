"""The target `scalefs:domains=N`: results are judged as elsewhere, and what is not done across domains is not known."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from commutant.lang.load import load_interface
from commutant.support.errors import UsageError
from commutant.targets.base import Job
from commutant.targets.domains import DomainsTarget
from commutant.targets.registry import load_target
from commutant.testgen import generate
from tests.targets.handwritten import CREATE_CREATE, RIGHT, WRONG_COUNT


@pytest.fixture(scope="module")
def target() -> Iterator[DomainsTarget]:
    """The target, started: the self-test has passed."""
    target = load_target("scalefs:domains=3")
    assert isinstance(target, DomainsTarget)
    target.start(lambda _: None, 2)
    yield target
    target.close()


def test_results_on_names_are_right_and_wrong_ones_are_seen(target: DomainsTarget) -> None:
    session = target.sessions(1)[0]
    tests = generate(load_interface("names"), calls=["rename", "link", "stat"]).tests
    records = list(session.run([Job(test, order) for test in (*RIGHT, *tests) for order in range(len(test.orders))]))
    assert [record.wrong for record in records if record.wrong] == []
    assert len(records) > 100 and not any(record.findings or record.crashed for record in records)
    assert [bool(record.wrong) for record in session.run([Job(WRONG_COUNT, 0), Job(CREATE_CREATE, 0)])] == [True, False]
    session.close()


def test_calls_that_stay_in_one_domain_are_not_known(target: DomainsTarget) -> None:
    assert target.implements("rename", ["src", "dst"])
    assert not target.implements("memwrite", ["data", "address"]) and not target.implements("pipe", [])
    assert not target.implements("close", ["pair"])
    assert target.describe()["domains"] == 3


@pytest.mark.parametrize(
    ("argument", "why"),
    [
        ("scalefs:domains=0", "from 1 to 16"),
        ("scalefs:domains=17", "from 1 to 16"),
        ("scalefs:domains=2,cores=4", "cores"),
    ],
)
def test_options_are_refused(argument: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        load_target(argument)
