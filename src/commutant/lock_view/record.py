"""The lock record: what the recorder (crate `locks-plugin`) writes of one process, as plain data, strictly read.

Durations are given twice: in instructions that the holding thread executed, and in nanoseconds by the clock.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from commutant.support import UsageError

SCHEMA_VERSION = 4
GRANULARITIES_BYTES = (1, 8, 64)
"""What counts as one datum when two sections are compared."""

WINDOWS_SECTIONS = (50, 64, 100, 128)
"""Sizes of windows for which the limit study is repeated, up to the size of the run's own."""

_LIMIT = 1 << 64
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Span:
    """A length of time."""

    instructions: int
    nanoseconds: int


@dataclass(frozen=True, slots=True)
class Spans:
    """Many lengths of time: their sum, and the longest by either measure."""

    total: Span
    longest: Span


@dataclass(frozen=True, slots=True)
class MappedFile:
    """A part of a file that the process had mapped at `start` to `end` (excluded)."""

    start: int
    end: int
    offset: int
    path: str


@dataclass(frozen=True, slots=True)
class AccessSide:
    """One side of a conflict: whether it wrote, and its call stack, the accessing instruction first."""

    write: bool
    addresses: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FieldRecord:
    """A datum on which pairs of sections conflict.

    `kind` is "variable" (at `address`), "beside_lock" (`offset` bytes behind the lock's start), "code" (known by the
    two instructions only) or "named" (`name`, which the recorder found out). `pairs_on_it_alone` conflict on nothing
    else. The two sides are an example.
    """

    kind: str
    name: str | None
    address: int
    offset: int | None
    pairs: int
    pairs_on_it_alone: int
    sides: tuple[AccessSide, AccessSide]


@dataclass(frozen=True, slots=True)
class KindRecord:
    """Sections that were begun by the call at `caller`, as readers or not, and that wrote anything or not.

    `hold_squares` is the sum of the squares of their lengths in instructions. Of the `compared` ones those in
    `conflicting` conflict with any other, by each of GRANULARITIES_BYTES.
    """

    caller: int
    shared: bool
    writes: bool
    sections: int
    hold: Spans
    hold_squares: float
    compared: int
    conflicting: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ThreadRecord:
    """Sections of the recorder's thread of that number, by the place of their kind; kinds behind the last have none."""

    thread: int
    sections: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KindPairRecord:
    """Pairs of sections of two kinds, by their places in the lock's list: how many were compared, and how many of them
    conflict by each of GRANULARITIES_BYTES."""

    one: int
    other: int
    compared: int
    conflicting: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Gaps:
    """What threads did between two sections of a lock: how often, the sum of their instructions and of the squares."""

    count: int
    instructions: int
    squares: float


@dataclass(frozen=True, slots=True)
class ClassRecord:
    """What a kernel's lock is a part of: a type's field or a variable (`known`), else the code that used it first; and
    the kind of lock ("spinlock", "mutex", ...)."""

    name: str
    known: bool
    family: str


@dataclass(frozen=True, slots=True)
class KernelCounts:
    """What was seen of a kernel beside its locks.

    `calls` entries of functions that acquire, of which `failed` came back without the lock; `handed_over` sections
    across a task switch; `missing_functions` the kernel does not have, or has under another name.
    """

    calls: int
    failed: int
    handed_over: int
    read_copy_update_sections: int
    missing_functions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WindowStatistics:
    """The limit study with a smaller window: pairs and sections that were compared, and those that conflict by byte."""

    window_sections: int
    pairs: int
    conflicting_pairs: int
    sections: int
    conflicting_sections: int


@dataclass(frozen=True, slots=True)
class LockRecord:
    """One lock, or `instances` of a class with their statistics together; `generations` lay there one after another.

    Counts are of crate `lock-study`, where their meaning is defined. `fields` are of `field_pairs` pairs: the newest
    of each section.
    """

    address: int
    inlined: bool
    klass: ClassRecord | None
    instances: int
    generations: int
    first_stack: tuple[int, ...]
    acquires: int
    shared_acquires: int
    contended: int
    contended_compared: int
    contended_conflicts: int
    wait: Spans
    sections: int
    hold: Spans
    set_bytes: int
    written_bytes: int
    device_sections: int
    handed_over: int
    releases_without_acquire: int
    never_released: int
    compared_sections: int
    conflicting_sections: tuple[int, ...]
    compared_pairs: int
    conflicting_pairs: tuple[int, ...]
    conflicting_pairs_without_per_cpu: tuple[int, ...]
    conflicting_bytes: int
    set_bytes_of_conflicting: int
    windows: tuple[WindowStatistics, ...]
    outside_reads: int
    outside_writes: int
    speed_ups: tuple[float | None, ...]
    kinds: tuple[KindRecord, ...]
    threads: tuple[ThreadRecord, ...]
    kind_pairs: tuple[KindPairRecord, ...]
    gaps: Gaps
    field_pairs: int
    fields: tuple[FieldRecord, ...]


