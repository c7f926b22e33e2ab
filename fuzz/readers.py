"""Each Python reader of what others wrote, given bytes that libFuzzer chooses by the code they reach (atheris).

`python fuzz/readers.py READER [libFuzzer's options] [folders of inputs]`; `make fuzz` calls it. A reader gives an
answer or a `CommutantError`. Anything else that it raises, a hang and too much memory are findings. What only a
checksum or a hash would refuse is put right first, so that the fuzzer gets behind it.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["commutant", "tarfile", "msgspec"]):
    from commutant.compare import read_suppressions
    from commutant.corpus import TestCase, read_corpus
    from commutant.guest import kernel, package
    from commutant.lock_view import record
    from commutant.runs import load_run, report_of
    from commutant.support import CommutantError

PLANTED = "readers: no suppression outlives its century"
"""A planted fault: what reads the file takes for granted what it need not say."""

_HERE = Path(__file__).resolve().parent
_PLACE = Path(tempfile.mkdtemp(prefix="commutant-readers-"))


def _written(name: str, content: bytes) -> Path:
    path = _PLACE / name
    path.write_bytes(content)
    return path


def corpora(content: bytes) -> None:
    """The lines of a corpus, which the file holds compressed; each test's id is what its line says."""
    read_corpus(_written("corpus.jsonl.gz", gzip.compress(content, 1)))


def runs(content: bytes) -> None:
    """A run's directory of which one file is any: the first byte says which."""
    folder = _PLACE / "run"
    if not folder.exists():
        folder.mkdir()
        for path in (_HERE / "seeds" / "run").iterdir():
            (folder / path.name).write_bytes(path.read_bytes())
    name = ("run.json", "summary.json", "verdicts.jsonl")[content[0] % 3 if content else 0]
    whole = (folder / name).read_bytes()
    try:
        (folder / name).write_bytes(content[1:])
        run = load_run(folder)
        list(run.timed_verdicts())
        list(run.findings())
        report_of(run)
        if run.complete:
            _ = run.summary
    finally:
        (folder / name).write_bytes(whole)


def suppressions(content: bytes) -> None:
    """A suppression file."""
    read = read_suppressions(_written("suppressions.toml", content))
    if os.environ.get("COMMUTANT_PLANTED_FAULT") == PLANTED:
        assert all(entry.expires.year < 2100 for entry in read.unused), "planted"


def records(content: bytes) -> None:
    """A record of locks."""
    record.read_record(_written("record.json", content))


class _Unpacked:
    """What the unpacker of packages writes, without the unpacker: a program a time is too slow."""

    def __init__(self, content: bytes) -> None:
        self.stdout = io.BytesIO(content)

    def wait(self, seconds: float) -> int:
        """Has ended."""
        return 0

    def kill(self) -> None:
        """Has ended."""


def kernels(content: bytes) -> None:
    """A kernel, its compressed image, or the archive in a package of one."""

    @contextlib.contextmanager
    def started(command: object, **rest: object) -> Iterator[_Unpacked]:
        yield _Unpacked(content)

    package.start_program = started  # type: ignore[assignment]
    kernel.kernels_folder = lambda: _PLACE / "kernels"
    kernel.unpack(_written("image", content if content[:1] != b"!" else b"!<arch>\n" + content[1:]))


READERS: dict[str, Callable[[bytes], None]] = {
    reader.__name__: reader for reader in (corpora, runs, suppressions, records, kernels)
}


def main() -> None:
    """Fuzzes the reader that the first argument names."""
    if len(sys.argv) < 2 or sys.argv[1] not in READERS:
        sys.exit(f"expected one of {', '.join(READERS)}")
    read = READERS[sys.argv.pop(1)]
    TestCase.content_id = lambda self: self.id  # type: ignore[method-assign]

    @atheris.instrument_func
    def one_input(content: bytes) -> None:
        with contextlib.suppress(CommutantError):
            read(content)

    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
