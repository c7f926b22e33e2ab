"""What a run cannot have met, told beside its percentage: absence of findings says nothing about it."""

from __future__ import annotations

from collections.abc import Mapping

from commutant.report.data import read_sets

_NAMED = ("names", "posix")
"""Interfaces of calls on names and users, of which their models have few kinds."""

_SURROUNDED = ("scalefs", "plain")
_SURROUNDINGS = {
    "names=long": "names beyond 200 bytes",
    "depth=4": "paths of several components",
    "users=2": "several users",
}
"""What these targets' options reach, and no other target does."""


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
        left = {option: what for option, what in _SURROUNDINGS.items() if option.partition("=")[0] not in keys}
        hint = f" ({kind}:{','.join(left)})" if kind in _SURROUNDED else ""
        if left:
            found.append(", ".join(left.values()) + hint)
    if kind == "scalefs":
        found.append("cores that the seed did not choose (scalefs:seed=N)")
    if largest:
        found.append(f"sets of more than {largest} calls (--size {largest + 1} --sample N)")
    return found
