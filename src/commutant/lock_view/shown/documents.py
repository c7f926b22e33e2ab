"""The document of `locks --format json`, declared once. A share is null where there is nothing to take it of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from commutant.documents import Count, Document, DocumentError, Measure, Part, Percent, read
from commutant.lock_view.record import GRANULARITIES_BYTES, MAX_RECORD_BYTES, WINDOWS_SECTIONS, LockFamily, StartUp
from commutant.lock_view.recording.kernel import KernelRun
from commutant.lock_view.shown.kernel_table import FAMILIES, NOT_SEEN
from commutant.lock_view.study.classes import Caller, ConflictField, LockClass, LockStudy
from commutant.lock_view.study.names import Frame
from commutant.lock_view.study.verdict import verdict
from commutant.lock_view.study.warning import warnings
from commutant.lock_view.study.what_if import Gain, predictions
from commutant.support import UsageError, read_regular

BySize = Annotated[dict[str, Percent | None], Meta(description="By a number of bytes or of sections, as text.")]
ByThreads = Annotated[
    dict[str, Measure | None],
    Meta(description="By a crowd's number of threads: how many of that many processors the sections could keep busy."),
]


class FrameEntry(Part, frozen=True):
    """A place in code; file and line are null where they are not known."""

    function: str
    file: str | None
    line: Count | None


class SideEntry(Part, frozen=True):
    """One of the two accesses of a conflict, from the accessing function outward."""

    write: bool
    stack: tuple[FrameEntry, ...]


class FieldEntry(Part, frozen=True):
    """A datum on which sections conflict; `pairs_on_it_alone` conflict on nothing else."""

    name: str
    pairs: Count
    pairs_on_it_alone: Count
    sides: tuple[SideEntry, SideEntry]


class FieldGroupEntry(Part, frozen=True):
    """Data that would have to go together: `pairs` conflict on them and on nothing else."""

    names: tuple[str, ...]
    pairs: Count


class PredictionEntry(Part, frozen=True):
    """What another kind of lock would gain: by the number of threads, times as many sections in the same time.

    It is advised if it gains with some number of threads and loses with none, whatever a hand-over costs.
    """

    change: str
    assumes: str
    advised: bool
    gains: dict[str, Gain]


class LockEntry(Part, frozen=True, kw_only=True):
    """A class of locks.

    `generations` are locks that lay at the instances' addresses, one after another. `contended_conflicts_percent` is of
    contended sections, those that conflict with one that they waited for (the paper's Table 2),
    `conflicting_acquires_percent` of all, those that conflict with any of their window (Table 3).
    `independence_percent` is of pairs of sections, those that touch disjoint data, by the bytes that count as one
    datum. `window_independence_percent` is what it would be by byte with another window, by its size in sections.
    `independence_without_per_cpu_percent` leaves out data that both sections reached as those of the processor that
    they ran on.

    Two sections that talked to a device (`device_sections`) count as conflicting; those that another thread ended
    (`handed_over`) are compared with none. `outside_reads` and `outside_writes` are accesses by threads without any
    lock that conflict with the last section that touched the data; of kernels only. `fields` tells of `field_pairs`
    pairs of sections, the newest of each section; `together` are those that most of these conflict on together, null
    where one field alone does as much. `what_if` has the largest gain first.
    """

    name: str
    family: LockFamily
    instances: Count
    generations: Count
    acquired: Count
    contended: Count
    contended_conflicts_percent: Percent | None
    wait_total_nanoseconds: Count
    hold_total_instructions: Count
    hold_total_nanoseconds: Count
    independence_percent: BySize
    independence_without_per_cpu_percent: BySize
    window_independence_percent: BySize
    conflicting_acquires_percent: Percent | None
    mean_set_bytes: Measure | None
    mean_conflicting_bytes: Measure | None
    conflicting_bytes_percent: Percent | None
    speed_up: ByThreads
    device_sections: Count
    handed_over: Count
    outside_reads: Count
    outside_writes: Count
    never_released: Count
    releases_without_acquire: Count
    field_pairs: Count
    fields: tuple[FieldEntry, ...]
    together: FieldGroupEntry | None
    callers: tuple[Caller, ...]
    what_if: tuple[PredictionEntry, ...]


class WarningEntry(Part, frozen=True):
    """A lock that is held long by sections that mostly touch disjoint data.

    `held_percent` is of all instructions, by the lock of the class that is held longest; with `full_at_threads` threads
    like the recorded ones it would be held all the time.
    """

    name: str
    held_percent: Percent
    full_at_threads: Annotated[float, Meta(ge=1)]
    independence_percent: Percent
    contended_percent: Percent


class VerdictEntry(Part, frozen=True):
    """What matters most: the lock, null if none does, and the change of it that gains most for sure, null if none."""

    text: str
    lock: str | None
    change: str | None


class KernelEntry(Part, frozen=True, kw_only=True):
    """What was seen of a kernel.

    `independence_percent` is by kind of lock, weighted by time held. `calls` are those of functions that acquire, and
    `failed` those of them that came back without the lock.
    """

    release: str
    cpu_count: Annotated[int, Meta(ge=1)]
    workload: str
    workload_seconds: Measure
    timed_out: bool
    named_percent: Percent | None
    independence_without_per_cpu_percent: Percent | None
    independence_percent: dict[str, Percent | None]
    calls: Count
    failed: Count
    handed_over: Count
    read_copy_update_sections: Count
    missing_functions: tuple[str, ...]
    not_seen: tuple[str, ...]


class LocksDocument(Document, frozen=True, kw_only=True, tag=6):
    """Classes of locks in the order of --sort, with what their critical sections conflict on.

    `kernel` is null for a program. `start_up` is what a program did before its second thread: it is left out of all
    else, and null where there was none. `waiting_instructions` is what threads executed while they waited for a lock;
    it is left out of what shares are taken of. `held_percent` is of all other instructions, those executed with a lock
    held; with several held at once each counts. `hand_over_instructions` is what a hand-over of a lock costs in the
    predictions, at least and at most. `classes` counts them all; `locks` has the first --top. `warnings` has the most
    promising first.
    """

    kernel: KernelEntry | None
    threads: Count
    instructions: Count
    start_up: StartUp | None
    waiting_instructions: Count
    held_percent: Measure | None
    verdict: VerdictEntry
    hand_over_instructions: tuple[Measure, Measure]
    classes: Count
    hold_total_instructions: Annotated[Count, Meta(description="Over all classes.")]
    independence_percent: Percent | None
    speed_up: ByThreads
    locks: tuple[LockEntry, ...]
    warnings: tuple[WarningEntry, ...]


def locks_document(study: LockStudy, classes: Sequence[LockClass], run: KernelRun | None = None) -> LocksDocument:
    """The study, with these of its classes; with what was seen of a kernel, if it is one."""
    record, judged = study.record, verdict(study)
    return LocksDocument(
        kernel=_kernel(run, study) if run else None,
        threads=record.threads,
        instructions=record.instructions,
        start_up=record.start_up,
        waiting_instructions=study.waiting_instructions,
        held_percent=study.held_percent,
        verdict=VerdictEntry(
            judged.text, judged.lock.name if judged.lock else None, judged.change.change if judged.change else None
        ),
        hand_over_instructions=study.hand_overs,
        classes=len(study.classes),
        hold_total_instructions=sum(one.hold_instructions for one in study.classes),
        independence_percent=study.independence_percent,
        speed_up={str(crowd): study.speed_up(index) for index, crowd in enumerate(record.crowds)},
        locks=lock_entries(study, classes),
        warnings=tuple(
            WarningEntry(
                warning.lock.name,
                warning.held_percent,
                warning.full_at_threads,
                warning.independence_percent,
                warning.contended_percent,
            )
            for warning in warnings(study)
        ),
    )


def read_locks(path: Path) -> LocksDocument:
    """Reads a document that was written to a file; raises UsageError, which says where it is not what it should be."""
    try:
        content = read_regular(path, MAX_RECORD_BYTES)
        if len(content) > MAX_RECORD_BYTES:
            raise DocumentError(f"larger than {MAX_RECORD_BYTES >> 20} MiB")
        return read(LocksDocument, content)
    except (OSError, DocumentError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{path}: expected what `commutant locks --format json` writes: {reason}") from None


def lock_entries(study: LockStudy, classes: Sequence[LockClass]) -> tuple[LockEntry, ...]:
    """The classes as documents and tables have them."""
    return tuple(_lock(one, study) for one in classes)


def _lock(one: LockClass, study: LockStudy) -> LockEntry:
    sizes = list(enumerate(GRANULARITIES_BYTES))
    return LockEntry(
        name=one.name,
        family=one.family,
        instances=one.instances,
        generations=one.total(lambda lock: lock.generations),
        acquired=one.acquired,
        contended=one.contended,
        contended_conflicts_percent=one.contended_conflicts_percent,
        wait_total_nanoseconds=one.wait_nanoseconds,
        hold_total_instructions=one.hold_instructions,
        hold_total_nanoseconds=one.hold_nanoseconds,
        independence_percent={str(size): one.independence_percent(index) for index, size in sizes},
        independence_without_per_cpu_percent={
            str(size): one.independence_without_per_cpu_percent(index) for index, size in sizes
        },
        window_independence_percent={str(size): one.window_independence_percent(size) for size in WINDOWS_SECTIONS},
        conflicting_acquires_percent=one.conflicting_acquires_percent,
        mean_set_bytes=one.mean_set_bytes,
        mean_conflicting_bytes=one.mean_conflicting_bytes,
        conflicting_bytes_percent=one.conflicting_bytes_percent,
        speed_up={str(crowd): one.speed_up(index) for index, crowd in enumerate(study.record.crowds)},
        device_sections=one.total(lambda lock: lock.device_sections),
        handed_over=one.total(lambda lock: lock.handed_over),
        outside_reads=one.total(lambda lock: lock.outside_reads),
        outside_writes=one.total(lambda lock: lock.outside_writes),
        never_released=one.total(lambda lock: lock.never_released),
        releases_without_acquire=one.total(lambda lock: lock.releases_without_acquire),
        field_pairs=one.total(lambda lock: lock.field_pairs),
        fields=tuple(map(_field, one.fields)),
        together=FieldGroupEntry(one.together.names, one.together.pairs) if one.together else None,
        callers=tuple(one.callers),
        what_if=tuple(
            PredictionEntry(
                change=prediction.change,
                assumes=prediction.assumes,
                advised=prediction.is_advised,
                gains={str(threads): gain for threads, gain in prediction.gains.items()},
            )
            for prediction in predictions(one, study.record, hand_overs=study.hand_overs)
        ),
    )


def _field(found: ConflictField) -> FieldEntry:
    one, other = (SideEntry(write, tuple(map(_frame, frames))) for write, frames in found.sides)
    return FieldEntry(found.name, found.pairs, found.pairs_on_it_alone, (one, other))


def _frame(frame: Frame) -> FrameEntry:
    return FrameEntry(frame.function, frame.source, frame.line)


def _kernel(run: KernelRun, study: LockStudy) -> KernelEntry:
    counts = study.record.kernel
    return KernelEntry(
        release=run.release,
        cpu_count=run.cpu_count,
        workload=run.workload,
        workload_seconds=run.workload_seconds,
        timed_out=run.timed_out,
        named_percent=study.named_percent,
        independence_without_per_cpu_percent=study.independence_without_per_cpu_percent,
        independence_percent={family: study.of_family(family).independence_percent for family in FAMILIES},
        calls=counts.calls if counts else 0,
        failed=counts.failed if counts else 0,
        handed_over=counts.handed_over if counts else 0,
        read_copy_update_sections=counts.read_copy_update_sections if counts else 0,
        missing_functions=tuple(counts.missing_functions) if counts else (),
        not_seen=NOT_SEEN,
    )
