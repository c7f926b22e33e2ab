"""The lock record: what the recorder (crate `locks-plugin`) writes of one process, as plain data, strictly read.

Durations are given twice: in instructions that the holding thread executed, and in nanoseconds by the clock.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, field

from commutant.documents import Count, Document, DocumentError, Measure, Part, read
from commutant.support import UsageError, read_regular

MAX_RECORD_BYTES = 1 << 28
"""What our recorder writes of the largest programs is some MiB."""

GRANULARITIES_BYTES = (1, 8, 64)
"""What counts as one datum when two sections are compared."""

WINDOWS_SECTIONS = (50, 64, 100, 128)
"""Sizes of windows for which the limit study is repeated, up to the size of the run's own."""

ByGranularity = Annotated[tuple[Count, ...], Meta(min_length=3, max_length=3)]
"""A count by each of GRANULARITIES_BYTES."""


class Span(Part, frozen=True):
    """A length of time."""

    instructions: Count
    nanoseconds: Count


class Spans(Part, frozen=True):
    """Many lengths of time: their sum, and the longest by either measure."""

    total: Span
    longest: Span


class MappedFile(Part, frozen=True):
    """A part of a file that the process had mapped at `start` to `end` (excluded)."""

    start: Count
    end: Count
    offset: Count
    path: str


class StackMemory(Part, frozen=True):
    """The memory of a stack, at `start` to `end` (excluded); `thread` is the recorder's number, 0 for the first."""

    thread: Count
    start: Count
    end: Count


class StartUp(Part, frozen=True):
    """What a program did before it had a second thread: acquires of this many locks. No lock kept anyone out then."""

    instructions: Count
    nanoseconds: Count
    acquires: Count
    locks: Count


class AccessSide(Part, frozen=True):
    """One side of a conflict: whether it wrote, and its call stack, the accessing instruction first."""

    write: bool
    addresses: tuple[Count, ...]


class FieldRecord(Part, frozen=True):
    """A datum on which pairs of sections conflict.

    `kind` is "variable" (at `address`), "beside_lock" (`offset` bytes after the lock's start), "code" (known by the
    two instructions only) or "named" (`name`, which the recorder found out). `pairs_on_it_alone` conflict on nothing
    else. The two sides are an example.
    """

    kind: Literal["variable", "beside_lock", "code", "named"]
    name: str | None
    address: Count
    offset: Count | None
    pairs: Count
    pairs_on_it_alone: Count
    sides: tuple[AccessSide, AccessSide] = field(name="stacks")

    def __post_init__(self) -> None:
        """Refuses a field without what its kind is known by."""
        if (self.kind == "beside_lock" and self.offset is None) or (self.kind == "named" and self.name is None):
            raise ValueError(f"a field of kind {self.kind} without its offset or name")


class FieldSetRecord(Part, frozen=True):
    """Pairs of sections that conflict on all of these fields, by their places in the lock's list, and on no others."""

    fields: tuple[Count, ...]
    pairs: Count


class KindRecord(Part, frozen=True):
    """Sections that were begun by the call at `caller`, as readers or not, and that wrote anything or not.

    `hold_squares` is the sum of the squares of their lengths in instructions. Of the `compared` ones those in
    `conflicting` conflict with any other, by each of GRANULARITIES_BYTES.
    """

    caller: Count
    shared: bool
    writes: bool
    sections: Count
    hold: Spans
    hold_squares: Measure
    compared: Count
    conflicting: ByGranularity


class ThreadRecord(Part, frozen=True):
    """Sections of the recorder's thread of that number, by the place of their kind; kinds after the last have none."""

    thread: Count
    sections: tuple[Count, ...]


class KindPairRecord(Part, frozen=True):
    """Pairs of sections of two kinds, by their places in the lock's list: how many were compared, and how many of them
    conflict by each of GRANULARITIES_BYTES."""

    kinds: tuple[Count, Count]
    compared: Count
    conflicting: ByGranularity


class Gaps(Part, frozen=True):
    """What threads did between two sections of a lock: how often, the sum of their instructions and of the squares."""

    count: Count
    instructions: Count
    squares: Measure


LockFamily = Literal["lock", "spinlock", "rwlock", "mutex", "rw_semaphore"]
"""Kinds of locks: a kernel's, and "lock" for those of programs."""


class ClassRecord(Part, frozen=True):
    """What a kernel's lock is a part of: a type's field or a variable (`known`), else the code that used it first; and
    the kind of lock."""

    name: str
    known: bool
    family: LockFamily


