"""What came of a benchmark at each number of cores, as a document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from msgspec import Meta, structs

from commutant.documents import Count, Document, Measure, Part
from commutant.scale.constants import NAMES, Constants
from commutant.scale.counting import Engine, Names, ScaleConditions, Subject, counted
from commutant.scale.counts import MAINTENANCE, TransferCounts, TransferRow
from commutant.scale.queues import Server, servers_of, throughput

During = Literal["operations", "maintenance", "after maintenance"]
HALF = 0.5
"""A core that gets done less than this part of what it would without transfers does not scale any more."""
_SHOWN_VARIABLES = 20


class MovingVariable(Part, frozen=True):
    """A variable whose lines go from core to core: how often per operation, and during what.

    The stacks are of the transfer that was counted most often: of the core that got the line, and of the one that had
    touched it last before.
    """

    name: str
    during: During
    transfers: Measure
    misses: Measure
    upgrades: Measure
    invalidated: Annotated[Measure, Meta(description="Copies that others lost.")]
    first: Annotated[tuple[str, ...], Meta(description="Stack of the core that got the line, the innermost first.")]
    second: Annotated[tuple[str, ...], Meta(description="Stack of the core that had touched it last.")]


class SensitivityInterval(Part, frozen=True):
    """What the predicted throughput per core would be if one constant were half, or twice, as large."""

    constant: str
    halved: Measure
    doubled: Measure


class Predicted(Part, frozen=True):
    """Throughput by the model (docs/guides/scaling.md).

    `per_core` is that of a core as a part of what it would be without transfers.
    """

    own_ns: Annotated[Measure, Meta(description="Time of an operation without transfers.")]
    operation_ns: Measure
    queued_ns: Annotated[Measure, Meta(description="Time in queues of lines, of that.")]
    per_core: Measure
    busiest: Annotated[Measure, Meta(description="Part of the time that the busiest line is on its way.")]
    busiest_line: str | None
    sensitivity: tuple[SensitivityInterval, ...]


class SeedCounts(Part, frozen=True):
    """What was counted with one seed, per operation."""

    seed: Count
    transfers: Measure
    after_maintenance: Measure
    maintenance: Measure


class ScaleStep(Part, frozen=True):
    """What was counted with this number of cores, per operation, and what it means for throughput.

    All is of the first seed, but for what `seeds` has.
    """

    cores: Count
    transfers: Annotated[Measure, Meta(description="Of operations, caused by operations.")]
    after_maintenance: Annotated[Measure, Meta(description="Of operations, of lines that maintenance touched last.")]
    maintenance: Annotated[Measure, Meta(description="Of maintenance.")]
    misses: Measure
    upgrades: Measure
    invalidated: Measure
    instructions: Measure
    accesses: Measure
    lines: Annotated[Count, Meta(description="Lines that any core touched.")]
    model_bytes_per_line: Measure
    stalls: Annotated[Count, Meta(description="Turns that a clock ended: with any, another run may differ.")]
    seeds: tuple[SeedCounts, ...]
    variables: tuple[MovingVariable, ...]
    predicted: Predicted


class ScalingStop(Part, frozen=True):
    """From how many cores on a core gets less than half done, and the variable whose line is busiest there."""

    cores: Count
    variable: str | None


class ScaleDocument(Document, frozen=True):
    """A benchmark at growing numbers of cores. One that was interrupted has those that were done, and is not
    complete."""

    benchmark: Annotated[str, Meta(description="Or the program, with its arguments.")]
    operation: str
    engine: Annotated[Engine, Meta(description="What cores are: coroutines of a benchmark, or a program's threads.")]
    seed: Count
    operations: Annotated[Count, Meta(description="Counted operations of each core.")]
    warm_up: Count
    hand_over: Annotated[
        Count, Meta(description="At how many of 1,024 accesses, to atomics or of a program, another core goes on.")
    ]
    maintain_every: Count
    constants: Constants
    complete: bool
    steps: tuple[ScaleStep, ...]
    stops: ScalingStop | None


def scaling(
    subject: Subject, cores: Sequence[int], conditions: ScaleConditions, constants: Constants
) -> Iterator[ScaleDocument]:
    """The document after each number of cores; the last one is complete. Raises RunError if one does not come to an
    end."""
    steps: list[ScaleStep] = []
    for number in cores:
        with counted(subject, number, conditions) as (counts, naming):
            step = step_of(counts, naming, conditions, constants)
        for seed in range(conditions.seed + 1, conditions.seed + conditions.seeds):
            with counted(subject, number, replace(conditions, seed=seed)) as (counts, _):
                of_seed = _of_seed(seed, counts, conditions.operations)
            step = structs.replace(step, seeds=(*step.seeds, of_seed))
        steps.append(step)
        yield document_of(subject, conditions, constants, steps, complete=len(steps) == len(cores))


def _of_seed(seed: int, counts: TransferCounts, operations_per_core: int) -> SeedCounts:
    operations = counts.cores * operations_per_core
    sums: dict[During, int] = {"operations": 0, "after maintenance": 0, "maintenance": 0}
    for row in counts.transfers:
        sums[during(row)] += row.transfers
    own, after, maintenance = (sums[work] / operations for work in ("operations", "after maintenance", "maintenance"))
    return SeedCounts(seed, own, after, maintenance)


def document_of(
    subject: Subject,
    conditions: ScaleConditions,
    constants: Constants,
    steps: Sequence[ScaleStep],
    *,
    complete: bool,
) -> ScaleDocument:
    """The document with these steps."""
    slow = next((step for step in steps if step.predicted.per_core < HALF), None)
    stops = ScalingStop(slow.cores, slow.predicted.busiest_line) if slow else None
    return ScaleDocument(
        benchmark=subject.name,
        operation=subject.operation,
        engine=subject.engine,
        seed=conditions.seed,
        operations=conditions.operations,
        warm_up=conditions.warm_up,
        hand_over=conditions.hand_over,
        maintain_every=conditions.maintain_every,
        constants=constants,
        complete=complete,
        steps=tuple(steps),
        stops=stops,
    )


def during(row: TransferRow) -> During:
    """Under what a transfer is counted: a core in maintenance has it itself; one in an operation may owe it to
    another's."""
    if row.work == MAINTENANCE:
        return "maintenance"
    return "after maintenance" if row.work_of_cause == MAINTENANCE else "operations"


