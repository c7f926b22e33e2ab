"""`commutant help`: the help of a verb, as `commutant VERB --help` prints it, or as man pages."""

from __future__ import annotations

from pathlib import Path

import click

from commutant.cli import console, manual, options


@click.command(
    "help",
    short_help="Show the help of a verb.",
    epilog=options.examples(
        "commutant help",
        "commutant help kernel build",
        "commutant help --man check | man -l -",
        "commutant help --man-pages ~/.local/share/man/man1",
    ),
)
@click.argument("words", metavar="[VERB]...", nargs=-1)
@click.option("--man", "as_page", is_flag=True, help="As a man page, for `man -l -`.")
@click.option(
    "--man-pages",
    "folder",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the man pages of VERB and of all verbs below it to DIR. The wheel brings them along.",
)
@click.pass_context
def command(ctx: click.Context, words: tuple[str, ...], as_page: bool, folder: Path | None) -> int:
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
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, page in manual.pages(context):
            (folder / name).write_text(page, encoding="utf-8")
        return 0
    console.write(manual.page(context) if as_page else shown.get_help(context) + "\n")
    return 0
