"""How long the names of tests are, where that is chosen: never longer than a directory takes, and never two alike."""

from __future__ import annotations

import pytest

from commutant.support import UsageError
from commutant.targets import load_target
from commutant.targets.names import renamed


@pytest.mark.parametrize("length", ["256", "3", "-1", "4.5", "short", "1" * 40])
def test_a_length_that_no_directory_takes_is_refused_in_one_line(length: str) -> None:
    with pytest.raises(UsageError, match=r"expected `long` \(255 letters\), or a number from 4 to 255") as caught:
        load_target(f"linux:names={length}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("length", [4, 30, 255])
def test_names_have_that_length_and_stay_different(length: int) -> None:
    names = [renamed(length)(f'"n{number}"').strip('"') for number in range(1000)]
    assert {len(name) for name in names} == {length}
    assert len(set(names)) == len(names)
