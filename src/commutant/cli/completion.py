"""`commutant completion`: the shell's completion, with the names of interfaces, calls and targets."""

from __future__ import annotations

import click

from commutant.cli import console, options


@click.command(
    "completion",
    short_help="Print a completion script for your shell.",
    epilog=options.examples(
        'eval "$(commutant completion bash)"      # in ~/.bashrc',
        'eval "$(commutant completion zsh)"       # in ~/.zshrc',
        "commutant completion fish > ~/.config/fish/completions/commutant.fish",
    ),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> int:
    """Prints the script that teaches SHELL to complete verbs, flags, interfaces, calls and targets."""
    from click.shell_completion import get_completion_class

    from commutant.cli.main import COMPLETE_VARIABLE, PROGRAM, cli

    completion = get_completion_class(shell)
    assert completion is not None
    # `source` of click's BashComplete would start bash to look at its version; the script says the same without that.
    one = completion(cli, {}, PROGRAM, COMPLETE_VARIABLE)
    console.write(one.source_template % one.source_vars() + "\n")
    return 0
