"""Wrong uses of the command line: each gets one line on standard error, and that line says what to do next."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

SEE = "(see `commutant {} --help`)"
RUN = "expected a run directory as `commutant check` makes it"
INTERFACE = "expected one of allocator, counter"
TARGET = "expected one of fake, gallery, library, linux"

WRONG = {
    "chekc names": "did you mean 'check'?",
    "xyzzy": "(see `commutant --help`)",
    "help chekc": "did you mean 'check'?",
    "help check more": "(see `commutant help --help`)",
    "analyze": SEE.format("analyze"),
    "analyze namse": "did you mean 'names'?",
    "analyze mmap": "`commutant check posix18 --calls mmap,mmap`",
    "analyze names --calls opne,link": "did you mean 'open'?",
    "analyze names --size 0": "not in the range 1<=x<=6",
    "analyze names --format yaml": "is not one of 'text', 'json', 'smt2'",
    "analyze names --bogus": SEE.format("analyze"),
    "analyze figure4 extra": SEE.format("analyze"),
    "analyze absent.py": "expected a Python file with a model",
    "generate namse": INTERFACE,
    "generate names -o .": "-o takes a new directory or a new file",
    "check": "expected an interface or a corpus, or --of RUN instead",
    "check names --target lnux": "did you mean 'linux'?",
    "check names --target linux:fs": "expected linux:key=value",
    "check names --target linux:fs=ext9": "expected one of tmpfs, ramfs",
    "check names --target linux:fz=ext4": "expected fs=tmpfs|ramfs",
    "check names --target linux:cpus=many": "expected a number from 2 to 32",
    "check names --target linux:kernel=absent": "that `commutant prepare NAME` has prepared",
    "check names --target scalefs:cores=0": "expected a number from 2 to 255",
    "check map --target library": "as in library:path=adapter.so",
    "check map --target library:path=absent.so": "expected an adapter, a shared object",
    "check names --target fake -o .": "-o takes the name of a new directory",
    "check names --target fake --jobs 0": "not in the range",
    "check absent.jsonl.gz --target fake": "expected a file that `commutant generate -o` has written",
    "check corpus.jsonl.gz --target fake --fail-on new": "needs --baseline RUN",
    "check corpus.jsonl.gz --target fake --fail-on new --baseline absent": RUN,
    "check corpus.jsonl.gz --target fake --suppress absent": "docs/guides/ci.md says how to write one",
    "check corpus.jsonl.gz --target fake --shard 3/2": "expected a shard from 1/2 to 2/2",
    "check --target fake --of absent": "needs --sharing PATTERN, such as 'cred.*'",
    "resume absent": RUN,
    "repeat absent.json": "expected a file of a run directory",
    "report absent": RUN,
    "report .": RUN,
    "report . --format pdf": "is not one of 'text', 'html'",
    "show absent": "--from RUN or --from CORPUS says where to look",
    "show open,nope": "--from RUN says where to look",
    "diff absent": SEE.format("diff"),
    "diff absent other": "expected a run directory, a corpus or a recording of locks",
    "remedy": SEE.format("remedy"),
    "remedy absent": RUN,
    "prove absent": SEE.format("prove"),
    "prove absent other": RUN,
    "history": SEE.format("history"),
    "history absent": "expected two runs or more, oldest first",
    "conform names --target absent": TARGET,
    "conform map --target library:path=absent.so": "expected an adapter, a shared object",
    "locks": "commutant locks -- PROGRAM [ARGS]",
    "locks -- ./absent": "expected a program, a path or a name on PATH",
    "locks --span sometime -- true": "such as 2,5 (5 s from 2 s on)",
    "locks --format html -o absent/x.html -- true": "-o takes the name of a new file in one that exists",
    "locks --target linux:fs=ext4": "expected kernel=PATH, cpus=N",
    "locks --sort colour -- true": "expected one of acquired, contended",
    "kernel": "expected one of build, ",
    "kernel build": SEE.format("kernel build"),
    "kernel build --source absent --name x": "expected two or more lower-case letters",
    "scale absent": "expected a benchmark that `commutant scale` lists",
    "scale -- ./absent": "expected a program, a path or a name on PATH",
    "new": "expected one of adapter, model",
    "new adapter": SEE.format("new adapter"),
    "new adapter hashmap --lang c": "did you mean 'map'?",
    "new adapter map --lang java": "is not one of 'c', 'cpp', 'rust'",
    "new adapter map": "Choose from: c, cpp, rust (see",
    "new model 1x": "expected a name for a class, such as Store",
    "merge": SEE.format("merge"),
    "merge absent -o x": "expected a file that `commutant generate -o` has written",
    "compare names": SEE.format("compare"),
    "compare names absent": INTERFACE,
    "completion": "Choose from: bash, zsh, fish",
    "completion tcsh": "is not one of 'bash', 'zsh', 'fish'",
    "cache absent": SEE.format("cache"),
    "doctor absent": SEE.format("doctor"),
}


def test_there_are_enough_of_them() -> None:
    assert len(WRONG) >= 45


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_use_is_one_line_with_the_next_step(commutant, folder: Path, line: str) -> None:
    before = sorted(folder.rglob("*"))
    answer = commutant(*shlex.split(line))
    (error,) = answer.stderr.splitlines()
    assert (answer.returncode, answer.stdout) == (2, "")
    assert error.startswith("commutant: ") and WRONG[line] in error
    assert "Traceback" not in error and "\\t" not in error and "Usage: " not in error
    assert sorted(folder.rglob("*")) == before, "nothing is left behind"
