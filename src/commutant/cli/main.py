"""The command `commutant`: finds the verb, runs it, and turns whatever happens into one line and an exit code.

0 ok; 1 a gate failed (`--fail-on`); 2 bad use or bad input; 3 the run itself failed, or there were wrong results;
130 interrupted.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

import click

from commutant import __version__
from commutant.cli import console
from commutant.support import CommutantError, did_you_mean, fill_standard_streams, text_of

EXIT_OK = 0
EXIT_USAGE = 2
EXIT_FAILED = 3
EXIT_INTERRUPTED = 130

PROGRAM = "commutant"
_NATIVE = "commutant._native"
COMPLETE_VARIABLE = "_COMMUTANT_COMPLETE"

_CANNOT_BE_LOOKED_AT = (errno.EACCES, errno.ENAMETOOLONG)
"""Why `Path.exists` and its kin raise: the folder must not be searched, or no file system takes such a name."""

VERBS = (
    "analyze",
    "compare",
    "generate",
    "check",
    "resume",
    "repeat",
    "merge",
    "conform",
    "report",
    "diff",
    "show",
    "remedy",
    "prove",
    "history",
    "kernel",
    "locks",
    "scale",
    "try",
    "new",
    "doctor",
    "prepare",
    "cache",
    "completion",
    "help",
)
"""Each is a module of this package with a click command named `command`."""


class VerbGroup(click.Group):
    """The verbs, each imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs in the order of use."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a verb; None if there is no such verb."""
        if cmd_name not in VERBS:
            return None
        command = importlib.import_module(f"commutant.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb that is meant; UsageError for one that there is not, with the one that it is like."""
        name = str(args[0]) if args else ""
        if name and not name.startswith("-") and self.get_command(ctx, name) is None:
            ctx.fail(f"No such command {name!r:.80}{did_you_mean(name, VERBS)}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=VerbGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name=PROGRAM, message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> int:
    """Finds the cache lines that commuting calls of an interface share without need.

    From a model of an interface to the variables in the Linux kernel that keep it from scaling:

    \b
      commutant check names --target linux      # analyse, generate tests, run them, show the heat map
      commutant analyze figure4                 # only: when do the calls commute?
      commutant doctor                          # is everything there that a check needs?
    """
    if ctx.invoked_subcommand is None:
        console.write(ctx.get_help() + "\n")
        return EXIT_USAGE
    return EXIT_OK


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line (default: this process's) and returns the exit code; never raises."""
    with contextlib.suppress(OSError):
        fill_standard_streams()
    console.guard_streams()
    console.begin_minute()
    _set_signals()
    try:
        code = _dispatch(list(sys.argv[1:] if arguments is None else arguments))
        console.flush()
        return code
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else PROGRAM
        console.error(f"{_usage(error)} (see `{path} --help`)")
        return EXIT_USAGE
    except click.ClickException as error:
        console.error(error.format_message())
        return EXIT_USAGE
    except CommutantError as error:
        _traceback_if_wanted()
        console.error(str(error))
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        console.error("interrupted")
        return EXIT_INTERRUPTED
    except console.OutputError as error:
        console.error(str(error))
        return EXIT_FAILED
    except SystemExit:
        raise
    except MemoryError:
        _traceback_if_wanted()
        console.error("out of memory: fewer --jobs take less, and so do fewer --calls at a time")
        return EXIT_FAILED
    except BaseException as error:  # noqa: BLE001 - a panic of the native module is no Exception
        _traceback_if_wanted()
        if _is_of_another_version(error):
            console.error(f"the native module is not of this version ({text_of(error)}); run `make setup`")
            return EXIT_FAILED
        if isinstance(error, OSError) and error.errno in _CANNOT_BE_LOOKED_AT and error.filename:
            console.error(f"{error.filename}: {error.strerror}; expected a path that can be looked at")
            return EXIT_USAGE
        hint = "please report it where you got Commutant, with what COMMUTANT_TRACEBACK=1 and `commutant doctor` print"
        console.error(f"internal error, a defect of commutant: {type(error).__name__}: {text_of(error)}; {hint}")
        return EXIT_FAILED


def _usage(error: click.UsageError) -> str:
    """What is wrong with a command line, on one line. Of a verb with verbs of its own click shows all of its help."""
    text = " ".join(error.format_message().split())
    command = error.ctx.command if error.ctx else None
    if error.ctx and isinstance(command, click.Group) and text.startswith("Usage: "):
        return f"expected one of {', '.join(command.list_commands(error.ctx))}, got nothing"
    return text


def _dispatch(arguments: list[str]) -> int:
    if COMPLETE_VARIABLE in os.environ:
        from click.shell_completion import shell_complete

        return shell_complete(cli, {}, PROGRAM, COMPLETE_VARIABLE, os.environ[COMPLETE_VARIABLE])
    try:
        with cli.make_context(PROGRAM, arguments) as context:
            code = cli.invoke(context)
    except click.exceptions.Exit as leave:
        return leave.exit_code
    return code if isinstance(code, int) else EXIT_OK


def _is_of_another_version(error: BaseException) -> bool:
    """Whether the native module lacks what this version's Python asks it for: the sources went on since its build."""
    if isinstance(error, ImportError):
        return error.name == _NATIVE
    return isinstance(error, AttributeError) and error.obj is not None and error.obj is sys.modules.get(_NATIVE)


def _traceback_if_wanted() -> None:
    if os.environ.get("COMMUTANT_TRACEBACK") == "1":
        import traceback

        traceback.print_exc()


def _set_signals() -> None:
    """The first Ctrl-C (or termination, or hang-up) interrupts; later ones do not disturb the closing of the target."""

    process = os.getpid()

    def interrupt(number: int, frame: FrameType | None) -> None:
        if os.getpid() != process:
            os._exit(EXIT_INTERRUPTED)  # a forked worker: what it computes is not wanted any more
        for other in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(other, signal.SIG_IGN)
        raise KeyboardInterrupt

    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup, or in the background of a script
                signal.signal(number, interrupt)
    except ValueError:
        pass  # not the main thread: the embedding program handles signals
