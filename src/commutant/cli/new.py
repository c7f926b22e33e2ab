"""`commutant new`: what to begin with: a model of an interface, or an adapter behind which a library is checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import click

from commutant.cli import console, options


class _Language(click.Choice[str]):
    """A language by the name of `commutant.targets.library`, or as people write it."""

    _ALIASES: ClassVar = {"c++": "cpp", "cxx": "cpp", "cc": "cpp", "rs": "rust"}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        lowered = str(value).lower()
        return super().convert(self._ALIASES.get(lowered, lowered), param, ctx)


@click.group(
    "new",
    short_help="Begin a model, or an adapter for a library.",
    epilog=options.examples("commutant new model store", "commutant new adapter map --lang c"),
)
def command() -> None:
    """Begins a model of an interface, or an adapter for a library."""


@command.command(
    "model",
    short_help="A first model, to be changed into yours.",
    epilog=options.examples("commutant new model store", "commutant new model my_queue -o models/queue.py"),
)
@click.argument("name")
@options.output("New file of the model.  [default: <name>.py]")
def model(name: str, output: Path | None) -> int:
    """Writes a first model called NAME, which can be analysed and tested as it is (docs/guides/modelling.md)."""
    from commutant.lang import new_model

    file = output if output is not None else Path(f"{name}.py")
    new_model(name, file)
    shown = console.one_line(str(file))
    console.write(f"{shown}: a model of a store, to be changed into yours; next:\n\n")
    console.write(f"  commutant analyze {shown}\n")
    console.write(f"  commutant generate {shown}\n")
    console.write(f"  commutant new adapter {shown} --lang c\n")
    return 0


@command.command(
    "adapter",
    cls=options.ModelVerb,
    short_help="A project for an adapter, from a model's calls.",
    epilog=options.examples(
        "commutant new adapter map --lang c",
        "commutant new adapter queue --lang rust -o queue-of-mine",
        "commutant new adapter model.py:Cache --lang cpp",
    ),
)
@click.argument("interface", type=options.InterfaceArgument())
@click.option("--lang", "language", type=_Language(("c", "cpp", "rust")), required=True, help="The adapter's language.")
@options.output("New directory of the project.  [default: <interface>-adapter]")
def adapter(interface: str, language: str, output: Path | None) -> int:
    """Writes a project for an adapter of INTERFACE, which builds and runs as it is (docs/guides/libraries.md).

    Each call answers as an empty object would, and writes one planted counter, until it is written.
    """
    from commutant.lang import load_interface
    from commutant.targets.library import new_project

    model = load_interface(interface)
    folder = output if output is not None else Path(f"{model.interface_name}-adapter")
    project = new_project(model, interface, language, folder)
    build = "cargo build --release" if language == "rust" else "cmake -B build && cmake --build build"
    console.write(f"{folder}: an adapter for {interface}; next:\n\n")
    console.write(f"  cd {folder} && {build}\n")
    console.write(f"  commutant check {project.argument} --target library:path={project.built.relative_to(folder)}\n")
    return 0
