"""Keeps what was found: the document, the transcripts, and each difference as a test case in a corpus.

The corpus makes a difference an ordinary test: `commutant check DIR` runs it, `commutant show ID --as c` writes it as a
C program.
"""

from __future__ import annotations

from pathlib import Path

from commutant.conformance.conformance import Conformance
from commutant.corpus import Corpus, write_corpus
from commutant.lang import Interface, model_hash
from commutant.runs import CORPUS_FILE, write_atomically, write_document

DOCUMENT_FILE = "conform.json"
TRANSCRIPT_FILE = "differences.txt"


def keep(found: Conformance, interface: type[Interface], directory: Path) -> Path:
    """Writes into a new directory, and gives it back; raises RunError (full disk, missing permission)."""
    write_document(directory / DOCUMENT_FILE, found.document())
    write_atomically(directory / TRANSCRIPT_FILE, (found.text() + "\n").encode(errors="backslashreplace"))
    tests = [difference.test_case(interface) for difference in found.differences]
    known = {test.id: test for test in tests if test is not None}
    if known:
        corpus = Corpus(found.interface, "full", model_hash(interface), list(known.values()))
        write_corpus(corpus, directory / CORPUS_FILE)
    return directory
