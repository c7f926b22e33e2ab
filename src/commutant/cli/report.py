"""`commutant report`: show a run again, as text, page, or in a format that other programs read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commutant.cli import console, options, results
from commutant.documents import text
from commutant.support import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from commutant.mtrace import Finding
    from commutant.report import FindingGroup, RunReport
    from commutant.runs import Run

_SHARED_LISTED = 10
_BEST_CHANGES = 3
_WORTH_SHOWN = 10


@click.command(
    "report",
    short_help="Show a run again: heat map, most shared variables, page, SARIF, JUnit, ...",
    epilog=options.examples(
        "commutant report runs/names-linux-1",
        "commutant report runs/names-linux-1 --first",
        "commutant report runs/names-linux-1 --calls open,open --cause i_rwsem",
        "commutant report runs/names-linux-1 --variable 'struct cred.*'",
        "commutant report runs/names-linux-1 --format html",
        "commutant report runs/names-linux-1 --format json | jq '.most_shared[].name'",
        "commutant report runs/names-linux-2 --format sarif --baseline runs/names-linux-1 -o findings.sarif",
    ),
)
@click.argument("run", type=click.Path(path_type=Path, file_okay=False))
@options.output_format("text", "html", "json", "markdown", "sarif", "junit", "parquet")
@click.option("--first", is_flag=True, help="Say what to fix first, and nothing else.")
@click.option("--calls", type=options.CallsArgument(), metavar="A,B,...", help="List the tests of these calls.")
@click.option("--variable", metavar="PATTERN", help="List the tests that share it, such as 'struct cred.*'.")
@click.option("--cause", metavar="TEXT", help="List the tests whose first cause has this in its name.")
@options.baseline
@options.suppress
@options.output_file
def command(
    run: Path,
    format_: str,
    first: bool,
    calls: tuple[str, ...] | None,
    variable: str | None,
    cause: str | None,
    baseline: tuple[Path, ...],
    suppress: Path | None,
    output: Path | None,
) -> int:
    """Shows the run directory RUN; an interrupted run is shown as far as it got.

    `--calls`, `--variable` and `--cause` list tests instead, a line each: id, verdict, calls with their arguments, and
    the first cause. `--format html` and `--format parquet` write report.html and findings.parquet into the run
    directory again, or wherever `-o` says, and print the path. The other formats go to standard output.
    """
    from commutant import report
    from commutant.cli.remedy import worth_in
    from commutant.compare import findings_of
    from commutant.runs import load_run, report_of

    lists = calls is not None or variable is not None or cause is not None
    if (first or lists) and format_ != "text":
        given = "--first" if first else "a list of tests"
        raise UsageError(f"{given} prints text: expected no --format with it, got {format_}; json has `first`")
    if first and lists:
        raise UsageError("expected --first, or --calls, --variable and --cause, got both")
    results.refuse_existing(output)
    suppressions = results.load_suppressions(suppress)
    loaded = load_run(run)
    content = report_of(loaded)
    results.say_if_interrupted(loaded)
    if format_ in ("html", "parquet"):
        console.write_path(_write_file(loaded, content, format_, output))
        return 0
    if lists:
        tests = report.chosen_tests(content.tests, calls, variable, cause)
        if not tests:
            asked = [
                f"--{key} {value}" for key, value in (("variable", variable), ("cause", cause)) if value is not None
            ]
            asked += [f"--calls {','.join(calls)}"] if calls is not None else []
            raise UsageError(f"no test of {run} fits {' '.join(asked)}")
        results.put(report.lines_of_tests(tests), output)
        return 0
    if first:
        every = len(content.tests)
        worth = worth_in(loaded)
        results.draw(lambda screen: report.print_first(content.tests, screen, _SHARED_LISTED, every, worth), output)
        return 0
    known = [load_run(path) for path in baseline]
    results.say_if_named_otherwise(*known)
    groups = findings_of(content, [report_of(one) for one in known], suppressions)
    results.say_unused(suppress, suppressions)
    _show(loaded, content, groups, format_, output)
    return 0


def _write_file(run: Run, content: RunReport, format_: str, output: Path | None) -> Path:
    from commutant import report
    from commutant.runs import FINDINGS_FILE, REPORT_FILE, write_findings

    if format_ == "html":
        path = output or run.path / REPORT_FILE
        report.write_html(replace(content, worth=_worth(run, content)), path)
    else:
        path = output or run.path / FINDINGS_FILE
        write_findings(path, content.tests)
    return path


def _worth(run: Run, content: RunReport) -> dict[str, list[str]]:
    """What changes of the variables that are shared most would free; empty if the run does not tell."""
    from commutant.cli.remedy import worth_in
    from commutant.report import rank_shared

    worth = worth_in(run)
    if worth is None:
        return {}
    wanted = [variable.name for variable in rank_shared(content.tests)[:_WORTH_SHOWN]]
    found: dict[str, Finding] = {}
    for judged in content.tests:
        for finding in judged.findings:
            found.setdefault(finding.name, finding)
    return {name: worth(found[name]) for name in wanted}


def _show(run: Run, content: RunReport, groups: list[FindingGroup], format_: str, output: Path | None) -> None:
    from commutant import report

    if format_ == "text":
        results.draw(lambda screen: _print_text(run, content, screen), output)
    elif format_ == "json":
        document = report.report_document(
            run.summary, content.tests, groups, complete=run.complete, limit=_SHARED_LISTED
        )
        results.put([text(document)], output)
    elif format_ == "markdown":
        results.put([report.run_markdown(content, groups)], output)
    elif format_ == "sarif":
        from commutant.lang import call_places

        made = run.info.generated
        places = call_places(made.interface if made else run.info.interface)
        results.put([report.sarif(content, groups, run.complete, places)], output)
    else:
        results.put(report.junit(content, groups), output)


def _print_text(run: Run, content: RunReport, screen: Console) -> None:
    """The run, and the three changes that would free most of its tests."""
    from rich.text import Text

    from commutant import report
    from commutant.cli.remedy import sense_of
    from commutant.remedy import rank, scene_of, worth_of

    try:
        scene = scene_of(run.verdicts())
    except UsageError:  # a run without the bytes that were touched
        report.print_run(content, screen)
        return
    sense = sense_of(scene, run.tests)
    report.print_run(content, screen, lambda finding: worth_of(scene, sense, finding))
    best = rank(scene, sense, _BEST_CHANGES).changes if scene.tests else ()
    if best:
        screen.print()
        screen.print(Text(f"Worth most (`commutant remedy {run.path}` lists more)"), soft_wrap=True)
        for one in best:
            screen.print(Text(f"  {one.change}: frees {len(one.alone.freed):,}"), soft_wrap=True)
