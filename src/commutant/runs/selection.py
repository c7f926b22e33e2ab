"""Tests of a run chosen by what they shared there, for a run after a change: it needs to ask them, and some others.

A change is felt by the tests that share what it changes. Others may come to share something by it, so a sample of them
is asked too: every Nth in the corpus's order, which is the same each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from commutant.corpus import Corpus
from commutant.mtrace import Finding
from commutant.runs.directory import Run
from commutant.support import IdentityCache, UsageError

_PREFIXES = ("per-CPU ", "struct ")


def corpus_of_sharing(run: Run, pattern: str, sample: int | None) -> Corpus:
    """The tests of a run that shared a variable of this pattern (`cred.*`), and every `sample`th other.

    Of false sharing each field counts; `struct ` may be left out, and `[]` after an array. Raises UsageError if no
    test shared one.
    """
    # A run's verdicts share one object per distinct finding.
    matches = IdentityCache(lambda finding: any(fnmatchcase(name, pattern) for name in _names(finding)))
    chosen = {verdict.test_id for verdict in run.verdicts() if any(map(matches, verdict.findings))}
    if not chosen:
        raise UsageError(f"{run.path}: no test shared a variable named {pattern!r:.80}; `commutant report` lists them")
    others = [test.id for test in run.corpus.tests if test.id not in chosen]
    chosen.update(others[::sample] if sample else ())
    return run.corpus.with_tests([test for test in run.corpus.tests if test.id in chosen])


def _names(finding: Finding) -> Iterator[str]:
    fields = finding.field.split(" | ") if finding.field else [""]
    objects = [finding.object] if finding.field else finding.object.split(" | ")
    for one in objects:
        for field in fields:
            name = f"{one}.{field}" if field else one
            short = name
            for prefix in _PREFIXES:
                short = short.removeprefix(prefix)
            yield from (name, short, short.replace("[]", ""))
