"""`findings.parquet`: one row per test and standing finding, for DuckDB, Polars, Spark or pandas.

In DuckDB, the variables that break most tests:

    SELECT name, count(DISTINCT test_id) AS tests
    FROM 'runs/names-linux-1/findings.parquet' GROUP BY name ORDER BY tests DESC LIMIT 10;
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commutant.campaign import Outcome
from commutant.mtrace import Access, Finding, fingerprint
from commutant.support import IdentityCache, RunError, require_parquet, whole_file

if TYPE_CHECKING:
    from commutant.report import JudgedTest

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


def _details(calls: tuple[str, ...], finding: Finding, failing: bool) -> dict[str, object]:
    """A row without the test's id: the same for all tests of these calls that have the finding."""
    from commutant.report import hint

    advice = hint(finding, failing)
    row: dict[str, object] = {
        "fingerprint": fingerprint(calls, finding).digest,
        "calls": list(calls),
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


def _access(access: Access, calls: Sequence[str]) -> dict[str, object]:
    return {
        "core": access.core,
        "call": calls[access.core] if access.core < len(calls) else None,
        "write": access.write,
        "offset": access.offset,
        "size": access.size_bytes,
        "function": access.function,
        "stack": list(access.stack),
    }


class _Rows:
    """The rows of the table: a test's id and the number of its details, of which each distinct one is kept once."""

    def __init__(self, tests: Iterable[JudgedTest]) -> None:
        self.test_ids: list[str] = []
        self.numbers = array("I")
        self.details: list[dict[str, object]] = []
        known: dict[tuple[tuple[str, ...], int, bool], int] = {}
        kept: list[Finding] = []  # so that the identity of each stays its own
        from commutant.report import has_failing_call, has_idle_call

        fails = IdentityCache(has_failing_call)
        for judged in tests:
            if judged.outcome is not Outcome.CONFLICTING:
                continue
            calls, failing = judged.calls, has_idle_call(judged.test, fails)
            for finding in judged.findings:
                key = calls, id(finding), failing
                number = known.get(key)
                if number is None:
                    number = known[key] = len(known)
                    self.details.append(_details(calls, finding, failing))
                    kept.append(finding)
                self.test_ids.append(judged.test.id)
                self.numbers.append(number)


def write_findings(path: Path, tests: Iterable[JudgedTest]) -> None:
    """Writes the table, row group by row group, all of it or nothing; raises RunError if that fails, and UsageError
    without the package that writes Parquet."""
    require_parquet()
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = _schema()
    test_id = schema.field("test_id")
    try:
        rows = _Rows(tests)
        details = pa.Table.from_pylist(rows.details, schema=schema.remove(0))
        with whole_file(path) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
            for start in range(0, len(rows.test_ids), _ROWS_PER_GROUP):
                group = slice(start, start + _ROWS_PER_GROUP)
                table = details.take(pa.array(rows.numbers[group]))
                writer.write_table(table.add_column(0, test_id, pa.array(rows.test_ids[group], test_id.type)))
    except (OSError, pa.ArrowInvalid, OverflowError) as error:
        raise RunError(f"cannot write {path}: {getattr(error, 'strerror', None) or error}") from error
