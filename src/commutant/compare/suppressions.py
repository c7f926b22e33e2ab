"""A suppression file: findings that somebody decided to live with, for how long, and why.

    [[suppress]]
    fingerprint = "0c1d9a55e0b7f2aa"        # exactly this finding, or ...
    reason = "one directory, one lock: agreed in the review of March"
    expires = 2027-06-30                    # the last day on which it counts

    [[suppress]]
    calls = ["rename", "*"]                 # ... all findings that fit every line given: the set of calls,
    variable = "struct dentry.d_lockref*"   # type and field, or variable,
    function = "lockref_*"                  # and one of the two functions; `*` stands for any text
    reason = "..."
    expires = 2027-06-30

A suppression without reason or end is refused, so that none is forgotten. Expired ones do nothing and are reported.
"""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

from commutant.mtrace import DIGEST_CHARACTERS, Fingerprint, former_digest
from commutant.report import FindingGroup
from commutant.support import UsageError, read_regular, safe_text

MAX_FILE_BYTES = 4 << 20
MAX_PATTERN_CHARACTERS = 512

_KEYS = frozenset({"fingerprint", "calls", "variable", "function", "reason", "expires"})
_PATTERNS = ("fingerprint", "calls", "variable", "function")
_DIGEST = re.compile(rf"[0-9a-f]{{{DIGEST_CHARACTERS}}}")


@dataclass(frozen=True, slots=True)
class Suppression:
    """One entry. Of `digest`, `calls`, `variable` and `function`, those that are None fit everything."""

    digest: str | None
    calls: tuple[str, ...] | None
    variable: str | None
    function: str | None
    reason: str
    expires: datetime.date

    def fits(self, fingerprint: Fingerprint, former: str = "") -> bool:
        """Whether a finding is meant by this entry, whatever its date; `former` is the digest of an earlier build."""
        return (
            (self.digest is None or self.digest in (fingerprint.digest, former))
            and (self.calls is None or _fit_in_some_order(self.calls, fingerprint.calls))
            and (self.variable is None or _fits(self.variable, fingerprint.variable))
            and (self.function is None or any(_fits(self.function, name) for name in fingerprint.functions))
        )

    @property
    def title(self) -> str:
        """What it is about, in a line: `rename,* struct dentry.d_lockref* in lockref_*`."""
        parts = [self.digest, self.calls and ",".join(self.calls), self.variable]
        return safe_text(" ".join(part for part in parts if part) + (f" in {self.function}" if self.function else ""))


class Suppressions:
    """The entries of a file on one day, and which of them were of use."""

    def __init__(self, entries: Iterable[Suppression] = (), today: datetime.date | None = None) -> None:
        """`today` is UTC's day unless given."""
        self.entries = tuple(entries)
        day = today or datetime.datetime.now(datetime.UTC).date()
        self.expired = tuple(entry for entry in self.entries if entry.expires < day)
        self._valid = tuple(entry for entry in self.entries if entry.expires >= day)
        self._used: set[Suppression] = set()

    def apply(self, groups: Iterable[FindingGroup]) -> None:
        """Marks the groups that an entry means, which is still valid, as accepted."""
        by_digest = any(entry.digest for entry in self._valid)
        for group in groups:
            mark = group.fingerprint
            former = former_digest(mark.calls, group.example) if by_digest else ""
            entry = next((entry for entry in self._valid if entry.fits(mark, former)), None)
            if entry is not None:
                group.accepted = entry.reason
                self._used.add(entry)

    @property
    def unused(self) -> tuple[Suppression, ...]:
        """Valid entries that meant none of the findings: they can go."""
        return tuple(entry for entry in self._valid if entry not in self._used)


def read_suppressions(path: Path, today: datetime.date | None = None) -> Suppressions:
    """Reads a suppression file; raises UsageError, one line with the entry's number, for anything else."""
    try:
        content = read_regular(path, MAX_FILE_BYTES)
        if len(content) > MAX_FILE_BYTES:
            expected = "expected a suppression file (docs/guides/ci.md)"
            raise UsageError(f"{path}: larger than {MAX_FILE_BYTES} bytes; {expected}")
        document = tomllib.loads(content.decode())
    except OSError as error:
        reason = error.strerror or error
        raise UsageError(
            f"cannot read the suppression file {path}: {reason}; docs/guides/ci.md says how to write one"
        ) from error
    except (ValueError, RecursionError) as error:  # TOMLDecodeError and UnicodeDecodeError are ValueErrors
        raise UsageError(f"{path} is not TOML ({error}); expected a suppression file (docs/guides/ci.md)") from error
    entries = document.pop("suppress", [])
    if document or not isinstance(entries, list):
        got = f"the key {next(iter(document))!r:.80}" if document else "something else under that name"
        raise UsageError(f"{path}: expected tables [[suppress]] and nothing else, got {got} (docs/guides/ci.md)")
    return Suppressions(
        (_entry(raw, f"{path}, suppression {number}") for number, raw in enumerate(entries, start=1)), today
    )


def _entry(raw: Any, where: str) -> Suppression:
    if not isinstance(raw, dict):
        raise UsageError(f"{where}: expected a table [[suppress]], got {raw!r:.80}")
    unknown = sorted(raw.keys() - _KEYS)
    if unknown:
        raise UsageError(f"{where}: unknown key {unknown[0]!r:.80}; expected {', '.join(sorted(_KEYS))}")
    if not any(key in raw for key in _PATTERNS):
        raise UsageError(f"{where}: expected one of {', '.join(_PATTERNS)}; without any it would hide everything")
    digest = _text(raw, "fingerprint", where) if "fingerprint" in raw else None
    if digest is not None and not _DIGEST.fullmatch(digest):
        raise UsageError(
            f"{where}: expected a fingerprint of {DIGEST_CHARACTERS} hexadecimal digits, got {digest!r:.80}"
        )
    expires = raw.get("expires")
    if type(expires) is not datetime.date:
        got = "nothing" if expires is None else repr(expires)[:80]
        raise UsageError(
            f"{where}: expected expires = YEAR-MONTH-DAY without quotes, the last day it counts, got {got}"
        )
    return Suppression(
        digest,
        _calls(raw["calls"], where) if "calls" in raw else None,
        _text(raw, "variable", where) if "variable" in raw else None,
        _text(raw, "function", where) if "function" in raw else None,
        _text(raw, "reason", where),
        expires,
    )


def _text(raw: Mapping[str, Any], key: str, where: str) -> str:
    value = raw.get(key)
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_PATTERN_CHARACTERS:
        got = "nothing" if value is None else repr(value)[:80]
        wanted = f"a text of 1 to {MAX_PATTERN_CHARACTERS} characters"
        raise UsageError(f"{where}: expected {key} = {wanted}, got {got}")
    return value


def _calls(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= 6 or not all(isinstance(one, str) for one in value):
        raise UsageError(f'{where}: expected calls = ["rename", "*"], one pattern per call, got {value!r:.80}')
    return tuple(value)


def _fits(pattern: str, text: str) -> bool:
    """Whether a pattern in which `*` stands for any text fits; in time proportional to both lengths."""
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == text
    *middle, last = rest
    if not text.startswith(first) or not text.endswith(last) or len(text) < len(first) + len(last):
        return False
    place, end = len(first), len(text) - len(last)
    for part in middle:
        place = text.find(part, place, end)
        if place < 0:
            return False
        place += len(part)
    return True


def _fit_in_some_order(patterns: tuple[str, ...], calls: tuple[str, ...]) -> bool:
    return len(patterns) == len(calls) and any(all(map(_fits, order, calls)) for order in set(permutations(patterns)))
