"""`commutant show`: one test in full, as text, as a C program, or as JSON."""

from __future__ import annotations

from pathlib import Path

import click

from commutant.cli import console, options
from commutant.support import UsageError


@click.command(
    "show",
    short_help="Show one test: what it does, what it shared, as a C program.",
    epilog=options.examples(
        "commutant show link-rename-1f0c55aa90b2",
        "commutant show open,open",
        "commutant show link-rename-1f0c --from runs/names-linux-1",
        "commutant show link-rename-1f0c --as c > test.c && cc -pthread test.c && ./a.out",
    ),
)
@click.argument("test", type=options.TestArgument())
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path),
    metavar="RUN|CORPUS",
    help="Where the test is.  [default: the newest folder in runs/ that has it]",
)
@click.option(
    "--as", "as_", type=click.Choice(["text", "c", "json"]), default="text", show_default=True, help="What to print."
)
def command(test: str, source: Path | None, as_: str) -> int:
    """Shows TEST, an id or the beginning of one: its set-up, its calls, what they may return, and what they shared.

    A set of calls, such as `open,open`, lists its tests: id, verdict, and the calls with their arguments.
    """
    from commutant import report
    from commutant.cli.remedy import worth_in
    from commutant.runs import find_test

    if "," in test:
        if as_ != "text":
            raise UsageError(f"{test} names a set of calls, whose tests are listed: expected an id for --as {as_}")
        _list(test, source)
        return 0
    found = find_test(test, source, console.message)
    if as_ == "c":
        console.write(report.c_program(found.test))
    elif as_ == "json":
        console.write(report.json_of_test(found.test, found.judged).rstrip("\n") + "\n")
    else:
        worth = worth_in(found.run) if found.run is not None else None
        report.print_test(found.test, console.results(), found.judged, worth)
    return 0


def _list(wanted: str, source: Path | None) -> None:
    """Lists the tests of a set of calls, in the newest folder that has any, with what each came to and what it does."""
    from commutant.report import rows_of_tests
    from commutant.runs import RUN_FILE, load_run, tests_of_calls

    place, tests = tests_of_calls([name.strip() for name in wanted.split(",")], source)
    verdicts = load_run(place).verdicts() if (place / RUN_FILE).is_file() else ()
    outcomes = {verdict.test_id: verdict.outcome for verdict in verdicts}
    for line in rows_of_tests([(test, outcomes.get(test.id)) for test in tests]):
        console.write(line + "\n")
