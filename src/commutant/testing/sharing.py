"""Does the implementation share memory where its calls commute? See `commutant.runs.check` and `commutant.compare`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from commutant.campaign import DEFAULT_REPEATS
from commutant.compare import Suppressions, failing, findings_of, read_suppressions
from commutant.corpus import Level, read_corpus
from commutant.lang import Interface, load_interface
from commutant.report import FindingGroup
from commutant.runs import Check, Run, load_run, report_of
from commutant.support import UsageError, plural
from commutant.targets import Target, load_target
from commutant.testgen import Corpus, generate

_SHOWN_FINDINGS = 10


def check_sharing(
    interface: str | type[Interface] | Corpus,
    target: str | Target,
    *,
    baseline: str | Path | Iterable[str | Path] = (),
    suppress: str | Path | None = None,
    calls: Sequence[str] | None = None,
    size: int = 2,
    level: Level = "conflict",
    repeats: int = DEFAULT_REPEATS,
    seed: int = 0,
    directory: str | Path | None = None,
    jobs: int = 1,
) -> Run:
    """Runs the tests of an interface on a target, as `commutant check` does, and fails on what is shared without need.

    `interface` is a model, an interface argument, the path of a corpus file (`.jsonl.gz`), or a corpus. `baseline` is
    the run directory, or several, of earlier checks: what they found is known and does not fail. `directory` is the new
    run directory. The other parameters are the verb's flags. Returns the run.

    Raises AssertionError with the findings that nobody knew or accepted, for wrong results and deaths; UsageError (also
    if no test can be run) and RunError as the verb does.
    """
    __tracebackhide__ = True
    paths = [baseline] if isinstance(baseline, str | Path) else list(baseline)
    known = [load_run(Path(path)) for path in paths]
    suppressions = read_suppressions(Path(suppress)) if suppress is not None else Suppressions(())
    corpus = _corpus(interface, calls, size, level, jobs)
    with Check.new(
        corpus,
        load_target(target) if isinstance(target, str) else target,
        jobs=jobs,
        repeats=repeats,
        seed=seed,
        directory=Path(directory) if directory is not None else None,
    ) as check:
        check.start()
        run = check.run()
    counts = run.summary
    problems = []
    if counts.wrong_result or counts.crashed:
        problems.append(
            f"{plural(counts.wrong_result, 'test')} with wrong results, {counts.crashed:,} in which the target died"
        )
    report = report_of(run)
    problems += _shown(failing(findings_of(report, [report_of(one) for one in known], suppressions)), bool(known))
    if problems:
        raise AssertionError("\n".join([*problems, f"`commutant report {run.path}` shows all"]))
    return run


def _corpus(
    interface: str | type[Interface] | Corpus, calls: Sequence[str] | None, size: int, level: Level, jobs: int
) -> Corpus:
    if isinstance(interface, str) and interface.endswith(".jsonl.gz"):
        interface = read_corpus(Path(interface))
    if isinstance(interface, Corpus):
        if calls is not None:
            raise UsageError("a corpus has its calls: expected an interface, or no `calls`")
        return interface
    model = load_interface(interface) if isinstance(interface, str) else interface
    return generate(model, calls, size, level=level, jobs=jobs)


def _shown(groups: Sequence[FindingGroup], against_baseline: bool) -> list[str]:
    """A line for all findings that fail, and one for each of the first."""
    if not groups:
        return []
    kind = "new finding" if against_baseline else "finding"
    lines = [f"{plural(len(groups), kind)}:"]
    for group in groups[:_SHOWN_FINDINGS]:
        first, second = group.fingerprint.functions
        where = f"{', '.join(group.fingerprint.calls)}; {plural(group.tests, 'test')}"
        lines.append(f"  {group.name} in {first} and {second} ({where})")
    if len(groups) > _SHOWN_FINDINGS:
        lines.append(f"  and {len(groups) - _SHOWN_FINDINGS} more")
    return lines
