"""The study of a kernel in the terminal: the tables of the paper, by class or by instance, and by caller."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from commutant.lock_view.record import WINDOWS_SECTIONS
from commutant.lock_view.recording.kernel import KernelRun
from commutant.lock_view.shown.lines import line, name_cell, number_cell, share_cell, table
from commutant.lock_view.shown.table import print_coverage, print_details, summary
from commutant.lock_view.study.classes import LockClass, LockStudy
from commutant.lock_view.study.verdict import verdict
from commutant.support import plural

FAMILIES = ("spinlock", "rwlock", "mutex", "rw_semaphore")

NOT_SEEN = (
    "bit spin locks (hash chains of dentries), page locks, locks of sockets",
    "counting semaphores and real-time mutexes: their inner spin locks only",
    "per-CPU reader-writer semaphores: neither readers nor writers",
    "readers of sequence counters, which exclude no one; writers by their spin locks",
    "RCU read sections: counted, since they exclude no one",
)
"""Locks that this recorder does not see in a kernel."""

_CALLERS = 10


def print_kernel_study(
    run: KernelRun, study: LockStudy, classes: Sequence[LockClass], console: Console, *, fields: int
) -> None:
    """Prints what was recorded, the limit study (Table 3 of the paper), contention (Table 2), callers, and of the first
    classes what their sections conflict on."""
    record = study.record
    line(console, verdict(study).text)
    line(
        console,
        f"Linux {run.release}, {plural(run.cpu_count, 'virtual CPU')}: {run.workload} in {run.workload_seconds:.0f} s; "
        f"{summary(study)}, {share_cell(study.named_percent)} % of acquires of named locks; "
        f"{plural(record.threads, 'thread')}",
    )
    _print_averages(study, console)
    console.print()
    _print_limits(classes, record.crowds, console)
    print_coverage(study, classes, console)
    contended = sorted((one for one in classes if one.contended), key=lambda one: (-one.contended, one.name))
    if contended:
        console.print()
        _print_contended(contended, console)
    console.print()
    _print_callers(classes, console)
    console.print()
    _print_further(classes, console)
    print_details(study, classes[:fields], console)
    console.print()
    _print_notes(study, console)


def _print_averages(study: LockStudy, console: Console) -> None:
    """The averages over all locks, weighted by time held, which section 4.2 of the paper gives for spin locks."""
    crowds = study.record.crowds
    shown = table("average by time held", "indep.", "no per-CPU", *(f"x{crowd}" for crowd in crowds))
    for name, part in [*((family, study.of_family(family)) for family in FAMILIES), ("all locks", study)]:
        if part.independence_percent is not None:
            shown.add_row(
                name_cell(name),
                share_cell(part.independence_percent),
                share_cell(part.independence_without_per_cpu_percent),
                *(number_cell(part.speed_up(index)) for index in range(len(crowds))),
            )
    console.print(shown)


def _print_limits(classes: Sequence[LockClass], crowds: Sequence[int], console: Console) -> None:
    crowd = f"x{crowds[0]}"
    shown = table("lock", "acquired", "hold M", "indep.", "no cpu", "confl.", "set", "shared", crowd)
    for one in classes:
        shown.add_row(
            name_cell(_short(one) if one.instances == 1 else f"{_short(one)} ({one.instances:,})"),
            f"{one.acquired:,}",
            number_cell(one.hold_instructions / 1e6),
            share_cell(one.independence_percent()),
            share_cell(one.independence_without_per_cpu_percent()),
            share_cell(one.conflicting_acquires_percent),
            _whole(one.mean_set_bytes),
            _whole(one.mean_conflicting_bytes),
            number_cell(one.speed_up(0)),
        )
    console.print(shown)
    line(
        console,
        "hold M: millions of instructions while held. indep.: % of pairs of sections of different threads that touch "
        "disjoint data; no cpu: without data of the processor that they ran on. confl.: % of acquires that conflict "
        f"with any of the window. set, shared: mean bytes of a section, and in conflict. {crowd}: how many of "
        f"{crowds[0]} processors the sections could keep busy.",
    )


def _short(one: LockClass) -> str:
    """A name for a narrow table: kinds of locks are given where a spin lock is not what one expects."""
    name = one.name.replace("struct ", "")
    return name if one.family == "spinlock" else f"{name} [{one.family}]"


def _whole(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _print_contended(classes: Sequence[LockClass], console: Console) -> None:
    shown = table("contended lock", "acquired", "waited", "%", "confl.", "set", "avg_wait us")
    for one in classes:
        shown.add_row(
            name_cell(_short(one)),
            f"{one.acquired:,}",
            f"{one.contended:,}",
            f"{100.0 * one.contended / one.acquired:.2f}" if one.acquired else "-",
            share_cell(one.contended_conflicts_percent),
            _whole(one.mean_set_bytes),
            _whole(one.wait_nanoseconds / one.contended / 1000),
        )
    console.print(shown)
    line(
        console,
        "confl.: % of acquires that waited that conflict with a section that they waited for. Who met whom "
        "reflects the emulator's time slices: the limit study above is the result, this table an illustration.",
    )


def _print_callers(classes: Sequence[LockClass], console: Console) -> None:
    shown = table("caller", "sections", "hold M", "lock")
    callers = [(caller, one) for one in classes for caller in one.callers]
    for caller, one in sorted(callers, key=lambda pair: (-pair[0].hold_instructions, pair[0].name))[:_CALLERS]:
        hold = number_cell(caller.hold_instructions / 1e6)
        shown.add_row(name_cell(caller.name), f"{caller.sections:,}", hold, name_cell(_short(one)))
    console.print(shown)


def _print_further(classes: Sequence[LockClass], console: Console) -> None:
    """How far the results depend on the window, and what happens without any lock."""
    sizes = [f"w{size}" for size in WINDOWS_SECTIONS]
    shown = table("lock", *sizes, "out. reads", "writes", "lives")
    for one in classes:
        shown.add_row(
            name_cell(_short(one)),
            *(share_cell(one.window_independence_percent(size)) for size in WINDOWS_SECTIONS),
            f"{one.total(lambda lock: lock.outside_reads):,}",
            f"{one.total(lambda lock: lock.outside_writes):,}",
            f"{one.total(lambda lock: lock.generations):,}",
        )
    console.print(shown)
    line(
        console,
        f"{sizes[0]} to {sizes[-1]}: indep. with a window of that many sections. out.: accesses by threads without any "
        "lock that conflict with the last section (an upper limit: memory is used again). lives: locks that lay there "
        "one after another.",
    )


def _print_notes(study: LockStudy, console: Console) -> None:
    record = study.record
    if record.kernel is not None:
        line(
            console,
            f"{plural(record.kernel.calls, 'call')} of functions that acquire, {record.kernel.failed:,} of them in "
            f"vain; {plural(record.kernel.handed_over, 'section')} handed over in a task switch, compared "
            f"with none; {plural(record.kernel.read_copy_update_sections, 'RCU read section')}.",
        )
        if record.kernel.missing_functions:
            line(console, f"not in this kernel: {', '.join(record.kernel.missing_functions)}")
    for text in NOT_SEEN:
        line(console, f"not seen: {text}")
