"""`commutant help`: the help of a verb, as `commutant VERB --help` prints it."""

from __future__ import annotations

import click

from commutant.cli import console, options


@click.command(
    "help",
    short_help="Show the help of a verb.",
    epilog=options.examples("commutant help", "commutant help check", "commutant help kernel build"),
)
@click.argument("words", metavar="[VERB]...", nargs=-1)
@click.pass_context
def command(ctx: click.Context, words: tuple[str, ...]) -> int:
    """Shows what VERB does and which options it takes; without one, the list of verbs."""
    context = ctx.find_root()
    shown = context.command
    for word in words:
        if not isinstance(shown, click.Group):
            raise click.UsageError(f"{context.command_path} has no verbs of its own, got {word!r}", ctx)
        name, found, _ = shown.resolve_command(context, [word])
        assert found is not None and name is not None, "an unknown verb is refused"
        context = click.Context(found, info_name=name, parent=context)
        shown = found
    console.write(shown.get_help(context) + "\n")
    return 0
