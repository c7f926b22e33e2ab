"""The questions that Commutant answers, each a function: what the verbs of the command line do, for programs.

An interface is given as a model (a class), as a shipped name (`"names"`), or as `FILE.py[:Class]` or `module:Class`; a
target as the argument of `--target`. Everything else is named and has the command's default. Bad input raises
`commutant.UsageError`, a run that fails `commutant.RunError`, each with one line that says what to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from commutant.api.answers import Checked, Conditions, Conformed, GateAnswer, LocksCompared, LocksSeen, Tests
from commutant.support import UsageError, available_processors

if TYPE_CHECKING:
    from commutant.corpus import Corpus, Level
    from commutant.lang import Interface
    from commutant.lock_view.shown import LocksDocument
    from commutant.support import ResultCache
    from commutant.targets import Target

_TABLE_ROWS = 15


def analyze(
    interface: str | type[Interface],
    *,
    calls: Sequence[str] | None = None,
    size: int = 2,
    jobs: int | None = None,
    cache: bool = True,
) -> Conditions:
    """When do the calls of an interface commute?

    `calls` restricts the analysis to sets of these calls, `size` is the number of calls in a set, `jobs` the number of
    processes (default: the processors), `cache=False` neither uses nor keeps results of earlier analyses. Of sets of
    more than two calls only paths are counted, unless `calls` names one set.

    >>> print(analyze("figure4"))  # doctest: +ELLIPSIS
    rename, rename: 55 paths, 24 of them commute
      - src.0 = dst.0; src.1 = dst.1
    ...
    """
    from commutant.analyzer import analyze as analyze_interface
    from commutant.analyzer import conditions_fit_on_a_screen

    model = _model(interface)
    return Conditions(
        analyze_interface(
            model,
            calls,
            size,
            detail="conditions" if conditions_fit_on_a_screen(calls, size) else "counts",
            jobs=jobs or available_processors(),
            cache=_cache(cache, model),
        )
    )


def generate(
    interface: str | type[Interface],
    *,
    calls: Sequence[str] | None = None,
    size: int = 2,
    sample: int = 1,
    level: Level = "conflict",
    jobs: int | None = None,
    cache: bool = True,
) -> Tests:
    """One test for each class of states and arguments in which the calls commute.

    `sample` takes only one set in `sample`, `level` is `path`, `conflict` or `full`, from few to many classes; the
    others are those of `analyze`.

    >>> generate("names", calls=["link"]).corpus.interface
    'names'
    """
    from commutant.testgen import generate as generate_tests

    model = _model(interface)
    corpus = generate_tests(
        model, calls, size, sample=sample, level=level, jobs=jobs or available_processors(), cache=_cache(cache, model)
    )
    return Tests(corpus)


def check(
    interface: str | type[Interface] | Tests | Corpus,
    *,
    target: str | Target = "linux",
    calls: Sequence[str] | None = None,
    size: int = 2,
    level: Level = "conflict",
    repeats: int | None = None,
    seed: int = 0,
    directory: str | Path | None = None,
    jobs: int | None = None,
    cache: bool = True,
) -> Checked:
    """Which tests share memory although their calls commute?

    `interface` may also be tests that `generate` made. `target` is the implementation to run on, `repeats` the number
    of windows per order, `seed` that of the order of tests, `directory` the new run directory (default:
    `runs/<interface>-<target>-<n>`).
    """
    from commutant.campaign import DEFAULT_REPEATS
    from commutant.corpus import Corpus
    from commutant.runs import Check
    from commutant.targets import load_target

    jobs = jobs or available_processors()
    if isinstance(interface, Tests):
        interface = interface.corpus
    if not isinstance(interface, Corpus):
        interface = generate(interface, calls=calls, size=size, level=level, jobs=jobs, cache=cache).corpus
    elif calls is not None:
        raise UsageError("tests that were generated have their calls: expected an interface, or no `calls`")
    with Check.new(
        interface,
        load_target(target) if isinstance(target, str) else target,
        jobs=jobs,
        repeats=repeats or DEFAULT_REPEATS,
        seed=seed,
        directory=Path(directory) if directory is not None else None,
    ) as started:
        started.start()
        return Checked(started.run())


def gate(
    run: Checked | str | Path,
    *,
    baseline: str | Path | Iterable[str | Path] = (),
    suppress: str | Path | None = None,
    again: bool = True,
) -> GateAnswer:
    """Does a run find what no earlier run found and no suppression file accepts?

    `run` and `baseline` are run directories; without a baseline every finding fails. What is new is asked `again`, a
    few tests each, on the run's target, and fails only if it is seen again.
    """
    from commutant.compare import Suppressions, read_suppressions
    from commutant.compare import gate as ask
    from commutant.corpus import TestCase
    from commutant.report import RunReport
    from commutant.runs import load_run, report_of, run_again

    checked = run.run if isinstance(run, Checked) else load_run(Path(run))
    known = [load_run(Path(path)) for path in ([baseline] if isinstance(baseline, str | Path) else baseline)]
    accepted = read_suppressions(Path(suppress)) if suppress is not None else Suppressions(())

    def second(tests: Sequence[TestCase]) -> RunReport:
        return report_of(run_again(checked, tests))

    reports = [report_of(one) for one in known]
    return GateAnswer(ask(report_of(checked), reports, accepted, second if again else None))


def conform(
    interface: str | type[Interface],
    *,
    target: str | Target = "linux",
    calls: Sequence[str] | None = None,
    sequences: int = 2000,
    length: int = 20,
    seed: int = 0,
    differences: int = 1,
    jobs: int | None = None,
) -> Conformed:
    """Does an implementation return what the model says, in random sequences of calls?

    `sequences` of at most `length` calls are run, from number `seed` on, until `differences` distinct ones are found.
    Each is shrunk to a shortest one. Raises what ended the run, if anything did.
    """
    from commutant.conformance import Conform
    from commutant.targets import load_target

    with Conform(
        _model(interface),
        load_target(target) if isinstance(target, str) else target,
        argument=interface if isinstance(interface, str) else None,
        calls=calls,
        sequences=sequences,
        length=length,
        seed=seed,
        max_differences=differences,
        jobs=jobs or available_processors(),
    ) as started:
        started.start()
        found = started.run()
    if found.ended is not None:
        raise found.ended
    return Conformed(found)


def locks(
    program: Sequence[str], *, window: int = 128, inlined: bool = True, timeout_seconds: float | None = None
) -> LocksSeen:
    """Which locks of a program serialise work that touches disjoint data?

    `program` is the command line, its first item the program. `window` is how many earlier sections a section is
    compared with, `inlined=False` leaves locks out that are known by their instructions alone. What the program prints
    goes to standard error.
    """
    import sys

    from commutant.lock_view import record_program, study
    from commutant.lock_view.shown import sorted_classes

    if isinstance(program, str) or not program:
        raise UsageError(f'expected a command line as a list, such as ["./program", "argument"], got {program!r}')
    run = record_program(
        program,
        window_sections=window,
        inlined=inlined,
        timeout_seconds=timeout_seconds,
        output=sys.__stderr__.fileno() if sys.__stderr__ is not None else None,
    )
    studied = study(run.records[0])
    return LocksSeen(studied, sorted_classes(studied, "hold_total")[:_TABLE_ROWS])


def compare_locks(base: LocksSeen | str | Path, new: LocksSeen | str | Path) -> LocksCompared:
    """What became of a program's locks with a change: which are waited for less, and whose sections became disjoint?

    Each recording is what `locks` returned, or a file that `commutant locks --format json` wrote.
    """
    from commutant.compare.locks import compare_locks as compare

    return LocksCompared(compare(_recording("BASE", base), _recording("NEW", new)))


def _recording(name: str, given: LocksSeen | str | Path) -> tuple[str, LocksDocument]:
    from commutant.lock_view.shown import locks_document, read_locks

    if isinstance(given, LocksSeen):
        return name, locks_document(given.study, given.study.classes)
    return str(given), read_locks(Path(given))


def _model(interface: str | type[Interface]) -> type[Interface]:
    from commutant.lang import Interface, load_interface

    if isinstance(interface, str):
        return load_interface(interface)
    if not (isinstance(interface, type) and issubclass(interface, Interface)):
        raise UsageError(
            f"expected a model (a class of commutant.lang.Interface) or its name, got {type(interface).__name__}"
        )
    return interface


def _cache(wanted: bool, model: type[Interface]) -> ResultCache | None:
    """The cache, unless it is not wanted or could not tell this model from the one that had its name before."""
    from commutant.lang import is_hashed
    from commutant.support import ResultCache

    return ResultCache(lambda text: None) if wanted and is_hashed(model) else None
