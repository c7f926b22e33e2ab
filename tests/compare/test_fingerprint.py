"""Fingerprints: one finding has one, whatever the build, the boot and the order of the two calls."""

from __future__ import annotations

import datetime
import hashlib
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from commutant.compare import Suppression
from commutant.mtrace.finding import Access, Finding
from commutant.mtrace.fingerprint import Fingerprint, fingerprint, former_digest, stable_function
from tests.campaign.fakes import make_finding

CALLS = ("link", "rename")


def rebuilt(finding: Finding, suffixes: tuple[str, str], shift: int) -> Finding:
    """The finding as another build of the same kernel shows it: other addresses, other suffixes, other offsets."""

    def moved(access: Access, suffix: str) -> Access:
        name = access.function + suffix
        stack = (f"{name}+0x{shift:x}", *(f"{frame}.cold+0x{shift + 1:x}" for frame in access.stack[1:]))
        return structs.replace(access, function=name, stack=stack, offset=(access.offset + shift) % 56)

    return structs.replace(
        finding,
        line_address=(finding.line_address + 64 * shift) % 2**64,
        first=moved(finding.first, suffixes[0]),
        second=moved(finding.second, suffixes[1]),
    )


suffixes = st.sampled_from(
    ["", ".isra.0", ".constprop.0", ".part.0", ".part.0.constprop.12", ".cold", ".llvm.17043", "::h0123456789abcdef"]
)


@given(suffixes=st.tuples(suffixes, suffixes), shift=st.integers(0, 2**20))
def test_a_rebuild_changes_no_fingerprint(suffixes, shift):
    finding = make_finding()
    assert fingerprint(CALLS, rebuilt(finding, suffixes, shift)).digest == fingerprint(CALLS, finding).digest


def test_the_order_of_the_calls_and_the_cores_changes_none():
    finding = make_finding()
    turned = structs.replace(finding, first=finding.second, second=finding.first)
    assert fingerprint(reversed(CALLS), turned) == fingerprint(CALLS, finding)


def test_calls_field_object_and_function_each_make_another():
    finding = make_finding()
    others = [
        fingerprint(("link", "open"), finding),
        fingerprint(("link", "link", "rename"), finding),
        fingerprint(CALLS, make_finding("d_flags")),
        fingerprint(CALLS, structs.replace(finding, object="struct inode")),
        fingerprint(CALLS, make_finding(functions=("dget", "dget"))),
    ]
    assert len({mark.digest for mark in [fingerprint(CALLS, finding), *others]}) == 6


def test_the_digest_is_what_suppression_files_hold():
    """If this fails, every suppression file by fingerprint and every baseline of users loses its meaning."""
    assert fingerprint(CALLS, make_finding()).digest == "0ea546adbf68f5ed"


@pytest.mark.parametrize(
    ("name", "stable"),
    [
        ("link_path_walk.part.0.constprop.0", "link_path_walk"),
        ("dput", "dput"),
        ("d_alloc+0x38/0x90", "d_alloc"),
        ("map::get::h0123456789abcdef", "map::get"),
        ("__x64_sys_link.llvm.1234567890", "__x64_sys_link"),
        ("a.partial", "a.partial"),
        ("", ""),
        ("0xffffffff81001234", "unknown code"),
        ("ffffffff81001234", "unknown code"),
        ("deadbeef", "deadbeef"),
        ("libc.so.6+0x8ac67", "libc.so.6"),
        ("libc.so.6!__memmove_avx_unaligned_erms", "libc.so.6"),
        ("__GI___pthread_mutex_lock", "pthread_mutex_lock"),
        ("___pthread_mutex_lock", "pthread_mutex_lock"),
        ("__pthread_mutex_unlock_usercnt", "pthread_mutex_unlock"),
        ("pthread_mutex_lock", "pthread_mutex_lock"),
        ("ext4_append [ext4]", "ext4_append [ext4]"),
        ("my_pthread_wrapper", "my_pthread_wrapper"),
    ],
)
def test_names_of_functions(name, stable):
    assert stable_function(name) == stable


