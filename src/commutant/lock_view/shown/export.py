"""The study for other programs: Parquet with a row per class of locks, and folded stacks for flame graphs.

In DuckDB, the locks that serialise independent work:

    SELECT name, hold_total_instructions, independence_percent
    FROM 'locks.parquet' WHERE independence_percent > 50 ORDER BY hold_total_instructions DESC;
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from commutant.documents import builtins
from commutant.lock_view.shown.documents import LockEntry, lock_entries
from commutant.lock_view.study.classes import LockClass, LockStudy
from commutant.support import RunError, require_parquet, safe_text


def write_parquet(study: LockStudy, classes: Sequence[LockClass], path: Path) -> None:
    """Writes what documents say of each class, a row each. Raises RunError if the file cannot be written, and
    UsageError without the package that writes Parquet."""
    require_parquet()
    import pyarrow as pa
    import pyarrow.parquet as pq

    strings, numbers = pa.string(), pa.float64()
    counts = pa.uint64()
    interval = pa.struct([("least", numbers), ("most", numbers)])
    predictions = pa.list_(
        pa.struct(
            [("change", strings), ("assumes", strings), ("advised", pa.bool_()), ("gains", pa.map_(strings, interval))]
        ),
    )
    field = pa.struct([("name", strings), ("pairs", counts), ("pairs_on_it_alone", counts)])
    caller = pa.struct(
        [("name", strings), ("sections", counts), ("hold_instructions", counts), ("independence_percent", numbers)]
    )
    schema = pa.schema(
        [
            ("name", strings),
            *((name, counts) for name in ("instances", "acquired", "contended")),
            *((name, counts) for name in ("wait_total_nanoseconds", "hold_total_instructions")),
            *((name, counts) for name in ("hold_total_nanoseconds", "never_released", "releases_without_acquire")),
            *((name, numbers) for name in ("contended_conflicts_percent", "conflicting_acquires_percent")),
            *((name, numbers) for name in ("mean_set_bytes", "mean_conflicting_bytes", "conflicting_bytes_percent")),
            ("independence_percent", pa.map_(strings, numbers)),
            ("speed_up", pa.map_(strings, numbers)),
            ("fields", pa.list_(field)),
            ("callers", pa.list_(caller)),
            ("what_if", predictions),
        ]
    )
    rows = [_row(one) for one in lock_entries(study, classes)]
    partial = path.with_name(path.name + ".partial")
    try:
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), partial, compression="zstd")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise RunError(f"cannot write {path}: {error.strerror or error}") from error


def _row(one: LockEntry) -> dict[str, object]:
    """The columns; what is by a number is pairs there."""
    plain = builtins(one)
    return {
        **plain,
        "independence_percent": list(plain["independence_percent"].items()),
        "speed_up": list(plain["speed_up"].items()),
        "what_if": [{**change, "gains": list(change["gains"].items())} for change in plain["what_if"]],
    }


def folded_stacks(classes: Sequence[LockClass]) -> Iterator[str]:
    """Lines `lock;caller instructions`: how long each caller held each lock, as flame graph tools read them."""
    for one in classes:
        for caller in one.callers:
            yield f"{_frame(one.name)};{_frame(caller.name)} {caller.hold_instructions}\n"


def _frame(name: str) -> str:
    return safe_text(name).replace(";", ":")
