"""Headers as definitions: what a change of a function is called, whatever macros stand before it."""

from __future__ import annotations

import pytest

from commutant.kernels.headers import Kind, changed, definitions

HEADER = """
DEFINE_CLASS(override_creds,
\t     const struct cred *,
\t     revert_creds(_T),
\t     override_creds(override_cred), const struct cred *override_cred)

#define scoped() CLASS(override_creds, x)
static inline int get(struct cred *cred)
{
\tcred->usage = 0;
\treturn 1;
}
SYSCALL_DEFINE1(close, unsigned int, fd)
{
\treturn fd;
}
DEFINE_EVENT(a, b);
struct cred { int usage; DECLARE_BITMAP(bits, 3); };
"""


def test_a_macro_without_a_semicolon_is_a_part_of_its_own() -> None:
    found = [(one.kind, one.name) for one in definitions(HEADER)]
    assert found == [
        (Kind.CODE, "scoped"),
        (Kind.EVENT, "DEFINE_CLASS"),
        (Kind.CODE, "get"),
        (Kind.EVENT, "SYSCALL_DEFINE1"),
        (Kind.EVENT, "DEFINE_EVENT"),
        (Kind.TYPE, "cred"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("usage = 0;", "usage = 1;", {(Kind.CODE, "get")}),
        ("revert_creds(_T)", "revert(_T)", {(Kind.EVENT, "DEFINE_CLASS")}),
        ("return fd;", "return 0;", {(Kind.EVENT, "SYSCALL_DEFINE1")}),
        ("int usage;", "long usage;", {(Kind.TYPE, "cred")}),
    ],
)
def test_a_change_is_known_by_what_it_changes(old: str, new: str, what: set[tuple[Kind, str]]) -> None:
    assert {(one.kind, one.name) for one in changed(HEADER, HEADER.replace(old, new))} == what
