"""`commutant new`: projects to begin with. So far of adapters, behind which a library is checked."""

from __future__ import annotations

from pathlib import Path

import click

from commutant.cli import console, options


@click.group(
    "new",
    short_help="Begin a project: an adapter for a library.",
    epilog=options.examples("commutant new adapter map --lang c", "commutant new adapter --help"),
)
def command() -> None:
    """Begins a project."""


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
@click.option(
    "--lang", "language", type=click.Choice(("c", "cpp", "rust")), required=True, help="The adapter's language."
)
@options.output("New directory of the project.  [default: <interface>-adapter]")
def adapter(interface: str, language: str, output: Path | None) -> int:
    """Writes a project for an adapter of INTERFACE, which builds and runs as it is (docs/guides/libraries.md).

    Each call answers as an empty object would, and writes one planted counter, until it is written.
    """
    from commutant.lang import load_interface
    from commutant.targets.library import new_project

    model = load_interface(interface)
    folder = output if output is not None else Path(f"{model.interface_name}-adapter")
    built = new_project(model, interface, language, folder)
    build = "cargo build --release" if language == "rust" else "cmake -B build && cmake --build build"
    console.write(f"{folder}: an adapter for {interface}; next:\n\n")
    console.write(f"  cd {folder} && {build}\n")
    console.write(f"  commutant check {interface} --target library:path={built.relative_to(folder)}\n")
    return 0