class KernelCounts(Part, frozen=True):
    """What was seen of a kernel in addition to its locks.

    `calls` entries of functions that acquire, of which `failed` came back without the lock; `handed_over` sections
    across a task switch; `missing_functions` the kernel does not have, or has under another name.
    """

    calls: Count
    failed: Count
    handed_over: Count
    read_copy_update_sections: Count
    missing_functions: tuple[str, ...]


class PairCounts(Part, frozen=True):
    """Pairs of sections that were compared, and those that conflict, also without per-CPU data.

    `conflicting_bytes` are the bytes that conflicts by byte are on, `set_bytes` those of the sets of such pairs.
    """

    compared: Count
    conflicting: ByGranularity
    conflicting_without_per_cpu: ByGranularity
    conflicting_bytes: Count
    set_bytes: Count


class SectionWindowStatistics(Part, frozen=True):
    """The limit study with a smaller window: pairs and sections that were compared, and those that conflict by byte."""

    window_sections: Count
    pairs: Count
    conflicting_pairs: Count
    sections: Count
    conflicting_sections: Count


class LockRecord(Part, frozen=True):
    """One lock, or `instances` of a class with their statistics together; `generations` lay there one after another.

    Counts are of crate `lock-study`, where their meaning is defined. `fields` are of `field_pairs` pairs: the newest
    of each section.
    """

    address: Count
    source: Literal["annotated", "inlined", "kernel"]
    klass: ClassRecord | None = field(name="class")
    instances: Count
    generations: Count
    first_stack: tuple[Count, ...]
    acquires: Count
    shared_acquires: Count
    contended: Count
    contended_compared: Count
    contended_conflicts: Count
    wait: Spans
    sections: Count
    hold: Spans
    set_bytes: Count
    written_bytes: Count
    device_sections: Count
    handed_over: Count
    releases_without_acquire: Count
    never_released: Count
    compared_sections: Count
    conflicting_sections: ByGranularity
    pairs: PairCounts
    windows: tuple[SectionWindowStatistics, ...]
    outside_reads: Count
    outside_writes: Count
    speed_ups: tuple[Measure | None, ...]
    kinds: tuple[KindRecord, ...]
    threads: tuple[ThreadRecord, ...]
    kind_pairs: tuple[KindPairRecord, ...]
    gaps: Gaps
    field_pairs: Count
    fields: tuple[FieldRecord, ...]
    field_sets: tuple[FieldSetRecord, ...]

    def __post_init__(self) -> None:
        """Refuses places of kinds, or of fields, after the last."""
        if any(place >= len(self.fields) for known in self.field_sets for place in known.fields):
            raise ValueError(f"a set of fields past the last of {len(self.fields)}")
        if any(len(thread.sections) > len(self.kinds) for thread in self.threads):
            raise ValueError(f"a thread with sections of more than {len(self.kinds)} kinds")
        if any(max(pair.kinds) >= len(self.kinds) for pair in self.kind_pairs):
            raise ValueError(f"a pair of kinds past the last of {len(self.kinds)}")

    @property
    def inlined(self) -> bool:
        """Whether the lock was found by its instructions."""
        return self.source == "inlined"


class Recording(Document, frozen=True, tag=6):
    """What was recorded of one process; `start_up` is left out of all else, and null where there was one thread."""

    process_id: Count
    threads: Count
    instructions: Count
    nanoseconds: Count
    start_up: StartUp | None
    crowds: tuple[Count, ...]
    mappings: tuple[MappedFile, ...]
    stacks: tuple[StackMemory, ...]
    locks: tuple[LockRecord, ...]
    kernel: KernelCounts | None
    kind: Literal["lock-record"] = "lock-record"

    def __post_init__(self) -> None:
        """Refuses locks without a speed-up for each crowd."""
        if any(len(lock.speed_ups) != len(self.crowds) for lock in self.locks):
            raise ValueError(f"a lock without speed-ups for {len(self.crowds)} crowds")


def read_record(path: Path) -> Recording:
    """Reads a record; raises UsageError, which says where it is not what it should be."""
    try:
        content = read_regular(path, MAX_RECORD_BYTES)
        if len(content) > MAX_RECORD_BYTES:
            raise UsageError(f"{path}: larger than {MAX_RECORD_BYTES >> 20} MiB; expected a lock record")
        return read(Recording, content)
    except (OSError, DocumentError) as error:
        raise UsageError(f"{path}: expected a lock record: {error}") from None
