"""A comparison as Markdown for a pull request: the counts first, everything longer folded away."""

from __future__ import annotations

from collections.abc import Iterator

from commutant.compare.corpora import CorpusComparison
from commutant.compare.runs import RunComparison
from commutant.compare.sides import Side
from commutant.report import FindingGroup, by_weight, cell, code, folded, table
from commutant.support import plural

LISTED = 30
LISTED_IDS = 20
CAUSES = 3


def run_comparison_markdown(comparison: RunComparison, base: Side, new: Side) -> str:
    """Two runs."""
    return "\n\n".join(_run_parts(comparison, base, new)) + "\n"


def _run_parts(comparison: RunComparison, base: Side, new: Side) -> Iterator[str]:
    appeared = [group for group in comparison.appeared if not group.accepted]
    accepted = len(comparison.appeared) - len(appeared)
    yield f"### {plural(len(appeared), 'new finding')}" + (f", {accepted:,} accepted" if accepted else "")
    before, after = comparison.shared
    yield (
        f"{plural(len(comparison.worse), 'test')} worse, {len(comparison.better):,} better of {comparison.common:,} "
        f"in both; {plural(len(comparison.went), 'finding')} went, {len(comparison.moved):,} moved, "
        f"{len(comparison.stayed):,} stayed. "
        f"Shared variables, summed up over the tests: {before:,} → {after:,}."
    )
    yield f"- base: {code(base.title)}: {base.counts}\n- new: {code(new.title)}: {new.counts}"
    yield from (f"{line}." for line in comparison.reach("base", "new"))
    worse = [one for one in comparison.sets if one.worse]
    if worse:
        rows = (
            (
                cell(", ".join(one.calls)),
                f"{one.worse:,}",
                f"{one.before:,} → {one.after:,} of {one.tests:,}",
                ", ".join(f"{cell(name)} ({count:,})" for name, count in one.causes.most_common(CAUSES)),
            )
            for one in worse[:LISTED]
        )
        yield table(("calls", "worse:", "not conflict-free:", "because of"), rows)
    for title, groups in (
        ("new finding", appeared),
        ("finding that moved", comparison.moved),
        ("finding that went", comparison.went),
    ):
        if groups:
            plural_title = plural(len(groups), title, title.replace("finding", "findings"))
            yield folded(plural_title, _findings(by_weight(groups)))


def corpus_comparison_markdown(comparison: CorpusComparison, base: Side, new: Side) -> str:
    """Two corpora."""
    parts = [
        f"### {plural(comparison.added, 'test')} added, {comparison.removed:,} removed",
        "\n".join(
            (
                f"- base: {code(base.title)}: {base.counts}",
                f"- new: {code(new.title)}: {new.counts}",
                f"- in both: {comparison.common:,}",
            )
        ),
    ]
    changed = [one for one in comparison.sets if one.added or one.removed]
    if changed:
        rows = (
            (
                cell(", ".join(one.calls)),
                f"{len(one.added):,}",
                f"{len(one.removed):,}",
                f"{one.common:,}",
            )
            for one in changed[:LISTED]
        )
        parts.append(table(("calls", "added:", "removed:", "in both:"), rows))
        for title, ids in (
            ("Added", [test_id for one in changed for test_id in one.added]),
            ("Removed", [test_id for one in changed for test_id in one.removed]),
        ):
            if ids:
                listed = "\n".join(f"- {code(test_id)}" for test_id in ids[:LISTED_IDS])
                more = f"\n- and {len(ids) - LISTED_IDS:,} more" if len(ids) > LISTED_IDS else ""
                parts.append(folded(title, listed + more))
    return "\n\n".join(parts) + "\n"


def _findings(groups: list[FindingGroup]) -> str:
    rows = (
        (
            cell(group.name),
            cell(", ".join(group.fingerprint.calls)),
            ", ".join(map(cell, dict.fromkeys(group.fingerprint.functions))),
            f"{group.tests:,}",
            group.hint.technique.title,
            f"`{group.fingerprint.digest}`",
        )
        for group in groups[:LISTED]
    )
    shown = table(("variable", "calls", "functions", "tests:", "look at", "fingerprint"), rows)
    return shown + (f"\n\nand {len(groups) - LISTED:,} more" if len(groups) > LISTED else "")
