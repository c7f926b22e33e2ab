"""A file of constants: what is shipped, and one line for each way to be wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from commutant.scale import read_constants
from commutant.scale.constants import DEFAULT
from commutant.support import UsageError


def test_what_is_shipped_has_numbers_with_sources() -> None:
    constants = read_constants(None)
    assert 0 < constants.instruction_ns.value < constants.upgrade_ns.value < constants.miss_ns.value
    assert constants.changed("miss_ns", 2).miss_ns.value == 2 * constants.miss_ns.value


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[miss_ns]", "[other_ns]", "got 'other_ns'"),
        ("value = 26.0", "value = -1", "nanoseconds from 1e-06 to 1e+09 for miss_ns.value, got -1"),
        ("value = 26.0", "value = nan", "nanoseconds from 1e-06 to 1e+09 for miss_ns.value, got nan"),
        ("value = 26.0", "value = true", "nanoseconds from 1e-06 to 1e+09 for miss_ns.value, got True"),
        ("value = 26.0", 'value = "26"', "nanoseconds from 1e-06 to 1e+09 for miss_ns.value, got '26'"),
        ("value = 26.0", f"value = 1{'0' * 400}", "nanoseconds from 1e-06 to 1e+09 for miss_ns.value, got 1000"),
        ("value = 26.0", "value = 1e308", "nanoseconds from 1e-06 to 1e+09 for miss_ns.value, got 1e+308"),
        ("value = 26.0", "value = 1e-323", "nanoseconds from 1e-06 to 1e+09 for miss_ns.value, got 1e-323"),
        ("value = 26.0", "", "nanoseconds from 1e-06 to 1e+09 for miss_ns.value, got None"),
        ("value = 26.0", "value = ", "expected TOML"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = DEFAULT.read_text()
    assert old in text
    path = tmp_path / "constants.toml"
    path.write_text(text.replace(old, new))
    with pytest.raises(UsageError) as error:
        read_constants(path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_constant_that_is_missing_and_one_without_a_source_are_named(tmp_path: Path) -> None:
    path = tmp_path / "constants.toml"
    path.write_text('[instruction_ns]\nvalue = 1\nmachine = "a"\nsource = " "\n')
    with pytest.raises(UsageError, match=r"a text for instruction_ns\.source"):
        read_constants(path)
    path.write_text("")
    with pytest.raises(UsageError, match=r"a table \[instruction_ns\]"):
        read_constants(path)
