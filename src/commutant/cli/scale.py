"""`commutant scale`: which lines go from core to core at up to 256 virtual cores, and what that makes of throughput."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commutant.cli import console, options, results
from commutant.documents import text
from commutant.support import RunError, UsageError, plural

if TYPE_CHECKING:
    from commutant.scale import ScaleDocument, ScaleGate, Subject

_USUAL_CORES = "1,2,4,...,64"
_MOST_STEPS = 256
_PROGRAM = "commutant.program"


class _Cores(click.ParamType[tuple[int, ...]]):
    """Numbers of cores, ascending; `...` goes on as the two numbers before it began, up to the one after it."""

    name = "n,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """The numbers; fails with one line."""
        from commutant.scale import CORE_LIMIT

        if isinstance(value, tuple):
            return value
        try:
            numbers = _numbers(str(value).split(","))
        except ValueError:
            numbers = []
        if not numbers or numbers != sorted(set(numbers)):
            self.fail(f"expected ascending numbers of cores such as 1,2,4,...,256, got {value!r:.80}", param, ctx)
        if wrong := [number for number in numbers if not 1 <= number <= CORE_LIMIT]:
            self.fail(f"expected 1 to {CORE_LIMIT} cores, got {wrong[0]}", param, ctx)
        return tuple(numbers)


def _numbers(texts: Sequence[str]) -> list[int]:
    """The numbers that are meant; raises ValueError."""
    numbers: list[int] = []
    for place, word in enumerate(texts):
        if word.strip() != "...":
            numbers.append(int(word))
            continue
        if len(numbers) < 2 or place + 1 == len(texts):
            raise ValueError("... stands after two numbers and before one")
        before, last, end = numbers[-2], numbers[-1], int(texts[place + 1])
        factor = last // before if before and last % before == 0 and last > before else 1
        while factor > 1 and last * factor < end and len(numbers) < _MOST_STEPS:
            last *= factor
            numbers.append(last)
        while factor == 1 and last + (last - before) < end and last > before and len(numbers) < _MOST_STEPS:
            before, last = last, last + (last - before)
            numbers.append(last)
    return numbers


class _GateType(click.ParamType["ScaleGate"]):
    """A measure, a limit and a number of cores."""

    name = "measure>limit@cores"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> ScaleGate:
        """The gate; fails with one line."""
        from commutant.scale import ScaleGate, read_gate

        if isinstance(value, ScaleGate):
            return value
        try:
            return read_gate(str(value))
        except UsageError as error:
            self.fail(str(error), param, ctx)


class _Command(click.Command):
    """What stands after `--` is a program and its arguments, whatever stands before."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click's, for what stands before."""
        own, program = (args[: args.index("--")], args[args.index("--") + 1 :]) if "--" in args else (args, None)
        if program is not None:
            ctx.meta[_PROGRAM] = tuple(program)
        return super().parse_args(ctx, own)


