"""Suppression files: read strictly, applied exactly, ended on their day."""

from __future__ import annotations

import datetime
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commutant.compare import Suppressions, failing, findings_of, read_suppressions
from commutant.compare.suppressions import _fits
from commutant.mtrace.fingerprint import fingerprint
from commutant.support.errors import UsageError
from tests.campaign.fakes import make_finding
from tests.compare.test_runs import judged, run_of

TODAY = datetime.date(2026, 6, 15)
GOOD = 'reason = "agreed"\nexpires = 2026-06-15\n'
DIGEST = fingerprint(("link", "rename"), make_finding("a", ("get_a", "put_a"))).digest


@pytest.fixture
def read(tmp_path):
    """Reads a text as a suppression file."""

    def read_text(text: str) -> Suppressions:
        path = tmp_path / "commutant.toml"
        path.write_text(text)
        return read_suppressions(path, TODAY)

    return read_text


def left(suppressions):
    run = run_of(judged(0, "conflicting", "a", "b"))
    return [group.example.field for group in failing(findings_of(run, [], suppressions))]


@pytest.mark.parametrize(
    ("entry", "fails"),
    [
        (f'fingerprint = "{DIGEST}"', ["b"]),
        ('variable = "struct dentry.a"', ["b"]),
        ('variable = "struct *.a"', ["b"]),
        ('variable = "struct dentry.*"', []),
        ('variable = "a"', ["a", "b"]),
        ('function = "get_*"', []),
        ('function = "other"', ["a", "b"]),
        ('calls = ["rename", "link"]', []),
        ('calls = ["*", "link"]', []),
        ('calls = ["*", "open"]', ["a", "b"]),
        ('calls = ["link"]', ["a", "b"]),
        ('calls = ["*", "*"]\nvariable = "*b"\nfunction = "put_b"', ["a"]),
        (f'fingerprint = "{DIGEST}"\nvariable = "other"', ["a", "b"]),
    ],
)
def test_an_entry_means_what_fits_all_its_lines(read, entry, fails):
    assert left(read(f"[[suppress]]\n{entry}\n{GOOD}")) == fails


def test_the_last_day_counts_and_the_next_does_not(read):
    text = '[[suppress]]\nvariable = "*"\nreason = "agreed"\nexpires = {}\n'
    assert left(read(text.format("2026-06-15"))) == []
    late = read(text.format("2026-06-14"))
    assert left(late) == ["a", "b"]
    assert [entry.expires.day for entry in late.expired] == [14]


def test_entries_that_mean_nothing_are_told(read):
    suppressions = read(
        f'[[suppress]]\nvariable = "*.a"\n{GOOD}[[suppress]]\nvariable = "gone"\nfunction = "f"\n{GOOD}'
    )
    assert left(suppressions) == ["b"]
    assert [entry.title for entry in suppressions.unused] == ["gone in f"]
    assert suppressions.expired == ()


def test_an_empty_file_suppresses_nothing(read):
    assert left(read("")) == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[suppress", "is not TOML"),
        ("\x00", "is not TOML"),
        ("x = 1", "expected tables [[suppress]] and nothing else, got the key 'x'"),
        ("suppress = 1", "expected tables [[suppress]]"),
        ("suppress = [1]", "suppression 1: expected a table [[suppress]], got 1"),
        (f"[[suppress]]\n{GOOD}", "suppression 1: expected one of fingerprint, calls, variable, function"),
        (f'[[suppress]]\nfield = "x"\n{GOOD}', "unknown key 'field'; expected calls, expires, fingerprint"),
        (
            '[[suppress]]\nvariable = "x"\nexpires = 2026-01-01',
            "expected reason = a text of 1 to 512 characters, got no",
        ),
        ('[[suppress]]\nvariable = "x"\nreason = " "\nexpires = 2026-01-01', "expected reason = a text"),
        ('[[suppress]]\nvariable = "x"\nreason = "y"', "expected expires = YEAR-MONTH-DAY without quotes"),
        ('[[suppress]]\nvariable = "x"\nreason = "y"\nexpires = "2026-01-01"', "got '2026-01-01'"),
        ('[[suppress]]\nvariable = "x"\nreason = "y"\nexpires = 2026-01-01T00:00:00', "got datetime.datetime"),
        (f'[[suppress]]\nfingerprint = "0c1d"\n{GOOD}', "expected a fingerprint of 16 hexadecimal digits, got '0c1d'"),
        (f"[[suppress]]\ncalls = []\n{GOOD}", 'expected calls = ["rename", "*"]'),
        (f'[[suppress]]\nvariable = "x"\n{GOOD}[[suppress]]\nvariable = 1\n{GOOD}', "suppression 2: expected variable"),
    ],
)
def test_what_is_no_suppression_file_is_one_line(read, tmp_path, text, expected):
    with pytest.raises(UsageError) as refusal:
        read(text)
    message = str(refusal.value)
    assert expected in message and str(tmp_path) in message and "\n" not in message


def test_a_missing_file_is_one_line(tmp_path):
    with pytest.raises(UsageError, match=r"cannot read the suppression file .*missing: No such file"):
        read_suppressions(tmp_path / "missing")


@given(pattern=st.text("ab*", max_size=8), text=st.text("ab", max_size=8))
def test_patterns_fit_as_the_same_regular_expression_does(pattern, text):
    expression = ".*".join(map(re.escape, pattern.split("*")))
    assert _fits(pattern, text) == bool(re.fullmatch(expression, text))
