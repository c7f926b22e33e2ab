"""`findings.parquet`: one row per test and standing finding, for DuckDB, Polars, Spark or pandas.

In DuckDB, the variables that break most tests:

    SELECT name, count(DISTINCT test_id) AS tests
    FROM 'runs/names-linux-1/findings.parquet' GROUP BY name ORDER BY tests DESC LIMIT 10;
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from commutant.errors import RunError
from commutant.mtrace.finding import Access, Finding
from commutant.mtrace.fingerprint import Fingerprint
from commutant.mtrace.verdict import Outcome
from commutant.report.data import JudgedTest
from commutant.report.groups import FingerprintTable, has_failing_call
from commutant.report.hints import hint

_ROWS_PER_GROUP = 10_000


def _schema() -> Any:
    import pyarrow as pa

    access = [
        ("core", pa.uint32()),
        ("call", pa.string()),
        ("write", pa.bool_()),
        ("offset", pa.uint8()),
        ("size", pa.uint16()),
        ("function", pa.string()),
        ("stack", pa.list_(pa.string())),
    ]
    fields: list[tuple[str, Any]] = [
        ("test_id", pa.string()),
        ("fingerprint", pa.string()),
        ("calls", pa.list_(pa.string())),
        ("object", pa.string()),
        ("field", pa.string()),
        ("name", pa.string()),
        ("sharing", pa.string()),
        ("kind", pa.string()),
        ("technique", pa.string()),
        ("line", pa.uint64()),
    ]
    for side in ("first", "second"):
        fields.extend((f"{side}_{name}", kind) for name, kind in access)
    return pa.schema(fields)


def _row(judged: JudgedTest, finding: Finding, mark: Fingerprint) -> dict[str, object]:
    calls = list(judged.calls)
    advice = hint(finding, has_failing_call(judged.test.orders))
    row: dict[str, object] = {
        "test_id": judged.test.id,
        "fingerprint": mark.digest,
        "calls": calls,
        "object": finding.object,
        "field": finding.field,
        "name": finding.name,
        "sharing": finding.sharing,
        "kind": advice.kind.value,
        "technique": advice.technique.anchor,
        "line": finding.line_address,
    }
    for side, access in (("first", finding.first), ("second", finding.second)):
        row.update({f"{side}_{name}": value for name, value in _access(access, calls).items()})
    return row


def _access(access: Access, calls: list[str]) -> dict[str, object]:
    return {
        "core": access.core,
        "call": calls[access.core] if access.core < len(calls) else None,
        "write": access.write,
        "offset": access.offset,
        "size": access.size_bytes,
        "function": access.function,
        "stack": list(access.stack),
    }


def write_findings(path: Path, tests: Iterable[JudgedTest]) -> None:
    """Writes the table, row group by row group, all of it or nothing; raises RunError if that fails."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def rows() -> Iterator[dict[str, object]]:
        marks = FingerprintTable()
        for judged in tests:
            if judged.outcome is Outcome.CONFLICTING:
                for finding in judged.findings:
                    yield _row(judged, finding, marks.of(judged.calls, finding))

    schema = _schema()
    temporary: Path | None = None
    try:
        with tempfile.NamedTemporaryFile(prefix=f".{path.name}.", dir=path.parent, delete=False) as file:
            temporary = Path(file.name)
            with pq.ParquetWriter(file, schema, compression="zstd") as writer:
                remaining = rows()
                while group := list(itertools.islice(remaining, _ROWS_PER_GROUP)):
                    writer.write_table(pa.Table.from_pylist(group, schema=schema))
        temporary.chmod(0o644)
        temporary.replace(path)
        temporary = None
    except (OSError, pa.ArrowInvalid, OverflowError) as error:
        raise RunError(f"cannot write {path}: {getattr(error, 'strerror', None) or error}") from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
