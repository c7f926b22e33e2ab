"""Kernel modules as files: what a module needs, and in which order they are to be loaded.

A module says so itself, in its section `.modinfo` (include/linux/module.h): `depends` names modules whose symbols it
uses, `softdep` what it asks for later by an alias (a checksum of the kernel's crypto interface). So an unpacked package
needs no modules.dep, which is made when a package is installed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from commutant.guest.elf import Elf
from commutant.support import Budget, UsageError, decompressed

_FACTS_LIMIT_BYTES = 1 << 16
"""What a module says of itself; those that file systems need take some hundred bytes."""


@dataclass(frozen=True, slots=True)
class Module:
    """A module: its name as the kernel has it, its decompressed file, and what the file says of it.

    `soft` are the aliases that it asks for. `for_processors` tells that it works on some processors only.
    """

    name: str
    image: bytes
    depends: tuple[str, ...]
    soft: tuple[str, ...]
    aliases: frozenset[str]
    for_processors: bool


def plain_name(name: str) -> str:
    """A module's name as the kernel has it, whether it is written with dashes or underscores."""
    return name.replace("-", "_")


def read_module(name: str, data: bytes, budget: Budget) -> Module:
    """The module in a file of a package, compressed or not.

    Raises UsageError if the file is damaged, or unpacks to more than the budget has left.
    """
    try:
        image = decompressed(data, budget) or data
    except UsageError as error:
        raise UsageError(f"module {name}: {error}") from None
    if not image.startswith(b"\x7fELF"):
        raise UsageError(f"module {name}: no ELF file, or compressed in an unknown way")
    section = Elf(image, name).section(".modinfo") or b""
    if len(section) > _FACTS_LIMIT_BYTES:
        raise UsageError(f"module {name}: a section .modinfo of {len(section):,} bytes; get the package again")
    facts = list(_facts(section))
    depends = [part for key, value in facts if key == "depends" for part in value.split(",") if part]
    soft = [word for key, value in facts if key == "softdep" for word in _before(value)]
    aliases = {value for key, value in facts if key == "alias"}
    return Module(
        name=plain_name(name),
        image=image,
        depends=tuple(plain_name(part) for part in depends),
        soft=tuple(soft),
        aliases=frozenset(aliases),
        for_processors=any(alias.startswith("cpu:") for alias in aliases),
    )


def load_order(wanted: str, modules: Mapping[str, Module]) -> tuple[str, ...]:
    """The modules to load for `wanted`, itself last; raises UsageError if one that it needs is not there.

    Soft dependencies that no module serves may be parts of the kernel. Modules for some processors only are left out:
    the portable ones do the same on any, and with ordinary registers.
    """
    order: dict[str, None] = {}
    visiting: set[str] = set()
    serving: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(modules):
        for alias in modules[name].aliases:
            if not modules[name].for_processors:
                serving[alias].append(name)

    def visit(name: str, needed_by: str) -> None:
        if name in order or name in visiting:
            return
        if name not in modules:
            raise UsageError(f"the module {needed_by} needs {name}, which the package does not have")
        visiting.add(name)
        module = modules[name]
        for alias in module.soft:
            for other in serving.get(alias, ()):
                visit(other, name)
        for other in module.depends:
            visit(other, name)
        order[name] = None

    try:
        visit(wanted, wanted)
    except RecursionError:
        raise UsageError(f"the module {wanted} is part of a cycle of modules that need each other") from None
    return tuple(order)


def _facts(section: bytes) -> Iterator[tuple[str, str]]:
    """The pairs `key=value` of a `.modinfo` section."""
    for entry in section.split(b"\0"):
        key, equals, value = entry.decode(errors="replace").partition("=")
        if equals:
            yield key, value


def _before(softdep: str) -> Iterator[str]:
    """The aliases after `pre:` in a text like `pre: a b post: c`."""
    before = False
    for word in softdep.split():
        if word.endswith(":"):
            before = word == "pre:"
        elif before:
            yield word
