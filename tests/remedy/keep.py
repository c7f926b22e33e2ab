"""Cuts a pair of runs down to what the repository keeps.

`PYTHONPATH=scripts python -m tests.remedy.keep 6.1/cred-non-rcu runs/remedies/6.1/base runs/remedies/6.1/cred-non-rcu`

Kept are tests that the change was predicted to free, those that were freed besides or became worse, and a sample of the
others that NEW ran. `kept/SERIES/PATCH.tar.xz` holds both runs, without what they say of the machine that ran them.
"""

from __future__ import annotations

import io
import lzma
import sys
import tarfile
import tempfile
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from commutant.campaign.summary import Tally
from commutant.corpus import TestCase
from commutant.remedy import foretell, prove, scene_of
from commutant.runs import Run, judged_tests, load_run
from commutant.runs.directory import RunWriter, new_directory
from tests.remedy.test_kept import KEPT, changes_of

FORETOLD, OTHERS, SAMPLE = 60, 12, 24
"""This many tests that were predicted to be freed, that became better or worse otherwise, and that nothing is known
of."""

_TOLD = ("kernel", "kernel_sha256", "file_system", "kernel_build")
_BUILD = ("source", "version", "compiler", "config_sha256", "source_sha256")


def _spread(tests: list[str], most: int) -> set[str]:
    """At most this many of them, from all over the list."""
    return set(tests[:: max(1, -(-len(tests) // most))])


def _described(run: Run) -> dict[str, object]:
    """What a run says of its system, without the texts of patches."""
    known = {key: value for key, value in run.info.target_description.items() if key in _TOLD}
    build = known.get("kernel_build")
    if isinstance(build, dict):
        titles = [{key: one[key] for key in ("title", "sha256")} for one in build["patches"]]
        known["kernel_build"] = {key: build[key] for key in _BUILD} | {"patches": titles}
    return known


def _cut(run: Run, path: Path, tests: list[TestCase]) -> None:
    """A run of these tests alone."""
    new_directory(path, "")
    corpus = replace(run.corpus, tests=tuple(tests))
    kernel = run.info.target.partition("=")[2]
    command = ["commutant", "check", "runs/base" if path.name == "new" else run.info.interface, "--target", kernel]
    info = structs.replace(
        run.info,
        tests=len(tests),
        command=command,
        target_description=_described(run),
        tests_sha256="",
        generated=None,
    )
    wanted = {test.id for test in tests}
    with RunWriter.create(path, info, corpus) as writer:
        tally = Tally(corpus.tests)
        for verdict in run.verdicts():
            if verdict.test_id in wanted:
                tally.add(run.tests[verdict.test_id], writer.append(verdict, 0.0))
        writer.finish(tally.summary(info.interface, info.target, info.level, 0.0, 0.0))


def keep(name: str, base: Run, new: Run) -> Path:
    """Writes the archive of a patch (`6.1/cred-non-rcu`)."""
    foretold = foretell(scene_of(base.verdicts()), changes_of(name)).freed
    proof = prove(list(judged_tests(base)), list(judged_tests(new)), foretold)
    judged = [test.id for test in new.corpus.tests]
    chosen = _spread([test for test in judged if test in foretold], FORETOLD)
    chosen |= _spread([test for test in judged if test in proof.besides | proof.worse], OTHERS)
    chosen |= _spread([test for test in judged if test not in foretold], SAMPLE)
    tests = [test for test in new.corpus.tests if test.id in chosen]
    with tempfile.TemporaryDirectory() as folder:
        for run, side in ((base, "base"), (new, "new")):
            _cut(run, Path(folder, side), tests)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for path in sorted(Path(folder).rglob("*.*")):
                entry = tarfile.TarInfo(str(path.relative_to(folder)))
                entry.size = path.stat().st_size
                with path.open("rb") as file:
                    archive.addfile(entry, file)
    out = KEPT / f"{name}.tar.xz"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(lzma.compress(packed.getvalue(), preset=9 | lzma.PRESET_EXTREME))
    return out


if __name__ == "__main__":
    name, base, new = sys.argv[1:]
    print(keep(name, load_run(Path(base)), load_run(Path(new))))