@dataclass(frozen=True, slots=True)
class Recording:
    """What was recorded of one process."""

    process_id: int
    threads: int
    instructions: int
    nanoseconds: int
    crowds: tuple[int, ...]
    mappings: tuple[MappedFile, ...]
    locks: tuple[LockRecord, ...]
    kernel: KernelCounts | None


def read_record(path: Path) -> Recording:
    """Reads a record; raises UsageError, which says where it is not what it should be."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:  # not only of JSON: an integer may have too many digits
        raise UsageError(f"{path}: expected a lock record: {error}") from None
    except RecursionError:
        raise UsageError(f"{path}: expected a lock record, got JSON nested too deeply") from None
    return _record(_Reader(document, str(path)))


class _Reader:
    """A JSON object whose members are asked for by name and type."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, Mapping):
            raise UsageError(f"{where}: expected an object, got {type(value).__name__}")
        self._value = value
        self.where = where

    def _get(self, name: str, types: type | tuple[type, ...], meaning: str) -> Any:
        value = self._value.get(name)
        if not isinstance(value, types) or (isinstance(value, bool) and types is not bool):
            raise UsageError(f"{self.where}: expected {meaning} as {name!r}, got {value!r:.40}")
        return value

    def number(self, name: str) -> int:
        value: int = self._get(name, int, "a number")
        if not 0 <= value < _LIMIT:
            raise UsageError(f"{self.where}: expected a number from 0 below 2^64 as {name!r}, got {value!r:.40}")
        return value

    def measure(self, name: str) -> float:
        value: float = self._get(name, (int, float), "a number")
        if not 0 <= value < float("inf"):
            raise UsageError(f"{self.where}: expected a number from 0 as {name!r}, got {value!r:.40}")
        return float(value)

    def text(self, name: str) -> str:
        value: str = self._get(name, str, "a text")
        return value

    def flag(self, name: str) -> bool:
        value: bool = self._get(name, bool, "true or false")
        return value

    def object(self, name: str) -> _Reader:
        return _Reader(self._value.get(name), f"{self.where}, {name!r}")

    def list(self, name: str, read: Callable[[_Reader], T]) -> tuple[T, ...]:
        items: Sequence[Any] = self._get(name, list, "a list")
        return tuple(read(_Reader(item, f"{self.where}, {name!r}[{index}]")) for index, item in enumerate(items))

    def numbers(self, name: str, length: int | None = None) -> tuple[int, ...]:
        items: list[Any] = self._get(name, list, "a list of numbers")
        for item in items:
            if not isinstance(item, int) or isinstance(item, bool) or not 0 <= item < _LIMIT:
                raise UsageError(f"{self.where}: expected numbers from 0 below 2^64 in {name!r}, got {item!r:.40}")
        if length is not None and len(items) != length:
            raise UsageError(f"{self.where}: expected {length} numbers in {name!r}, got {len(items)}")
        return tuple(items)

    def texts(self, name: str) -> tuple[str, ...]:
        items: list[Any] = self._get(name, list, "a list of texts")
        for item in items:
            if not isinstance(item, str):
                raise UsageError(f"{self.where}: expected texts in {name!r}, got {item!r:.40}")
        return tuple(items)

    def optional(self, name: str, read: Callable[[_Reader], T]) -> T | None:
        return None if self._value.get(name) is None else read(self.object(name))

    def ratios(self, name: str, length: int) -> tuple[float | None, ...]:
        items: list[Any] = self._get(name, list, "a list of ratios")
        for item in items:
            if item is not None and (not isinstance(item, int | float) or isinstance(item, bool) or item < 0):
                raise UsageError(f"{self.where}: expected ratios in {name!r}, got {item!r:.40}")
        if len(items) != length:
            raise UsageError(f"{self.where}: expected {length} ratios in {name!r}, got {len(items)}")
        return tuple(items)


def _record(reader: _Reader) -> Recording:
    version = reader.number("schema_version")
    if reader.text("kind") != "lock-record" or version != SCHEMA_VERSION:
        raise UsageError(f"{reader.where}: expected a lock record of version {SCHEMA_VERSION}, got version {version}")
    crowds = reader.numbers("crowds")
    return Recording(
        process_id=reader.number("process_id"),
        threads=reader.number("threads"),
        instructions=reader.number("instructions"),
        nanoseconds=reader.number("nanoseconds"),
        crowds=crowds,
        mappings=reader.list("mappings", _mapping),
        locks=reader.list("locks", lambda lock: _lock(lock, len(crowds))),
        kernel=reader.optional("kernel", _kernel),
    )


def _mapping(reader: _Reader) -> MappedFile:
    numbers = (reader.number("start"), reader.number("end"), reader.number("offset"))
    return MappedFile(*numbers, reader.text("path"))


def _span(reader: _Reader) -> Span:
    return Span(reader.number("instructions"), reader.number("nanoseconds"))


def _spans(reader: _Reader) -> Spans:
    return Spans(_span(reader.object("total")), _span(reader.object("longest")))


def _side(reader: _Reader) -> AccessSide:
    return AccessSide(reader.flag("write"), reader.numbers("addresses"))


