"""What a machine takes for what was counted: read from a file, in which each number stands with its source.

[instruction_ns]
value = 0.2
machine = "..."
source = "..."
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import structs

from commutant.documents import Measure, Part
from commutant.support import UsageError, read_regular

DEFAULT = Path(__file__).parent / "constants.toml"
_LONGEST_BYTES = 1 << 16
_LEAST_NS, _MOST_NS = 1e-6, 1e9
"""What no machine takes is no constant: a number without bounds would make times that are none."""


class MachineConstant(Part, frozen=True):
    """A number, the machine that it holds for, and where it comes from."""

    value: Measure
    machine: str
    source: str


class Constants(Part, frozen=True):
    """Nanoseconds of an instruction that waits for no other core, of a miss that another core's cache serves, and of an
    upgrade: a line that others had is taken from them."""

    instruction_ns: MachineConstant
    miss_ns: MachineConstant
    upgrade_ns: MachineConstant

    def changed(self, name: str, factor: float) -> Constants:
        """These, but one of them this many times as large."""
        constant: MachineConstant = getattr(self, name)
        return structs.replace(self, **{name: structs.replace(constant, value=constant.value * factor)})


NAMES = Constants.__struct_fields__


def read_constants(path: Path | None) -> Constants:
    """The constants of a file, or those that are shipped; raises UsageError in one line if one is missing or no
    number."""
    path = path or DEFAULT
    try:
        content = read_regular(path, _LONGEST_BYTES)
    except OSError as error:
        raise UsageError(f"{path}: expected a file of constants: {error.strerror or error}") from None
    if len(content) > _LONGEST_BYTES:
        raise UsageError(f"{path}: expected a file of at most {_LONGEST_BYTES} bytes")
    try:
        table = tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: expected TOML: {error}") from None
    if unknown := sorted(set(table) - set(NAMES)):
        raise UsageError(f"{path}: expected {', '.join(NAMES)}, got {unknown[0]!r:.80}")
    return Constants(**{name: _constant(path, name, table) for name in NAMES})


def _constant(path: Path, name: str, table: Mapping[str, Any]) -> MachineConstant:
    entry = table.get(name)
    if not isinstance(entry, dict):
        raise UsageError(f"{path}: expected a table [{name}] with value, machine and source, got none")
    value = entry.get("value")
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not _LEAST_NS <= value <= _MOST_NS:
        raise UsageError(
            f"{path}: expected nanoseconds from {_LEAST_NS:g} to {_MOST_NS:g} for {name}.value, got {value!r:.80}"
        )
    for key in ("machine", "source"):
        if not isinstance(entry.get(key), str) or not entry[key].strip():
            raise UsageError(f"{path}: expected a text for {name}.{key}, got {entry.get(key)!r:.80}")
    return MachineConstant(float(value), entry["machine"], entry["source"])
