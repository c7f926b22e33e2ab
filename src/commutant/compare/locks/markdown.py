"""Two recordings of locks as Markdown for a pull request: what was gained first, everything longer folded away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from commutant.compare.locks.comparison import LockComparisonDocument
from commutant.compare.locks.lines import HEADINGS, alone, both, details, figures, gained, heading
from commutant.report import cell, code, folded, table
from commutant.support import plural

LISTED = 30


def lock_comparison_markdown(found: LockComparisonDocument) -> str:
    """The two recordings, how many locks changed and how, and tables."""
    return "\n\n".join(_parts(found)) + "\n"


def _parts(found: LockComparisonDocument) -> Iterator[str]:
    yield f"### {plural(len(found.locks), 'class', 'classes')} of locks in both: {heading(found)}"
    yield f"{gained(found)}."
    base, new = found.base, found.new
    yield f"- base: {code(base.title)}: {base.counts}\n- new: {code(new.title)}: {new.counts}"
    if found.locks:
        yield _table((lock.name, both(lock)) for lock in found.locks[:LISTED])
    changes = [f"- {code(lock.name)}: {text}" for lock in found.locks[:LISTED] for text in details(lock, code)]
    if changes:
        yield folded("What became of sections", "\n".join(changes))
    for label, locks in alone(found):
        shown = _table((lock.name, figures(lock.figures)) for lock in locks[:LISTED])
        more = f"\n\nand {len(locks) - LISTED:,} more" if len(locks) > LISTED else ""
        yield folded(f"Only in {label}: {len(locks):,}", shown + more)


def _table(rows: Iterable[tuple[str, tuple[str, ...]]]) -> str:
    return table(("lock", *(f"{name}:" for name in HEADINGS)), ((cell(name), *cells) for name, cells in rows))
