"""From a target argument (`linux:fs=ramfs,kernel=PATH`) to the target that it names."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import cast

from commutant.support import UsageError, did_you_mean
from commutant.targets.base import Target
from commutant.targets.options import Option

Factory = Callable[[str, Mapping[str, str]], Target]
"""Makes a target from the argument as given and its options; cheap, raises UsageError for options it does not know."""

TARGETS: dict[str, str] = {
    "gallery": "commutant.targets.gallery:create",
    "library": "commutant.targets.library:create",
    "linux": "commutant.targets.linux:create",
    "olf": "commutant.targets.olf:create",
    "plain": "commutant.targets.plain:create",
    "scalefs": "commutant.targets.scalefs:create",
}
"""The targets by name, each as `module:factory`; the module is imported when the target is asked for."""

_OPTIONS: dict[str, str] = {
    "gallery": "commutant.targets.library.options",
    "library": "commutant.targets.library.options",
    "linux": "commutant.targets.linux.target",
    "olf": "commutant.targets.olf",
    "plain": "commutant.targets.plain",
    "scalefs": "commutant.targets.scalefs",
}
"""The modules that say in `OPTIONS` what a target takes."""

NAMED = "name"
"""The option that a target's first word is, where it stands alone: `gallery:dashmap` is `gallery:name=dashmap`."""

_WITH_NAME = frozenset({"gallery"})

_MAX_ARGUMENT_CHARACTERS = 4096


def parse_target(argument: str) -> tuple[str, dict[str, str]]:
    """Splits `NAME[:key=value,...]` into the name and the options; raises UsageError. Two commas are one of a value.
    Targets of which there are many take a name in front of the options.

    >>> parse_target("linux:fs=ext4,mount=noatime,,sync")
    ('linux', {'fs': 'ext4', 'mount': 'noatime,sync'})
    """
    name, _, rest = argument.partition(":")
    if len(argument) > _MAX_ARGUMENT_CHARACTERS or "\0" in argument:
        raise UsageError(f"a target is at most {_MAX_ARGUMENT_CHARACTERS} characters, without NUL")
    if name not in TARGETS:
        guess = did_you_mean(name, TARGETS)
        known = ", ".join(sorted(TARGETS))
        raise UsageError(f"unknown target {name!r}; expected one of {known}, as in linux:fs=ramfs{guess}")
    options: dict[str, str] = {}
    # Doubled commas stand aside as NUL, which no argument has.
    for part in rest.replace(",,", "\0").split(",") if rest else ():
        item = part.replace("\0", ",")
        key, equals, value = item.partition("=")
        if name in _WITH_NAME and not equals and not options:
            key, equals, value = NAMED, "=", item
        if not equals or not key or not value:
            raise UsageError(f"target {argument!r}: expected {name}:key=value,..., got {item!r}")
        if key in options:
            raise UsageError(f"target {argument!r}: {key!r} is given twice")
        options[key] = value
    return name, options


def target_options(name: str) -> Mapping[str, Option]:
    """The options that the target of this name takes, by key; none of a name that is not known."""
    module = _OPTIONS.get(name)
    options: Mapping[str, Option] = importlib.import_module(module).OPTIONS if module else {}
    return options


def load_target(argument: str) -> Target:
    """The target that the argument names, not started yet; raises UsageError."""
    name, options = parse_target(argument)
    module_name, _, factory_name = TARGETS[name].partition(":")
    factory = cast(Factory, getattr(importlib.import_module(module_name), factory_name))
    return factory(argument, options)
