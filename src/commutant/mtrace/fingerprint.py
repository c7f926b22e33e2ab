"""What identifies a finding over builds, boots and runs: the calls, the variable, and the two functions that met there.

A rebuilt kernel moves every address, and its compiler may give a function another suffix or split it
(`d_alloc.part.0`, `iput.isra.12`, Rust's `::h0123456789abcdef`). A comment moves every line below it, and memory is
called by the line that asked for it. Code of the C library has names where its debug symbols are installed, and none
elsewhere. None of that makes another finding, so none of it is in a fingerprint. Two accesses without names cannot be
distinguished by it: their addresses are left out too.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from commutant.mtrace.finding import Finding

DIGEST_CHARACTERS = 16

NAMING = 2
"""Which names variables and functions have. 1: members of libraries' locks and generic types had others."""

_COMPILER_SUFFIX = re.compile(r"\.(?:isra|constprop|part|cold|llvm|lto_priv)(?:\.[0-9A-Za-z_]+)*(?=\.|$)")
_RUST_HASH = re.compile(r"::h[0-9a-f]{16}$")
_OFFSET = re.compile(r"\+0x[0-9a-f]+(?:/0x[0-9a-f]+)?$")
_LOCAL_NUMBER = re.compile(r"(?<=[^.])\.[0-9]+$")
_ADDRESS = re.compile(r"0x[0-9a-f]+|[0-9a-f]{16}")
_LINE_NUMBER = re.compile(r":[0-9]+(?=(?:; by [a-z]+)?\))")
"""Of who asked for memory: `(table_new, table.c:27)`, `(Map::new, map.hpp:9; by container)`."""
_CONSTANT = re.compile(r",? ?\{CONST#[0-9a-f]+\}")
"""A constant among a Rust type's arguments, as earlier versions have kept it: a number of the compiler's."""
_MODULE_PLACE = re.compile(r"([^ |]+?)(?:\+0x[0-9a-f]+|!.+)")
"""What has no name that all see: `libc.so.6+0x8ac67`; `libc.so.6!_int_free` where there are debug symbols."""
_MODULE = re.compile(r"[^ |/]+\.so(?:\.[0-9.]+)?")
_PTHREAD = re.compile(r"(?:__GI_)?_*(pthread_\w+?)(?:_usercnt)?")
"""Names of pthread's functions within the C library, as earlier versions have kept them."""


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

    @property
    def place(self) -> str:
        """The variable and who meets there: `cred.non_rcu in get_cred and put_cred`."""
        return f"{self.variable} in {' and '.join(dict.fromkeys(self.functions))}"


def fingerprint(calls: Iterable[str], finding: Finding) -> Fingerprint:
    """The fingerprint of a finding in a test of these calls."""
    low, high = sorted(stable_function(access.function) for access in (finding.first, finding.second))
    return Fingerprint(tuple(sorted(calls)), stable_variable(finding), (low, high))


def former_digest(calls: Iterable[str], finding: Finding) -> str:
    """The digest that earlier builds gave the finding: with line numbers, and with the C library's own names."""
    low, high = sorted(_without_build(access.function) for access in (finding.first, finding.second))
    return Fingerprint(tuple(sorted(calls)), _variable(finding, _former_symbol), (low, high)).digest


def stable_function(name: str) -> str:
    """A function's name without what the compiler and the build add to it.

    >>> stable_function("link_path_walk.part.0.constprop.0")
    'link_path_walk'
    >>> stable_function("libc.so.6!__memmove_avx_unaligned_erms")
    'libc.so.6'
    """
    name = _without_build(_module(name))
    pthread = _PTHREAD.fullmatch(name)
    return pthread[1] if pthread else name


def _without_build(name: str) -> str:
    name = _RUST_HASH.sub("", _OFFSET.sub("", name))
    return "unknown code" if _ADDRESS.fullmatch(name) else _COMPILER_SUFFIX.sub("", name) or name


def stable_variable(finding: Finding) -> str:
    """The variable's name likewise; of false sharing both names, sorted.

    A variable within a function carries a number of the compiler's (`__key.12`), which the next build changes.
    """
    return _variable(finding, _stable_symbol)


def _variable(finding: Finding, symbol: Callable[[str], str]) -> str:
    if symbol is _former_symbol:
        return " | ".join(sorted(_places(finding.object, finding.field, symbol)))
    # Where the object is not known everywhere, neither is its field.
    is_nameless = _module(finding.object) != finding.object
    places = _places(finding.object, "" if is_nameless else finding.field, symbol)
    return " | ".join(sorted(_LINE_NUMBER.sub("", place) for place in places))


def _places(name: str, field: str, symbol: Callable[[str], str]) -> list[str]:
    if not field:
        return [symbol(place) for place in name.split(" | ")]
    return [f"{symbol(name)}.{place}" for place in field.split(" | ")]


def _stable_symbol(name: str) -> str:
    return _former_symbol(_module(_CONSTANT.sub("", name)))


def _former_symbol(name: str) -> str:
    name = _RUST_HASH.sub("", _COMPILER_SUFFIX.sub("", name) or name)
    return "unknown data" if _ADDRESS.fullmatch(name) else _LOCAL_NUMBER.sub("", name)


def _module(name: str) -> str:
    """The module alone, of a place in one that has no name of its own or one that not everybody sees."""
    place = _MODULE_PLACE.fullmatch(name)
    return place[1] if place and _MODULE.fullmatch(place[1]) else name