@pytest.mark.parametrize(
    ("object_name", "field", "other_object", "other_field"),
    [
        ("__key.12", "", "__key.7", ""),
        ("struct inode", "i_rdev | i_size", "struct inode", "i_size | i_rdev"),
        ("counters.llvm.99", "+0x8", "counters.llvm.3", "+0x8"),
        ("counters.llvm.99", "", "counters", ""),
        ("struct a.x | struct b.y", "", "struct b.y | struct a.x", ""),
        ("0xffff888003a1c040", "", "0xffff888003a1c080", ""),
        (
            "pair<long, long>[]",
            "second (HashMap::HashMap, map.hpp:23)",
            "pair<long, long>[]",
            "second (HashMap::HashMap, map.hpp:24)",
        ),
        ("Node", "a | b (Map::put, map.rs:7; by container)", "Node", "a | b (Map::put, map.rs:97; by container)"),
        ("block of 48 bytes (table_new, table.c:27)", "", "block of 48 bytes (table_new, table.c:3)", ""),
        ("A.x (f, a.c:1) | B.y (g, b.c:2)", "", "A.x (f, a.c:5) | B.y (g, b.c:6)", ""),
        ("libc.so.6+0x1d2c60", "", "libc.so.6!main_arena", "mutex"),
    ],
)
def test_variables_that_are_the_same_one(object_name, field, other_object, other_field):
    one = structs.replace(make_finding(), object=object_name, field=field)
    other = structs.replace(make_finding(), object=other_object, field=other_field)
    assert fingerprint(CALLS, one) == fingerprint(CALLS, other)
    assert fingerprint(CALLS, one) != fingerprint(CALLS, make_finding())


@pytest.mark.parametrize(
    ("object_name", "field"),
    [
        ("Node", "a (Map::get, map.rs:7; by container)"),
        ("Node", "a (Map::put, set.rs:7; by container)"),
        ("Node", "b (Map::put, map.rs:7; by container)"),
        ("Node", "a (Map::put, map.rs:7; by access)"),
    ],
)
def test_who_asked_for_memory_is_part_of_a_variable_but_for_the_line(object_name, field):
    one = structs.replace(make_finding(), object="Node", field="a (Map::put, map.rs:7; by container)")
    other = structs.replace(make_finding(), object=object_name, field=field)
    assert fingerprint(CALLS, one) != fingerprint(CALLS, other)


def test_the_digest_of_an_earlier_build_has_the_line():
    """Suppression files hold it: made by the version before, whose digest of this finding was written down."""
    one = structs.replace(make_finding(), object="Node", field="a (Map::put, map.rs:7; by container)")
    other = structs.replace(one, field="a (Map::put, map.rs:8; by container)")
    assert former_digest(CALLS, one) == "5247e28d6c609180" != former_digest(CALLS, other)
    assert fingerprint(CALLS, one) == fingerprint(CALLS, other)
    assert former_digest(CALLS, make_finding()) == fingerprint(CALLS, make_finding()).digest
    entry = Suppression("5247e28d6c609180", None, None, None, "agreed", datetime.date(2027, 1, 1))
    assert entry.fits(fingerprint(CALLS, one), former_digest(CALLS, one))
    assert not entry.fits(fingerprint(CALLS, other), former_digest(CALLS, other))


def test_a_fingerprint_is_a_value_that_can_be_sorted_and_kept_in_sets():
    one, other = fingerprint(CALLS, make_finding()), fingerprint(("link", "open"), make_finding())
    assert {one, other, fingerprint(CALLS, make_finding())} == {one, other}
    assert sorted([one, other]) == [other, one]
    with pytest.raises(FrozenInstanceError):
        one.variable = "another"
    assert not hasattr(one, "__dict__")


def test_the_digest_is_of_ascii_alone():
    mark = Fingerprint(("stat",), "größe", ("f", "g"))
    text = r'[["stat"],"gr\u00f6\u00dfe",["f","g"]]'
    assert mark.digest == hashlib.sha256(text.encode()).hexdigest()[:16]


def test_a_constant_of_a_type_is_no_part_of_it() -> None:
    """A compiler's number for it stood in names; the next one has another."""
    named = structs.replace(make_finding(), object="Bucket<i64, ()>[] (alloc, bucket.rs:50)", field="bits")
    before = structs.replace(named, object="Bucket<i64, (), {CONST#7035eb7e01971375}>[] (alloc, bucket.rs:50)")
    assert fingerprint(CALLS, before) == fingerprint(CALLS, named)
