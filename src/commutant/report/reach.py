"""What a run cannot have met, said next to its percentage: absence of findings says nothing about it."""

from __future__ import annotations

from collections.abc import Mapping

from commutant.report.data import read_sets

_NAMED = ("names",)
"""Interfaces of calls on names and users other than those of POSIX; their models have few kinds of these."""

_SURROUNDINGS = {"names": "names beyond 200 bytes", "depth": "paths of several components", "users": "several users"}
"""What tests of these models have none of, by the option that adds it where a target has one."""

_WITH_ALL = "posix"
"""The interface whose tests have paths of several components and several users."""

_OPTIONS = {
    "scalefs": {"names": "long", "depth": "4", "users": "2"},
    "plain": {"names": "long", "depth": "4", "users": "2"},
    "linux": {"names": "30", "security": "on"},
}
"""Options of targets that reach what runs without them do not, each with a value to begin with."""

_ON_LINUX = {"names": "names beyond 7 letters", "security": "security modules"}


def not_reached(summary: Mapping[str, object]) -> list[str]:
    """In a few words each, what no test of such a run can reach; in the order of `docs/notes/checks.md`.

    Raises UsageError if the document is no `summary.json`.
    """
    kind, _, options = str(summary.get("target", "")).partition(":")
    keys = {option.partition("=")[0] for option in options.split(",")}
    interface = str(summary.get("interface", ""))
    largest = max((len(counts.calls) for counts in read_sets(summary)), default=0)
    found = []
    if kind == "scalefs" and "warm" not in keys:
        found.append("a core's 64th call and maintenance that is due (scalefs:warm=64)")
    if kind == "linux":
        found.append("work that the kernel puts off to later calls")
    if interface in _NAMED or interface.startswith("posix"):
        found += _without_options(kind, keys, interface)
        if str(summary.get("level", "full")) != "full":
            found.append("calls that differ in flags alone, such as an open for reading (--level full)")
    if kind == "scalefs":
        found.append("cores that the seed did not choose (scalefs:seed=N)")
    if largest:
        found.append(f"sets of more than {largest} calls (--size {largest + 1} --sample N)")
    return found


def _without_options(kind: str, keys: set[str], interface: str) -> list[str]:
    """What options of the target would add, with them; and what no option of this target adds."""
    options = _OPTIONS.get(kind, {})
    words = _SURROUNDINGS | (_ON_LINUX if kind == "linux" else {})
    left = [key for key in options if key not in keys]
    never = [what for key, what in _SURROUNDINGS.items() if key not in options and interface != _WITH_ALL]
    found = []
    if left:
        hint = ",".join(f"{key}={options[key]}" for key in left)
        found.append(f"{', '.join(words[key] for key in left)} ({kind}:{hint})")
    if never:
        found.append(", ".join(never))
    return found
