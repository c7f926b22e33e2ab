"""What a header defines, by name: functions, macros and types, each with its text; and who mentions what.

C is split at the outermost level only: at `;`, after the body of a function, and after a macro in capitals that makes
definitions and has no `;`. That needs no grammar, and errs, where it does, by putting more under one name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_ATTRIBUTE = re.compile(
    r"\b__(?:attribute__|printf|scanf|alloc_size|malloc|acquires|releases|must_hold)\s*\(\(?[^()]*\)?\)"
)
_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|[{}();]')
_DEFINE = re.compile(r"#\s*define\s+(\w+)")
_TYPE = re.compile(r"(?:typedef\s+)?(?:struct|union|enum)\s*(?:__\w+\s*)*(\w*)[^{}();=]*\{")
_CALLED = re.compile(r"(\w+)\s*\(")
_MAKES_DEFINITIONS = re.compile(r"\s*[A-Z][A-Z0-9_]*\s*\(")
_GOES_ON = re.compile(r"\s*[;{]")
_NAME = re.compile(r"[A-Za-z_]\w*")
_MEMBER = re.compile(r"(?:->|\.|,)\s*([A-Za-z_]\w*)")


_LANGUAGE = """
auto break case char const continue default do double else enum extern float for goto if inline int long register
restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool u8 u16 u32 u64
s8 s16 s32 s64 __u8 __u16 __u32 __u64 size_t ssize_t loff_t NULL true false defined typeof __typeof__ asm asmlinkage
__always_inline noinline __inline __init __exit __user __percpu __rcu __iomem __must_check __maybe_unused __attribute__
__aligned __packed __pure __cold __deprecated notrace likely unlikely include define
"""
_COMMON = frozenset(_LANGUAGE.split())


class Kind(Enum):
    """What a definition is."""

    CODE = "function or macro"
    TYPE = "type"
    DIRECTIVE = "directive"
    EVENT = "macro that makes definitions"


@dataclass(frozen=True, slots=True)
class Definition:
    """A part of a header; `name` is empty for a type without one."""

    kind: Kind
    name: str
    text: str


def definitions(text: str) -> list[Definition]:
    """The definitions and declarations of a header, in order; conditions of the preprocessor are parts of their own."""
    text = _COMMENT.sub(" ", text).replace("\\\n", " ")
    found, code, depth = [], [], 0
    for line in text.splitlines():
        stripped = line.strip()
        if defined := _DEFINE.match(stripped):
            found.append(Definition(Kind.CODE, defined[1], _spaces(stripped)))
        elif stripped.startswith("#"):
            if depth <= 0:  # inside a type or a function they are parts of it
                found.append(Definition(Kind.DIRECTIVE, "", _spaces(stripped)))
        else:
            code.append(line)
            depth += line.count("{") - line.count("}")
    found += [_definition(part) for part in _parts("\n".join(code)) if part]
    return found


def changed(old: str, new: str) -> list[Definition]:
    """What only one of two versions of a header defines so."""
    before, after = definitions(old), definitions(new)
    conditions = [[one for one in parts if one.kind is Kind.DIRECTIVE] for parts in (before, after)]
    if conditions[0] != conditions[1]:  # in another order they mean something else
        return [*conditions[0], *conditions[1]]
    return [one for one in before if one not in set(after)] + [one for one in after if one not in set(before)]


def names_in(text: str) -> set[str]:
    """All names in a text but those of the language and its attributes."""
    return set(_NAME.findall(text)) - _COMMON


def members_in(text: str) -> set[str]:
    """What may be a member in a text: names after `->` or `.`, and arguments, which macros put there."""
    return set(_MEMBER.findall(text))


def _parts(code: str) -> Iterable[str]:
    depth, start, is_body = 0, 0, False
    for token in _TOKEN.finditer(code):
        mark = token[0]
        if mark in "({":
            if mark == "{" and depth == 0:
                head = code[start : token.start()]
                is_body = ")" in head and "=" not in head and not _TYPE.match(f"{head.strip()} {{")
            depth += 1
        elif mark in ")}":
            depth = max(0, depth - 1)
        is_made = mark == ")" and _MAKES_DEFINITIONS.match(code, start) and not _GOES_ON.match(code, token.end())
        if depth == 0 and (mark == ";" or (mark == "}" and is_body) or is_made):
            yield _spaces(code[start : token.end()])
            start, is_body = token.end(), False
    yield _spaces(code[start:])


def _definition(text: str) -> Definition:
    if found := _TYPE.match(text):
        return Definition(Kind.TYPE, found[1], text)
    plain = _ATTRIBUTE.sub(" ", text)
    called = (one for one in _CALLED.finditer(plain.partition("{")[0].partition("=")[0]) if one[1] not in _COMMON)
    if found := next(called, None):
        return Definition(Kind.EVENT if found[1].isupper() else Kind.CODE, found[1], text)
    names = [name for name in _NAME.findall(plain.partition("=")[0]) if name not in _COMMON]
    return Definition(Kind.CODE, names[-1] if names else "", text)


def _spaces(text: str) -> str:
    return " ".join(text.split())