def _print_annotations(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    from commutant.support import marks_folder

    if value:
        console.write_path(marks_folder())
        ctx.exit()


@click.command(
    "scale",
    cls=_Command,
    short_help="Count the lines that go from core to core at up to 256 cores, and predict throughput.",
    epilog=options.examples(
        "commutant scale",
        "commutant scale open-any --cores 1,2,4,...,256",
        "commutant scale sharded-map-counted --fail-on 'transfers>0.1@64'",
        "commutant scale create --seed 7 --format json -o create.json",
        "commutant scale open --format html -o open.html",
        "commutant scale --cores 1,2,4,...,32 -- ./a.out --threads {cores}",
    ),
)
@click.option(
    "--annotations",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_annotations,
    help="Print the folder of commutant_scale.h, for `cc -I`, and exit.",
)
@click.argument("benchmark", required=False, metavar="[BENCH | -- PROGRAM [ARGS]...]")
@click.option(
    "--cores", type=_Cores(), default=_USUAL_CORES, show_default=True, help="How many virtual cores, in turn."
)
@click.option(
    "--seed", type=click.IntRange(0, 2**64 - 1), default=1, show_default=True, help="The same gives the same."
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    help="With how many seeds, from --seed on, and how far their counts spread.",
)
@click.option(
    "--operations",
    type=click.IntRange(1, 1_000_000),
    default=1000,
    show_default=True,
    help="Operations of each core that count.",
)
@click.option(
    "--warm-up", type=click.IntRange(0, 1_000_000), default=1024, show_default=True, help="Operations before these."
)
@click.option(
    "--hand-over",
    type=click.IntRange(0, 1024),
    default=32,
    show_default=True,
    help="At how many of 1,024 accesses (of BENCH to atomics, of PROGRAM to memory) another core goes on; 0: cores "
    "take turns after whole operations.",
)
@click.option(
    "--maintain-every",
    type=click.IntRange(1, 1_000_000),
    default=64,
    show_default=True,
    help="Operations of a core from one maintenance to the next.",
)
@click.option(
    "--constants",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="What a machine takes for an instruction and for transfers, instead of the shipped constants.toml.",
)
@click.option(
    "--fail-on",
    type=_GateType(),
    multiple=True,
    help="Exit code 1 if `transfers` (of operations, without maintenance) or `maintenance` (with what it makes "
    "operations miss) is above the limit at a number of cores, as transfers>0.1@64.",
)
@click.option("--top", type=click.IntRange(0, 20), default=5, show_default=True, help="How many variables to print.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=1, max=1e6),
    default=600.0,
    show_default=True,
    help="Seconds that one number of cores may take.",
)
@options.output_format("text", "json", "svg", "html")
@options.output_file
@click.pass_context
def command(
    ctx: click.Context,
    benchmark: str | None,
    cores: tuple[int, ...],
    seed: int,
    seeds: int,
    operations: int,
    warm_up: int,
    hand_over: int,
    maintain_every: int,
    constants: Path | None,
    fail_on: tuple[ScaleGate, ...],
    top: int,
    timeout: float,
    format_: str,
    output: Path | None,
) -> int:
    """Has many virtual cores make the operations of BENCH, counts each line that goes from core to core, and says which
    variable that is, who passes it on, and what it makes of throughput. Without BENCH it lists the benchmarks.

    All cores are played by one thread under the emulator, so that 256 need one processor, and the same seed gives the
    same counts. Transfers of operations and of maintenance are counted apart.

    The threads of PROGRAM are its cores if they mark their operations (`commutant_scale.h`, the crate
    `scale-annotation`); `{cores}` in its arguments is the number of cores. They take turns, so that one runs at a time.
    """
    from commutant.scale import ScaleConditions, benchmarks, print_benchmarks, read_constants

    results.refuse_existing(output)
    program: tuple[str, ...] | None = ctx.meta.get(_PROGRAM)
    if benchmark is None and program is None:
        results.draw(lambda screen: print_benchmarks(benchmarks(), screen), output)
        return 0
    if missing := [gate for gate in fail_on if gate.cores not in cores]:
        raise UsageError(f"--fail-on {missing[0]}: expected one of the --cores, {', '.join(map(str, cores))}")
    conditions = ScaleConditions(seed, operations, warm_up, hand_over, maintain_every, timeout, seeds)
    known = read_constants(constants)
    document: ScaleDocument | None = None
    stopped: KeyboardInterrupt | RunError | None = None
    from commutant.scale import scaling

    try:
        for document in scaling(_subject(benchmark, program), cores, conditions, known):
            done = document.steps[-1].cores
            console.message(f"counted {plural(done, 'core')}")
    except (KeyboardInterrupt, RunError) as error:
        stopped = error
    if document is not None:
        _put(document, format_, top, output)
    if stopped is not None:
        raise stopped
    assert document is not None
    return 0 if _holds(document, fail_on) else 1


def _subject(benchmark: str | None, program: tuple[str, ...] | None) -> Subject:
    from commutant.scale import find_benchmark, marked_program

    if program is None:
        assert benchmark is not None
        return find_benchmark(benchmark)
    if benchmark is not None:
        raise UsageError(
            f"expected a benchmark or a program after --, got both: {benchmark:.80} and {shlex.join(program):.80}"
        )
    if not program:
        raise UsageError("expected a program after --, got nothing")
    return marked_program(program)


def _put(document: ScaleDocument, format_: str, top: int, output: Path | None) -> None:
    from commutant.scale import page, picture, print_scaling

    if format_ == "text":
        results.draw(lambda screen: print_scaling(document, screen, top), output)
    else:
        written: dict[str, Callable[[ScaleDocument], str]] = {"json": text, "svg": picture, "html": page}
        results.put([written[format_](document)], output)


def _holds(document: ScaleDocument, gates: Sequence[ScaleGate]) -> bool:
    """Whether nothing is above its limit; says what is."""
    holds = True
    for gate in gates:
        step = next(step for step in document.steps if step.cores == gate.cores)
        found = step.transfers if gate.measure == "transfers" else step.maintenance + step.after_maintenance
        if found > gate.limit:
            holds = False
            first = next(
                (one for one in step.variables if (one.during == "operations") == (gate.measure == "transfers")), None
            )
            most = f", most of it {first.name} ({first.transfers:.4f})" if first else ""
            console.message(f"--fail-on {gate}: {found:.4f} per operation{most}")
    return holds
