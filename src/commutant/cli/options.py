"""The flags that several verbs share, so that each means the same everywhere, and their shell completion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from commutant.cli import console
from commutant.corpus import LEVELS
from commutant.support import MAX_CALLS_PER_SET, Shard, UsageError, available_processors

F = TypeVar("F", bound=Callable[..., Any])

if TYPE_CHECKING:
    from commutant.remedy import Change

if TYPE_CHECKING:  # generic from click 8.3 on, and only for type checkers
    _Text = click.ParamType[str]
    _Calls = click.ParamType[tuple[str, ...]]
    _Shard = click.ParamType[Shard]
else:
    _Text = _Calls = _Shard = click.ParamType


class ModelVerb(click.Command):
    """A verb that runs a model, which is somebody's code: what that prints does not get between the results."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the verb."""
        with console.results_alone():
            return super().invoke(ctx)


def _interfaces(incomplete: str) -> list[CompletionItem]:
    from commutant.lang import SHIPPED

    shipped = [CompletionItem(name) for name in SHIPPED if name.startswith(incomplete)]
    return [*shipped, *_files(incomplete)]


def _files(incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]


class InterfaceArgument(_Text):
    """An interface; completes to the shipped names and to files."""

    name = "interface"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The shipped interfaces that begin so, and files."""
        return _interfaces(incomplete)


class TargetArgument(_Text):
    """A target; completes to the known names, and after the colon to its options and their words."""

    name = "target"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The targets, options or words that begin so."""
        from commutant.targets import TARGETS, target_options

        name, colon, rest = incomplete.partition(":")
        if not colon:
            return [CompletionItem(name) for name in TARGETS if name.startswith(incomplete)]
        before, comma, last = rest.rpartition(",")
        start = f"{name}:{before}{comma}"
        options = target_options(name)
        key, equals, value = last.partition("=")
        if not equals:
            return [CompletionItem(f"{start}{one}=") for one in options if one.startswith(last)]
        option = options.get(key)
        if option is None:
            return []
        words = option.metavariable.split("|") if "|" in option.metavariable else []
        if option.metavariable == "PATH":
            return [CompletionItem(f"{start}{key}={value}", type="file")]
        return [CompletionItem(f"{start}{key}={word}") for word in words if word.startswith(value)]


class TestArgument(_Text):
    """A test's id or its beginning; completes to those in the newest folder of `runs/`, or where `--from` says."""

    name = "test"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The ids that begin so, at most some hundred."""
        from commutant.runs import ids_beginning

        try:
            return [CompletionItem(one) for one in ids_beginning(incomplete, ctx.params.get("source"))]
        except UsageError:
            return []


class CallsArgument(_Calls):
    """A comma-separated list of calls; completes to the calls of the interface given before."""

    name = "calls"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """The names between the commas."""
        if isinstance(value, tuple):
            return value
        names = tuple(name.strip() for name in str(value).split(","))
        if not all(names):
            self.fail(f"expected names of calls with a comma between them, got {value!r}", param, ctx)
        return names

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The calls that may stand after the last comma."""
        # Parsing ends early at an option whose value is not typed yet: then click has put the argument into `args`.
        argument = ctx.params.get("interface") or ctx.params.get("what") or next(iter(ctx.args), None)
        if not argument:
            return []
        from commutant.lang import load_interface

        try:
            names = load_interface(argument).call_names()
        except UsageError:
            return []
        before, comma, last = incomplete.rpartition(",")
        return [CompletionItem(f"{before}{comma}{name}") for name in names if name.startswith(last)]


def calls(function: F) -> F:
    """`--calls a,b`: exactly this set, or all sets made of a longer list."""
    return click.option(
        "--calls",
        type=CallsArgument(),
        metavar="A,B,...",
        help="Only this set of calls; with more names than calls per set: all sets made of them.",
    )(function)


def with_self(function: F) -> F:
    """`--self`: all sets made of the named calls."""
    return click.option(
        "--self",
        "--with-self",
        "with_self",
        is_flag=True,
        help="With --calls A,B: also A with itself and B with itself, not this set alone.",
    )(function)


def with_self_meant(calls: tuple[str, ...] | None, with_self: bool) -> tuple[str, ...] | None:
    """The names of calls so that all sets of them are meant, if `--self` is given: more names than a set can have."""
    return calls * (MAX_CALLS_PER_SET + 1) if calls and with_self else calls


def size(function: F) -> F:
    """`--size N`: calls per set."""
    return click.option(
        "--size", type=click.IntRange(1, MAX_CALLS_PER_SET), default=2, show_default=True, help="Calls per set."
    )(function)


