"""`commutant try`: runs a command, shows what it would change, and commits all of it or nothing.

The work is done by a program of its own, without Python: this process becomes it.
"""

from __future__ import annotations

import os

import click

from commutant.cli import console, options
from commutant.support import RunError, artifacts


class _AsGiven(click.Command):
    """A verb whose arguments go on as they are, also `--` and options that follow a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keeps the arguments, unless they ask for help."""
        if args[:1] in ([], ["-h"], ["--help"]):
            return super().parse_args(ctx, args or ["--help"])
        ctx.params["arguments"] = tuple(args)
        return []


@click.command(
    "try",
    cls=_AsGiven,
    short_help="Run a command, then commit what it changed, or not.",
    epilog=options.examples(
        "commutant try make install",
        "commutant try -n dpkg -i package.deb       # keep the changes, print where",
        "commutant try summary DIR",
        "commutant try commit DIR                   # refused if what it has read is not so any more",
        "commutant try -y --retry 3 -- sh -c 'sed -i s/a/b/ *.txt'",
    ),
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[OPTION...] CMD [ARG...]")
def command(arguments: tuple[str, ...]) -> int:
    """Runs CMD over the real tree, and keeps its changes apart until they are committed (docs/guides/try.md).

    \b
    try summary DIR        list the changes in a workspace
    try commit DIR         make them, if all that CMD has seen is still so
    try explore [DIR]      work in a shell over the tree, or over a workspace
    try recover DIR        end a commit that was cut short

    \b
    -n            keep the changes, and print the workspace's directory
    -y            commit without asking, if CMD succeeds
    -N DIR        use DIR as workspace (implies -n)
    -x            without the network
    -i PATH       hide PATH from CMD
    -I, -E REGEX  take only, or leave out, paths that match
    -L D1:D2:...  run over the changes of other workspaces (implies -n)
    -t FILE       write which paths CMD has read, and which it has written
    --retry N     with -y: run CMD again when its commit is refused
    --merge       commit also where others have changed other names or bytes
    --live        let all changes become visible at one moment (root)
    --json        one JSON document on standard output
    -v, -h        the version; this help
    """
    program = artifacts.try_path()
    console.flush()
    try:
        os.execv(program, [str(program), *arguments])
    except OSError as error:
        raise RunError(f"{program}: {error.strerror}") from None
