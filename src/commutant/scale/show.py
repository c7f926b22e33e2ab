"""A scaling in words: a table of transfers and throughput by number of cores, and the variables that pass from core to
core."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from commutant.scale.benchmarks import Benchmark
from commutant.scale.constants import NAMES
from commutant.scale.scaling import HALF, MovingVariable, ScaleDocument, ScaleStep
from commutant.support import plural, safe_text

if TYPE_CHECKING:
    from rich.console import Console

Say = Callable[..., None]
_SHOWN_FRAMES = 4


def print_benchmarks(all_of_them: Sequence[Benchmark], screen: Console) -> None:
    """Prints what can be measured."""
    width = max((len(benchmark.name) for benchmark in all_of_them), default=0)
    for benchmark in all_of_them:
        screen.print(f"{benchmark.name:{width}}  {benchmark.operation}", markup=False, soft_wrap=True)


def print_scaling(document: ScaleDocument, screen: Console, shown_variables: int) -> None:
    """Prints the table, what stops the benchmark from scaling, and the variables at the largest number of cores."""

    def say(text: str = "") -> None:
        screen.print(safe_text(text), markup=False, soft_wrap=True)

    say(f"{document.benchmark}: one operation is {document.operation}")
    say(conditions_in_words(document))
    for step in document.steps:
        if step.stalls:
            say(
                f"With {plural(step.cores, 'core')} {plural(step.stalls, 'turn')} of a second or more ended by the "
                "clock: another run may differ."
            )
    if not document.complete:
        say("INTERRUPTED: the larger numbers of cores were not counted")
    say()
    say("         transfers per operation                     predicted throughput per core")
    say("  cores  operations   after maint.  maintenance       of one without transfers     total")
    for step in document.steps:
        per_core = step.predicted.per_core
        say(
            f"{step.cores:7}  {step.transfers:10.4f}   {step.after_maintenance:12.4f}  {step.maintenance:11.4f}"
            f"       {per_core:24.3f}  {per_core * step.cores:8.1f}"
        )
    for step in document.steps:
        if len(step.seeds) > 1:
            say(_seeds_in_words(step))
    say()
    say(stop_in_words(document))
    if document.steps:
        _print_variables(document.steps[-1], shown_variables, say)
        _print_constants(document, document.steps[-1], say)


def conditions_in_words(document: ScaleDocument) -> str:
    """How the subject was made to run."""
    return (
        f"seed {document.seed}; {plural(document.operations, 'operation')} of a core, {document.warm_up} to warm up; "
        f"hands over after each, and {_hand_over_in_words(document)}"
    )


def _seeds_in_words(step: ScaleStep) -> str:
    def spread(counts: Sequence[float]) -> str:
        return f"{fmean(counts):.4f} ({min(counts):.4f} to {max(counts):.4f})"

    operations = spread([one.transfers for one in step.seeds])
    maintenance = spread([one.maintenance + one.after_maintenance for one in step.seeds])
    return (
        f"{plural(step.cores, 'core')}, seeds {step.seeds[0].seed} to {step.seeds[-1].seed}: operations {operations}, "
        f"by maintenance {maintenance}, on average (smallest to largest)"
    )


def _hand_over_in_words(document: ScaleDocument) -> str:
    if document.engine == "threads":
        return f"after {document.hand_over} of 1,024 accesses, and where it would wait"
    return (
        f"before {document.hand_over} of 1,024 accesses to atomics; "
        f"maintenance, where there is any, after each {document.maintain_every}"
    )


def stop_in_words(document: ScaleDocument) -> str:
    """Up to how many cores it scales, and what stops it."""
    if document.stops is None:
        most = max((step.cores for step in document.steps), default=0)
        return f"Up to {plural(most, 'core')} a core gets at least {HALF:.0%} done of what it would without transfers."
    return (
        f"Stops scaling at {document.stops.cores} cores: there a core gets less than {HALF:.0%} done of what it would "
        f"without transfers. The busiest line: {document.stops.variable}"
    )


def _print_variables(step: ScaleStep, shown: int, say: Say) -> None:
    if not step.variables:
        say(f"No line goes from core to core with {plural(step.cores, 'core')}.")
        return
    say()
    say(f"What goes from core to core with {plural(step.cores, 'core')}, per operation:")
    for variable in step.variables[:shown]:
        _print_variable(variable, say)
    if (left := len(step.variables) - shown) > 0:
        say(f"  and {plural(left, 'variable')} more; --top shows them")


def _print_variable(variable: MovingVariable, say: Say) -> None:
    say(
        f"  {variable.transfers:.4f}  {variable.name}  ({variable.during}; "
        f"{variable.misses:.4f} misses, {variable.upgrades:.4f} upgrades)"
    )
    for who, stack in (("got by  ", variable.first), ("had been", variable.second)):
        for number, frame in enumerate(stack[:_SHOWN_FRAMES]):
            say(f"      {who if number == 0 else ' ' * len(who)}  {frame}")


def _print_constants(document: ScaleDocument, step: ScaleStep, say: Say) -> None:
    say()
    say("Constants of the prediction, and throughput per core at the most cores with each halved and doubled:")
    changes = {interval.constant: interval for interval in step.predicted.sensitivity}
    for name in NAMES:
        constant = getattr(document.constants, name)
        change = changes[name]
        say(
            f"  {name:14} {constant.value:7.2f}   {change.halved:.3f} to {change.doubled:.3f}   "
            f"{constant.machine}; {constant.source}"
        )
    say("It says nothing of bandwidth, prefetching, places of memory, and of waiting other than for lines.")
    say("Between sockets a line takes several times what it takes between these processors: --constants FILE.")
