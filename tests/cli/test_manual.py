"""Man pages: groff reads them without a warning, and they say what `--help` says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from commutant.cli import manual
from commutant.cli.main import VERBS, cli


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All pages, written into a folder that is not there yet."""
    folder = tmp_path_factory.mktemp("manual") / "man1"
    answer = CliRunner().invoke(cli, ["help", "--man-pages", str(folder)], prog_name="commutant", standalone_mode=False)
    assert (answer.exception, answer.output) == (None, "")
    return folder


def rendered(page: Path) -> str:
    """What a reader sees, on one line; groff warns of whatever it does not understand."""
    command = ["groff", "-man", "-Tutf8", "-P-cbou", "-ww", "-rHY=0", "-rLL=200n", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return " ".join(done.stdout.replace("‐", "-").replace("−", "-").split())


def test_each_verb_has_a_page(folder: Path) -> None:
    names = {path.name for path in folder.iterdir()}
    assert {"commutant.1", *(f"commutant-{verb}.1" for verb in VERBS), "commutant-kernel-build.1"} <= names


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_a_page_says_what_the_help_says(folder: Path, verb: str) -> None:
    shown = rendered(folder / f"commutant{'-' if verb else ''}{verb}.1")
    command = cli.get_command(click.Context(cli), verb) if verb else cli
    assert command is not None
    for option in (one for one in command.params if isinstance(one, click.Option)):
        record = option.get_help_record(click.Context(command))
        assert record is not None
        for text in record:
            assert " ".join(text.replace("`", "").split()) in shown
    assert "EXIT STATUS 0 All is well." in shown


def test_what_begins_as_a_command_of_roff_is_text() -> None:
    @click.command("odd", help="First.\n\n.so /etc/passwd\n\n'quoted' a\\b\n\n\b\n  .kept -x", short_help="Odd.")
    def odd() -> None: ...

    lines = manual.page(click.Context(odd, info_name="odd")).splitlines()
    assert {"\\&.so /etc/passwd", "\\&'quoted' a\\eb", "  .kept \\-x"} <= set(lines)


def test_a_page_of_one_verb_is_printed() -> None:
    answer = CliRunner().invoke(cli, ["help", "--man", "kernel", "build"], prog_name="commutant", standalone_mode=False)
    assert answer.output.startswith('.TH "COMMUTANT\\-KERNEL\\-BUILD" "1"')
