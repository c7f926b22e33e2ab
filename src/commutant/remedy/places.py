"""Names of fields in findings and pictures as places in a type: `struct cred.non_rcu` is `cred.non_rcu`.

A place may be a member with all that is in it (`vm_area_struct.shared` holds `vm_area_struct.shared.rb.rb_left`), a
part of one, or a variable. Indices of arrays are no part of a place.
"""

from __future__ import annotations

_ARGUMENTS, _ASIDE = "<..>", "<\0>"
"""Long arguments of a type, as names show them, and what stands for them while a name is taken apart."""
_PREFIXES = ("per-CPU ", "struct ", "union ")


def parts_of(place: str, most: int = 0) -> list[str]:
    """The names that a place consists of; at most so many are split off. Dots in a type's arguments part nothing.

    >>> parts_of("Mutex<..>.inner")
    ['Mutex<..>', 'inner']
    """
    parts = place.replace(_ARGUMENTS, _ASIDE).split(".", most or -1)
    return [part.replace(_ASIDE, _ARGUMENTS) for part in parts]


def place_of(name: str) -> str:
    """A field's name without the words before the type and the brackets of arrays.

    >>> place_of("struct files_struct.fd_array[]")
    'files_struct.fd_array'
    """
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name.replace("[]", "")


def member_of(name: str) -> tuple[str, bool]:
    """The member of the outermost type that a field's name lies in, as a place, and whether it is an array.

    >>> member_of("struct vm_area_struct.shared.rb.rb_left")
    ('vm_area_struct.shared', False)
    """
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    parts = parts_of(name, 2)
    return ".".join(parts[:2]).replace("[]", ""), len(parts) > 1 and parts[1].endswith("[]")


def lies_in(name: str, place: str) -> bool:
    """Whether the field of that name is the place or a part of it."""
    found = place_of(name)
    return found == place or found.startswith(f"{place}.")
