"""`commutant doctor`: is everything there that a check needs?"""

from __future__ import annotations

import click

from commutant.cli import console, options


@click.command(
    "doctor",
    short_help="Is everything there that a check needs?",
    epilog=options.examples(
        "commutant doctor",
        "commutant doctor --jobs 8",
        "commutant doctor --format json | jq '.checks[] | select(.state != \"ok\")'",
    ),
)
@options.jobs
@options.output_format("text", "json")
def command(jobs: int, format_: str) -> int:
    """Looks at Python, QEMU, the tracer plugin, the runner, the kernel, the cache folder and memory.

    Each line says ok, or what is wrong and what to do. Exit code 3 if something keeps a check from running.
    """
    from commutant.doctor import DoctorReport, State, run_checks

    checks = []
    for check in run_checks(jobs):
        checks.append(check)
        if format_ == "text":
            advice = f" -> {check.advice}" if check.advice else ""
            console.write(console.one_line(f"{check.state.value:8} {check.name}: {check.found}{advice}") + "\n")
            console.flush()
    problems = sum(check.state is State.PROBLEM for check in checks)
    if format_ == "json":
        console.write_document(DoctorReport(not problems, tuple(checks)))
    return 3 if problems else 0
