"""Does the implementation share memory where its calls commute? `commutant.api.check`, and its gate, as one check."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from commutant.api import check, gate
from commutant.campaign import DEFAULT_REPEATS
from commutant.compare import read_suppressions
from commutant.corpus import Corpus, Level, read_corpus
from commutant.lang import Interface
from commutant.runs import Run, load_run
from commutant.support import plural
from commutant.targets import Target


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
    the run directory, or several, of earlier checks: what they found is known and does not fail. What is new runs again
    before it fails, where the target is given by its name. `directory` is the new run directory. The other parameters
    are the verb's flags. Returns the run.

    Raises AssertionError with the findings that no one knew or accepted, for wrong results and deaths; UsageError (also
    if no test can be run) and RunError as the verb does.
    """
    __tracebackhide__ = True
    if isinstance(interface, str) and interface.endswith(".jsonl.gz"):
        interface = read_corpus(Path(interface))
    known = [baseline] if isinstance(baseline, str | Path) else list(baseline)
    for path in known:
        load_run(Path(path))  # refused before anything runs
    if suppress is not None:
        read_suppressions(Path(suppress))
    checked = check(
        interface,
        target=target,
        calls=calls,
        size=size,
        level=level,
        repeats=repeats,
        seed=seed,
        directory=directory,
        jobs=jobs,
    )
    counts = checked.summary
    problems = []
    if counts.wrong_result or counts.crashed:
        problems.append(
            f"{plural(counts.wrong_result, 'test')} with wrong results, {counts.crashed:,} in which the target died"
        )
    answer = gate(checked, baseline=known, suppress=suppress, again=isinstance(target, str))
    if not answer:
        problems += answer.gated.lines()
    if problems:
        raise AssertionError("\n".join([*problems, f"`commutant report {checked.run.path}` shows all"]))
    return checked.run