def _field(reader: _Reader) -> FieldRecord:
    kind = reader.text("kind")
    if kind not in ("variable", "beside_lock", "code", "named"):
        raise UsageError(f"{reader.where}: expected variable, beside_lock, code or named as 'kind', got {kind!r:.40}")
    sides = reader.list("stacks", _side)
    if len(sides) != 2:
        raise UsageError(f"{reader.where}: expected two stacks, got {len(sides)}")
    offset = reader.number("offset") if kind == "beside_lock" else None
    counts = (reader.number("pairs"), reader.number("pairs_on_it_alone"))
    name = reader.text("name") if kind == "named" else None
    return FieldRecord(kind, name, reader.number("address"), offset, *counts, (sides[0], sides[1]))


def _kind(reader: _Reader) -> KindRecord:
    return KindRecord(
        caller=reader.number("caller"),
        shared=reader.flag("shared"),
        writes=reader.flag("writes"),
        sections=reader.number("sections"),
        hold=_spans(reader.object("hold")),
        hold_squares=reader.measure("hold_squares"),
        compared=reader.number("compared"),
        conflicting=reader.numbers("conflicting", len(GRANULARITIES_BYTES)),
    )


def _thread(reader: _Reader, kind_count: int) -> ThreadRecord:
    sections = reader.numbers("sections")
    if len(sections) > kind_count:
        raise UsageError(f"{reader.where}: expected sections of {kind_count} kinds, got {len(sections)}")
    return ThreadRecord(reader.number("thread"), sections)


def _kind_pair(reader: _Reader, kind_count: int) -> KindPairRecord:
    one, other = reader.numbers("kinds", 2)
    if max(one, other) >= kind_count:
        raise UsageError(f"{reader.where}: expected two of {kind_count} kinds, got {one} and {other}")
    conflicting = reader.numbers("conflicting", len(GRANULARITIES_BYTES))
    return KindPairRecord(one, other, reader.number("compared"), conflicting)


def _gaps(reader: _Reader) -> Gaps:
    return Gaps(reader.number("count"), reader.number("instructions"), reader.measure("squares"))


def _window(reader: _Reader) -> WindowStatistics:
    return WindowStatistics(
        window_sections=reader.number("window_sections"),
        pairs=reader.number("pairs"),
        conflicting_pairs=reader.number("conflicting_pairs"),
        sections=reader.number("sections"),
        conflicting_sections=reader.number("conflicting_sections"),
    )


def _kernel(reader: _Reader) -> KernelCounts:
    return KernelCounts(
        calls=reader.number("calls"),
        failed=reader.number("failed"),
        handed_over=reader.number("handed_over"),
        read_copy_update_sections=reader.number("read_copy_update_sections"),
        missing_functions=reader.texts("missing_functions"),
    )


def _class(reader: _Reader) -> ClassRecord:
    return ClassRecord(reader.text("name"), reader.flag("known"), reader.text("family"))


def _lock(reader: _Reader, crowd_count: int) -> LockRecord:
    source = reader.text("source")
    if source not in ("annotated", "inlined", "kernel"):
        raise UsageError(f"{reader.where}: expected annotated, inlined or kernel as 'source', got {source!r:.40}")
    pairs = reader.object("pairs")
    granularities = len(GRANULARITIES_BYTES)
    kinds = reader.list("kinds", _kind)
    return LockRecord(
        address=reader.number("address"),
        inlined=source == "inlined",
        klass=reader.optional("class", _class),
        instances=reader.number("instances"),
        generations=reader.number("generations"),
        first_stack=reader.numbers("first_stack"),
        acquires=reader.number("acquires"),
        shared_acquires=reader.number("shared_acquires"),
        contended=reader.number("contended"),
        contended_compared=reader.number("contended_compared"),
        contended_conflicts=reader.number("contended_conflicts"),
        wait=_spans(reader.object("wait")),
        sections=reader.number("sections"),
        hold=_spans(reader.object("hold")),
        set_bytes=reader.number("set_bytes"),
        written_bytes=reader.number("written_bytes"),
        device_sections=reader.number("device_sections"),
        handed_over=reader.number("handed_over"),
        releases_without_acquire=reader.number("releases_without_acquire"),
        never_released=reader.number("never_released"),
        compared_sections=reader.number("compared_sections"),
        conflicting_sections=reader.numbers("conflicting_sections", granularities),
        compared_pairs=pairs.number("compared"),
        conflicting_pairs=pairs.numbers("conflicting", granularities),
        conflicting_pairs_without_per_cpu=pairs.numbers("conflicting_without_per_cpu", granularities),
        conflicting_bytes=pairs.number("conflicting_bytes"),
        set_bytes_of_conflicting=pairs.number("set_bytes"),
        windows=reader.list("windows", _window),
        outside_reads=reader.number("outside_reads"),
        outside_writes=reader.number("outside_writes"),
        speed_ups=reader.ratios("speed_ups", crowd_count),
        kinds=kinds,
        threads=reader.list("threads", lambda thread: _thread(thread, len(kinds))),
        kind_pairs=reader.list("kind_pairs", lambda pair: _kind_pair(pair, len(kinds))),
        gaps=_gaps(reader.object("gaps")),
        field_pairs=reader.number("field_pairs"),
        fields=reader.list("fields", _field),
    )