class ShardArgument(_Shard):
    """A shard, as `2/3`."""

    name = "shard"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Shard:
        """The shard; a failure of the command line for anything else."""
        try:
            return value if isinstance(value, Shard) else Shard.read(str(value))
        except UsageError as error:
            self.fail(str(error), param, ctx)


def shard(function: F) -> F:
    """`--shard I/N`: a part of the work, for one of several machines."""
    return click.option(
        "--shard",
        type=ShardArgument(),
        metavar="I/N",
        help="Only this part of N of the work; `commutant merge` puts all of them together.",
    )(function)


def level(function: F) -> F:
    """`--level`: how many tests are made."""
    return click.option(
        "--level",
        type=click.Choice(LEVELS),
        default="conflict",
        show_default=True,
        help="One test per path; as few as show how calls meet; one per pattern of equal and distinct values; or with "
        "flags and contents too.",
    )(function)


def jobs(function: F) -> F:
    """`--jobs N`: how much runs side by side."""
    return click.option(
        "--jobs",
        type=click.IntRange(1, 1024),
        default=available_processors,
        show_default="the processors",
        help="Processes for analysis; virtual machines (or processes) that run tests.",
    )(function)


def no_cache(function: F) -> F:
    """`--no-cache`: compute again."""
    return click.option("--no-cache", is_flag=True, help="Neither use nor keep cached analyses.")(function)


def executor(function: F) -> F:
    """`--executor`: where analysis runs."""
    return click.option(
        "--executor",
        metavar="process|thread|serial|dask://HOST:PORT|MODULE:CALLABLE",
        help="Where analysis runs, and on a cluster tests, too; CALLABLE(jobs) returns a concurrent.futures.Executor.  "
        "[default: process]",
    )(function)


def output_format(*formats: str) -> Callable[[F], F]:
    """`--format`: the first is the default."""
    return click.option(
        "--format", "format_", type=click.Choice(formats), default=formats[0], show_default=True, help="Output format."
    )


def output(help_text: str) -> Callable[[F], F]:
    """`-o`: where the result goes; never an existing path."""
    return click.option("-o", "--output", type=click.Path(path_type=Path), metavar="DIR", help=help_text)


def output_file(function: F) -> F:
    """`-o FILE`: a new file for what would go to standard output."""
    return click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Write to this new file instead.",
    )(function)


_CHANGES = (
    ("split", "TYPE.FIELD", "Give each core a part of it."),
    ("drop", "VARIABLE", "Do not touch it at all."),
    ("drop-read", "TYPE.FIELD", "Do not read it."),
    ("drop-write", "TYPE.FIELD", "Do not write it."),
    ("spread", "TYPE.FIELD", "Put each entry of the array on a line of its own."),
    ("drop-prefetch", "TYPE.FIELD", "Do not prefetch it for writing."),
    ("divide", "LOCK", "Divide the lock, with all that is touched under it."),
    ("part", "TYPE.FIELD,TYPE.FIELD", "Move these fields of one type to one line of their own."),
    ("move", "TYPE.FIELD", "Move the field to a line of its own."),
)


def changes(function: F) -> F:
    """`--move`, `--divide` and the other flags of changes, each any number of times; they come
    as pairs of way and place, in the order of the command line."""

    def collect(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> None:
        way = str(parameter.opts[0]).removeprefix("--")
        context.params.setdefault("changes", ())
        context.params["changes"] += tuple((way, value) for value in values)

    for way, metavar, text in _CHANGES:
        function = click.option(
            f"--{way}", multiple=True, metavar=metavar, help=text, callback=collect, expose_value=False
        )(function)
    return function


def read_changes(given: Sequence[tuple[str, str]]) -> tuple[Change, ...]:
    """The changes that the flags of `changes` ask for, each once; raises UsageError."""
    from commutant.remedy import Way, read_change

    return tuple(dict.fromkeys(read_change(Way(way), text) for way, text in given))


def baseline(function: F) -> F:
    """`--baseline RUN`, any number of times: what those runs saw is known."""
    return click.option(
        "--baseline",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="RUN",
        multiple=True,
        help="An earlier run, whose findings are known; several times for what any of several runs saw.",
    )(function)


def suppress(function: F) -> F:
    """`--suppress FILE`: findings that are accepted."""
    return click.option(
        "--suppress",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Suppression file: findings to accept, each with a reason and an end (docs/guides/ci.md).",
    )(function)


def examples(*lines: str) -> str:
    """An epilog for `--help` with one example per line."""
    return "\n\n".join(["Examples:", "\b\n" + "\n".join(f"  {line}" for line in lines)])
