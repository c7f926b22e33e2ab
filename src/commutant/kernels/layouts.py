"""Types of kernels, and how they differ: sizes, and where members lie."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from commutant._native import KernelTypes
from commutant.support import RunError

_MEMBERS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Layout:
    """A structure: its size, and for each member, those of structures within it included, offset and size in bits."""

    size_bytes: int
    members: Mapping[str, tuple[int, int]]

    def starts(self) -> dict[str, tuple[int, int]]:
        """Where each outermost member begins, and what it takes."""
        found: dict[str, tuple[int, int]] = {}
        for path, (offset, size) in self.members.items():
            name = path.partition(".")[0]
            start, end = found.get(name, (offset, offset))
            found[name] = min(start, offset), max(end, offset + size)
        return {name: (start, end - start) for name, (start, end) in found.items()}


def read_types(btf: bytes) -> KernelTypes:
    """The types in BTF, raw or of a vmlinux; raises RunError."""
    try:
        return KernelTypes(btf)
    except ValueError as error:
        raise RunError(f"types of a kernel: {error}") from None


def layout_of(types: KernelTypes, name: str) -> Layout | None:
    """The layout of a structure or union; None if there is none of that name."""
    found = types.structure(name)
    if found is None:
        return None
    size_bytes, members = found
    return Layout(size_bytes, {path: (offset, size) for path, offset, size, _bits, _union in members})


def moved_members(old: Layout, new: Layout) -> set[str]:
    """The outermost members that lie elsewhere, have another size, or are in one of the two only."""
    before, after = old.starts(), new.starts()
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


@dataclass(frozen=True, slots=True)
class Difference:
    """A type of the reference kernel that another has otherwise: sizes (None: not there) and members elsewhere."""

    name: str
    reference_bytes: int
    size_bytes: int | None
    members: tuple[str, ...]

    def __str__(self) -> str:
        if self.size_bytes is None:
            return f"{self.name} is not there"
        size = "" if self.size_bytes == self.reference_bytes else f"{self.size_bytes - self.reference_bytes:+,} bytes"
        shown = ", ".join(self.members[:_MEMBERS_SHOWN])
        more = f" and {len(self.members) - _MEMBERS_SHOWN} more" if len(self.members) > _MEMBERS_SHOWN else ""
        moved = f"elsewhere: {shown}{more}" if shown else ""
        return f"{self.name}: {', '.join(one for one in (size, moved) if one)}"


def differences(reference: KernelTypes, types: KernelTypes, names: Collection[str]) -> list[Difference]:
    """Of the named types those that lie otherwise than in the reference; names that it has not are left out."""
    found = []
    for name in sorted(names):
        old, new = layout_of(reference, name), layout_of(types, name)
        if old is None:
            continue
        if new is None:
            found.append(Difference(name, old.size_bytes, None, ()))
            continue
        moved = moved_members(old, new)
        if moved or old.size_bytes != new.size_bytes:
            found.append(Difference(name, old.size_bytes, new.size_bytes, tuple(sorted(moved))))
    return found
