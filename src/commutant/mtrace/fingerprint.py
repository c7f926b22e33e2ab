"""What identifies a finding over builds, boots and runs: the calls, the variable, and the two functions that met there.

A rebuilt kernel moves every address, and its compiler may give a function another suffix or split it (`d_alloc.part.0`,
`iput.isra.12`, Rust's `::h0123456789abcdef`). None of that makes another finding, so none of it is in a fingerprint.
Two accesses without names cannot be told apart by it: their addresses are left out too.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from commutant.mtrace.finding import Finding

DIGEST_CHARACTERS = 16

_COMPILER_SUFFIX = re.compile(r"\.(?:isra|constprop|part|cold|llvm|lto_priv)(?:\.[0-9A-Za-z_]+)*(?=\.|$)")
_RUST_HASH = re.compile(r"::h[0-9a-f]{16}$")
_OFFSET = re.compile(r"\+0x[0-9a-f]+(?:/0x[0-9a-f]+)?$")
_LOCAL_NUMBER = re.compile(r"(?<=[^.])\.[0-9]+$")
_ADDRESS = re.compile(r"0x[0-9a-f]+|[0-9a-f]{16}")


@dataclass(frozen=True, slots=True, order=True)
class Fingerprint:
    """A finding without all that changes from build to build. `calls` and `functions` are sorted."""

    calls: tuple[str, ...]
    variable: str
    functions: tuple[str, str]

    @property
    def digest(self) -> str:
        """Sixteen hexadecimal digits that stand for it in files: of the SHA-256 of its parts as JSON."""
        text = json.dumps([self.calls, self.variable, self.functions], ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_CHARACTERS]


def fingerprint(calls: Iterable[str], finding: Finding) -> Fingerprint:
    """The fingerprint of a finding in a test of these calls."""
    low, high = sorted(stable_function(access.function) for access in (finding.first, finding.second))
    return Fingerprint(tuple(sorted(calls)), stable_variable(finding), (low, high))


def stable_function(name: str) -> str:
    """A function's name without what the compiler and the build add to it.

    >>> stable_function("link_path_walk.part.0.constprop.0")
    'link_path_walk'
    """
    name = _RUST_HASH.sub("", _OFFSET.sub("", name))
    return "unknown code" if _ADDRESS.fullmatch(name) else _COMPILER_SUFFIX.sub("", name) or name


def stable_variable(finding: Finding) -> str:
    """The variable's name likewise; of false sharing both names, sorted.

    A variable within a function carries a number of the compiler's (`__key.12`), which the next build changes.
    """
    places = finding.field.split(" | ") if finding.field else finding.object.split(" | ")
    prefix = f"{_stable_symbol(finding.object)}." if finding.field else ""
    return " | ".join(sorted(prefix + (place if prefix else _stable_symbol(place)) for place in places))


def _stable_symbol(name: str) -> str:
    name = _RUST_HASH.sub("", _COMPILER_SUFFIX.sub("", name) or name)
    return "unknown data" if _ADDRESS.fullmatch(name) else _LOCAL_NUMBER.sub("", name)