def step_of(counts: TransferCounts, naming: Names, conditions: ScaleConditions, constants: Constants) -> ScaleStep:
    """What was counted with the first seed, per operation."""
    operations = counts.cores * conditions.operations
    rows = counts.transfers

    def per_operation(rows: Iterable[TransferRow]) -> float:
        return sum(row.transfers for row in rows) / operations

    of_seed = _of_seed(conditions.seed, counts, conditions.operations)
    return ScaleStep(
        cores=counts.cores,
        transfers=of_seed.transfers,
        after_maintenance=of_seed.after_maintenance,
        maintenance=of_seed.maintenance,
        misses=per_operation(row for row in rows if row.way == "miss"),
        upgrades=per_operation(row for row in rows if row.way == "upgrade"),
        invalidated=sum(row.invalidated for row in rows) / operations,
        instructions=sum(work.instructions for work in counts.works) / operations,
        accesses=sum(work.accesses for work in counts.works) / operations,
        lines=counts.lines,
        model_bytes_per_line=counts.memory_bytes / max(1, counts.lines),
        stalls=naming.stalls,
        seeds=(of_seed,),
        variables=tuple(_variables(rows, naming, operations)),
        predicted=_predicted(counts, naming, operations, constants),
    )


@dataclass
class _Sums:
    most: TransferRow
    transfers: dict[str, int] = field(default_factory=lambda: {"miss": 0, "upgrade": 0})
    invalidated: int = 0


def _variables(rows: Sequence[TransferRow], naming: Names, operations: int) -> Iterator[MovingVariable]:
    sums: dict[tuple[str, During], _Sums] = {}
    for row in rows:
        # Rows are by descending transfers: the first of a variable is its most frequent.
        of_variable = sums.setdefault((naming.variable(row.address, row.place), during(row)), _Sums(row))
        of_variable.transfers[row.way] += row.transfers
        of_variable.invalidated += row.invalidated
    ordered = sorted(sums.items(), key=lambda entry: (-sum(entry[1].transfers.values()), entry[0]))
    for (name, work), of_variable in ordered[:_SHOWN_VARIABLES]:
        yield MovingVariable(
            name=name,
            during=work,
            transfers=sum(of_variable.transfers.values()) / operations,
            misses=of_variable.transfers["miss"] / operations,
            upgrades=of_variable.transfers["upgrade"] / operations,
            invalidated=of_variable.invalidated / operations,
            first=naming.stack(of_variable.most.place),
            second=naming.stack(of_variable.most.cause),
        )


def _predicted(counts: TransferCounts, naming: Names, operations: int, constants: Constants) -> Predicted:
    instructions = sum(work.instructions for work in counts.works) / operations
    ways = {way: sum(row.transfers for row in counts.transfers if row.way == way) for way in ("miss", "upgrade")}
    transfers = sum(ways.values())

    def network(constants: Constants) -> tuple[float, list[Server]]:
        total_ns = ways["miss"] * constants.miss_ns.value + ways["upgrade"] * constants.upgrade_ns.value
        latency_ns = total_ns / transfers if transfers else 0.0
        servers = servers_of(counts.lines_by_transfers, operations, latency_ns)
        return instructions * constants.instruction_ns.value, servers

    def per_core(constants: Constants) -> float:
        own_ns, servers = network(constants)
        return own_ns / throughput(own_ns, servers, counts.cores).operation_ns

    own_ns, servers = network(constants)
    solved = throughput(own_ns, servers, counts.cores)
    return Predicted(
        own_ns=own_ns,
        operation_ns=solved.operation_ns,
        queued_ns=solved.queued_ns,
        per_core=own_ns / solved.operation_ns,
        busiest=solved.busiest,
        busiest_line=naming.line(counts.top_lines[0][0]) if counts.top_lines else None,
        sensitivity=tuple(
            SensitivityInterval(name, per_core(constants.changed(name, 0.5)), per_core(constants.changed(name, 2.0)))
            for name in NAMES
        ),
    )
