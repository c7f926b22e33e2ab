"""Man pages, from what `--help` says: one for the program and one for each verb, in the macros of man(7)."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from commutant import __version__

_SECTION = "1"
_KEPT = "\b"
"""Begins a paragraph whose lines stay as they are (click)."""


def page(context: click.Context) -> str:
    """The man page of the command of a context, as roff."""
    command = context.command
    name = name_of(context)
    lines = [f'.TH "{_text(name).upper()}" "{_SECTION}" "" "commutant {__version__}" "Commutant"', ".SH NAME"]
    lines.append(f"{_text(name)} \\- {_text(_in_short(command))}")
    lines += [
        ".SH SYNOPSIS",
        f".B {_text(context.command_path)}",
        _text(" ".join(command.collect_usage_pieces(context))),
    ]
    lines += [".SH DESCRIPTION", *_paragraphs(command.help)]
    flags_of = (one for one in command.get_params(context) if isinstance(one, click.Option))
    if options := [record for one in flags_of if (record := one.get_help_record(context))]:
        lines.append(".SH OPTIONS")
        for flags, meaning in options:
            lines += [".TP", f".B {_text(flags)}", _text(meaning)]
    if verbs := list(_verbs(context)):
        lines.append(".SH VERBS")
        for verb in verbs:
            lines += [".TP", f".BR {_text(name_of(verb))} ({_SECTION})", _text(_in_short(verb.command))]
    if command.epilog:
        lines += [".SH EXAMPLES", *_paragraphs(command.epilog.removeprefix("Examples:"))]
    lines += [".SH EXIT STATUS", *_EXIT_STATUS]
    if context.parent is not None:
        lines += [".SH SEE ALSO", f".BR {_text(name_of(context.find_root()))} ({_SECTION})"]
    return "\n".join(lines) + "\n"


def pages(context: click.Context) -> Iterator[tuple[str, str]]:
    """File name and text of each page, of a context's command and of all verbs below it."""
    yield f"{name_of(context)}.{_SECTION}", page(context)
    for verb in _verbs(context):
        yield from pages(verb)


def name_of(context: click.Context) -> str:
    """A page's name: `commutant-kernel-build`."""
    return context.command_path.split(" [", 1)[0].replace(" ", "-")


def _verbs(context: click.Context) -> Iterator[click.Context]:
    group = context.command
    if isinstance(group, click.Group):
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None, "a group has the commands that it lists"
            yield click.Context(command, info_name=name, parent=context)


def _in_short(command: click.Command) -> str:
    return command.get_short_help_str(limit=200).rstrip(".")


def _paragraphs(text: str | None) -> Iterator[str]:
    for paragraph in inspect.cleandoc(text or "").split("\n\n"):
        if paragraph.startswith(_KEPT):
            yield from (".PP", ".nf", *map(_text, paragraph.splitlines()[1:]), ".fi")
        elif paragraph.strip():
            yield from (".PP", _text(" ".join(paragraph.split())))


def _text(text: str) -> str:
    """Text in which roff sees no commands: neither a backslash nor a point or quote at a line's begin is one."""
    plain = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "")
    return f"\\&{plain}" if plain.startswith((".", "'")) else plain


_EXIT_STATUS = tuple(
    line
    for status, meaning in (
        ("0", "All is well."),
        ("1", "A gate failed (\\-\\-fail\\-on)."),
        ("2", "Bad use or bad input."),
        ("3", "The run itself failed, or there were wrong results."),
        ("130", "Interrupted."),
    )
    for line in (".TP", f".B {status}", meaning)
)
