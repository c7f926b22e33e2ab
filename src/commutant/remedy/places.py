"""Names of fields in findings and pictures as places in a type: `struct cred.non_rcu` is `cred.non_rcu`.

A place may be a member with all that is in it (`vm_area_struct.shared` holds `vm_area_struct.shared.rb.rb_left`), a
part of one, or a variable. Indices of arrays are no part of a place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_PREFIXES = ("per-CPU ", "struct ", "union ")
_OWNER = re.compile(r" \((?:[^()]|\([^()]*\))*\)$")


def place_of(name: str) -> str:
    """A field's name without the words before the type and the brackets of arrays.

    >>> place_of("struct files_struct.fd_array[]")
    'files_struct.fd_array'
    """
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name.replace("[]", "")


def without_owner(name: str) -> str:
    """A name without who asked for its memory.

    >>> without_owner("Mutex<..>.inner (make, adapter.rs:9; by container)")
    'Mutex<..>.inner'
    >>> without_owner("Map<i64, (i64, u8)>.lock")
    'Map<i64, (i64, u8)>.lock'
    """
    return _OWNER.sub("", name)


def member_of(name: str) -> tuple[str, bool]:
    """The member of the outermost type that a field's name lies in, as a place, and whether it is an array.

    >>> member_of("struct vm_area_struct.shared.rb.rb_left")
    ('vm_area_struct.shared', False)
    >>> member_of("Guarded<..>[].state")
    ('Guarded<..>.state', False)
    >>> member_of("used[]")
    ('used', True)
    """
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    parts = path_of(name)[:2]
    return ".".join(parts).replace("[]", ""), parts[-1].endswith("[]")


def parts_of(names: Iterable[str]) -> dict[str, str]:
    """By name, the part of its member at which these names of one member first differ, as a place; none where they do
    not. A wrapper's member is no place that its reader can change: what is in it is.

    >>> parts_of(["Map.all.count.value", "Map.all.table[].head", "Map.all.table[].tail"])["Map.all.count.value"]
    'Map.all.count'
    """
    paths = {name: path_of(place_of(name)) for name in names}
    for depth in range(3, max(map(len, paths.values()), default=0) + 1):
        if len({tuple(path[:depth]) for path in paths.values()}) > 1:
            return {name: ".".join(path[:depth]) for name, path in paths.items() if len(path) >= depth}
    return {}


def path_of(name: str) -> list[str]:
    """The parts of a name, at dots; those within brackets, as of generic arguments and tuples, and of a range of bit
    fields, are not looked at.

    >>> path_of("Guarded<core::cell::Cell<..>>.value.first..last")
    ['Guarded<core::cell::Cell<..>>', 'value', 'first..last']
    """
    return _split(name, ".")


def places_of(text: str) -> list[str]:
    """Several places with commas between them.

    >>> places_of("Map<K, V>.head,Map<K, V>.tail")
    ['Map<K, V>.head', 'Map<K, V>.tail']
    >>> places_of("(i64, u8).0,(i64, u8).1")
    ['(i64, u8).0', '(i64, u8).1']
    """
    return [one.strip() for one in _split(text, ",")]


def _split(text: str, separator: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "<([") - (letter in ")]" or (letter == ">" and text[at - 1 : at] != "-"))
        if letter == separator and depth <= 0 and separator not in (text[at - 1 : at], text[at + 1 : at + 2]):
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


def lies_in(name: str, place: str) -> bool:
    """Whether the field of that name is the place or a part of it."""
    found = place_of(name)
    return found == place or found.startswith(f"{place}.")
