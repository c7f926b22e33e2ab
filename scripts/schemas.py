"""Writes the JSON schemas in docs/schemas from the declarations of the documents: `python scripts/schemas.py`.

A test compares. What a document is for, this table says; what is in it, the declarations' docstrings say.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from commutant import documents
from commutant.analyzer import AnalysisDocument
from commutant.campaign import Summary
from commutant.cli.cache import CacheDocument
from commutant.compare import CorpusComparisonDocument, RunComparisonDocument
from commutant.compare.locks import LockComparisonDocument
from commutant.conformance import ConformDocument
from commutant.corpus import CORPUS_LINES
from commutant.doctor import DoctorReport
from commutant.gains import CompareDocument
from commutant.kernels import KernelDocument, KernelListDocument
from commutant.lock_view import Recording
from commutant.lock_view.shown import LocksDocument
from commutant.remedy import HistoryDocument, ProofDocument, RemedyDocument, TransferDocument
from commutant.report import ReportDocument
from commutant.runs import VERDICT_LINES, RunInfo
from commutant.scale import ScaleDocument
from commutant.testgen import GenerateDocument
from commutant.trying import TryDocument

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "schemas"

SCHEMAS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "analyze": ("Output of commutant analyze --format json", (AnalysisDocument,)),
    "cache": ("Output of commutant cache --format json", (CacheDocument,)),
    "compare": ("Output of commutant compare --format json", (CompareDocument,)),
    "conform": ("Output of commutant conform --format json, and conform.json of its directory", (ConformDocument,)),
    "corpus": ("A line of a corpus file", CORPUS_LINES),
    "diff": (
        "Output of commutant diff --format json",
        (RunComparisonDocument, CorpusComparisonDocument, LockComparisonDocument),
    ),
    "doctor": ("Output of commutant doctor --format json", (DoctorReport,)),
    "generate": ("Output of commutant generate --format json", (GenerateDocument,)),
    "history": ("Output of commutant history --format json", (HistoryDocument,)),
    "kernel": ("Output of commutant kernel build --format json", (KernelDocument,)),
    "kernel-list": ("Output of commutant kernel list --format json", (KernelListDocument,)),
    "lock-record": ("The lock record that the recorder writes of a process", (Recording,)),
    "locks": ("Output of commutant locks --format json", (LocksDocument,)),
    "prove": ("Output of commutant prove --format json, per NEW", (ProofDocument,)),
    "remedy": ("Output of commutant remedy --format json", (RemedyDocument, TransferDocument)),
    "report": ("Output of commutant report --format json", (ReportDocument,)),
    "run": ("run.json of a run directory", (RunInfo,)),
    "scale": ("Output of commutant scale --format json", (ScaleDocument,)),
    "summary": ("summary.json of a run directory, and output of commutant check --format json", (Summary,)),
    "try": ("Output of commutant try --format json", (TryDocument,)),
    "verdict": ("One line of verdicts.jsonl in a run directory", VERDICT_LINES),
}
"""By the file's name: the title, and the declarations of which a document is one."""


def text_of(name: str) -> str:
    """What the file of a document's schema should hold."""
    title, declarations = SCHEMAS[name]
    return json.dumps(documents.schema(title, *declarations), indent=2, ensure_ascii=False) + "\n"


def main() -> int:
    """Writes all of them; returns the exit code."""
    for name in SCHEMAS:
        (FOLDER / f"{name}.schema.json").write_text(text_of(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
