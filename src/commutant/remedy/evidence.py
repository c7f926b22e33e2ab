"""A proof for people: in the terminal, as JSON, and as the evidence of a commit message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from commutant.campaign import Verdict
from commutant.mtrace import Access, Finding, PictureLine
from commutant.remedy.change import Change
from commutant.remedy.documents import (
    ProofDocument,
    TransferProofEntry,
    TransferTallyEntry,
    change_entries,
    moves,
    named_counts,
    set_counts,
    transfer_count,
)
from commutant.remedy.prove import Proof
from commutant.remedy.prove_transfers import TransferProof, TransferTally
from commutant.remedy.traffic import range_text
from commutant.support import plural, safe_text

_SHOWN = 6
_FRAMES = 6

Calls = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class ProvenRun:
    """What evidence says of a run: its folder, target and kernel, and the command that repeats it."""

    path: str
    target: str
    system: str
    command: str


def print_proof(
    proof: Proof,
    old: ProvenRun,
    new: ProvenRun,
    changes: Sequence[Change],
    calls: Calls,
    console: Console,
    transfers: TransferProof | None = None,
) -> None:
    """Prints what became of the tests, and of transfers where both runs tell."""
    for text in (*_lines(proof, old, new, changes, calls), *_transfer_lines(transfers)):
        console.print(Text(safe_text(text)), soft_wrap=True)


def _lines(proof: Proof, old: ProvenRun, new: ProvenRun, changes: Sequence[Change], calls: Calls) -> Iterable[str]:
    before, after = proof.shared
    yield f"{old.path} -> {new.path}: {plural(proof.tests, 'test')} in all runs"
    yield f"not conflict-free: {before:,} before, {after:,} after"
    yield f"freed: {len(proof.freed):,}{_mostly(proof.freed, calls)}"
    if proof.foretold is not None:
        for change in changes:
            yield f"  predicted for: {change}"
        yield f"  as predicted: {len(proof.as_foretold):,} of {len(proof.foretold):,}, besides: {len(proof.besides):,}"
        if proof.not_freed:
            noise = f"; {len(proof.by_noise):,} of them by noise alone" if proof.by_noise else ""
            yield f"  predicted but left: {len(proof.not_freed):,}, by {_names(proof.left)}{noise}"
    floor = "" if proof.worse_floor is None else f" (the same system twice: {proof.worse_floor:,})"
    yield f"worse: {len(proof.worse):,}{floor}{_mostly(proof.worse, calls)}"
    for (was, now), count in proof.moved.most_common(_SHOWN):
        yield f"moved, in {plural(count, 'test')}: {was} is now {now}"
    for name, count in proof.new.most_common():
        yield f"new, in {plural(count, 'test')}: {name}"
    if not proof.new:
        yield "new: nothing above the noise floor"
    if proof.noise:
        yield f"below it: {_names(proof.noise)}"
    if proof.wrong:
        yield f"wrong results or crashes: {len(proof.wrong):,}"


def _transfer_lines(proof: TransferProof | None) -> Iterable[str]:
    if proof is None:
        return
    yield f"transfers per round, with {proof.cores} cores, in {_tally_text(proof.every)}"
    if proof.alike is not None and proof.alike != proof.every:
        yield f"where cores do the same in NEW as in BASE: in {_tally_text(proof.alike)}"


def _tally_text(tally: TransferTally) -> str:
    return (
        f"{plural(tally.tests, 'test')}: {range_text(tally.before)} before, {range_text(tally.predicted)} predicted, "
        f"{range_text(tally.counted)} counted; median error {tally.median_error:.2f}, direction right in "
        f"{tally.right:,}"
    )


def proof_document(
    proof: Proof,
    old: ProvenRun,
    new: ProvenRun,
    changes: Sequence[Change],
    calls: Calls,
    transfers: TransferProof | None = None,
) -> ProofDocument:
    """The document."""
    return ProofDocument(
        base=old.path,
        new=new.path,
        holds=proof.holds,
        tests=proof.tests,
        not_conflict_free=proof.shared,
        changes=change_entries(changes),
        freed=tuple(sorted(proof.freed)),
        freed_as_foretold=len(proof.as_foretold),
        foretold=None if proof.foretold is None else len(proof.foretold),
        foretold_but_left=tuple(sorted(proof.not_freed)),
        left=named_counts(proof.left.most_common()),
        left_by_noise=len(proof.by_noise),
        worse=tuple(sorted(proof.worse)),
        worse_of_base=proof.worse_floor,
        moved=moves(proof.moved.most_common()),
        appeared=named_counts(proof.new.most_common()),
        noise=named_counts(proof.noise.most_common()),
        wrong=tuple(sorted(proof.wrong)),
        sets=set_counts(_sets(proof.freed, calls)),
        transfers=None if transfers is None else _entry(transfers),
    )


def _entry(proof: TransferProof) -> TransferProofEntry:
    alike = None if proof.alike is None else _tally(proof.alike)
    return TransferProofEntry(proof.cores, _tally(proof.every), alike)


def _tally(tally: TransferTally) -> TransferTallyEntry:
    return TransferTallyEntry(
        tally.tests,
        transfer_count(tally.before),
        transfer_count(tally.predicted),
        transfer_count(tally.counted),
        round(tally.median_error, 4),
        tally.right,
    )


def commit_message(
    proof: Proof, old: ProvenRun, new: ProvenRun, changes: Sequence[Change], calls: Calls, base: Mapping[str, Verdict]
) -> str:
    """The evidence for a commit message: the line with who writes and reads each field, both stacks, numbers, and the
    commands that repeat it; in ASCII, wide as mails are."""
    text: list[str] = []
    example = _example(proof, base)
    if example is not None:
        finding, line = example
        text += ["Calls that commute write and read one cache line", f"({_ascii(finding.object)}):", ""]
        text += _picture(finding, line)
        for number, access in enumerate((finding.first, finding.second)):
            text += ["", f"  CPU {number}: {_stack(access)}"]
        text.append("")
    before, after = proof.shared
    text += [f"Tests of commuting calls, before on {old.system}, after on {new.system}:"]
    text += [f"  {proof.tests:,} run on both; not conflict-free: {before:,} before, {after:,} after"]
    foretold = "" if proof.foretold is None else f", {len(proof.as_foretold):,} of {len(proof.foretold):,} predicted"
    text += [f"  share nothing any more: {len(proof.freed):,}{foretold}"]
    text += [f"    {' + '.join(one)}: {count:,}" for one, count in _sets(proof.freed, calls)[:_SHOWN]]
    floor = "" if proof.worse_floor is None else f" (the same kernel twice: {proof.worse_floor:,})"
    text += [f"  worse: {len(proof.worse):,}{floor}; wrong results: {len(proof.wrong):,}"]
    text += [f"  variables not shared before: {_ascii(_names(proof.new)) if proof.new else 'none'}"]
    text += ["", "To repeat:", f"  {_ascii(old.command)}", f"  {_ascii(new.command)}"]
    return "\n".join(text) + "\n"


def _example(proof: Proof, base: Mapping[str, Verdict]) -> tuple[Finding, PictureLine] | None:
    """The finding that most freed tests had, with a line that shows it."""
    found: Counter[int] = Counter()
    kept: dict[int, tuple[Finding, PictureLine]] = {}
    for test in sorted(proof.freed):
        verdict = base[test]
        for number, finding in enumerate(verdict.findings):
            drawn = verdict.pictures[number][0].lines[0] if verdict.pictures else None
            found[id(finding)] += 1
            kept.setdefault(id(finding), (finding, drawn or PictureLine(0, finding.fields, finding.touched)))
    return kept[found.most_common(1)[0][0]] if found else None


def _picture(finding: Finding, line: PictureLine) -> list[str]:
    """The line field by field: place in the object, size, name, and who does what to it."""
    rows = []
    for one in line.fields:
        if one.name in (finding.object, ""):
            continue
        marks = []
        for core in line.touched:
            wrote, read = (_overlaps(ranges, one.offset, one.size_bytes) for ranges in (core.written, core.read))
            if wrote or read:
                marks.append(f"CPU {core.core} {'writes' if wrote else 'reads'}")
        name = one.name.split(" ", 1)[-1]
        rows.append(
            f"  {line.offset + one.offset:5d} {one.size_bytes:3d}  {_ascii(name):<40} {', '.join(marks)}".rstrip()
        )
    return rows


def _overlaps(ranges: Iterable[tuple[int, int]], offset: int, size_bytes: int) -> bool:
    return any(start < offset + size_bytes and offset < start + size for start, size in ranges)


def _stack(access: Access) -> str:
    return " < ".join(_ascii(frame.split("+")[0]) for frame in access.stack[:_FRAMES])


def _ascii(text: str) -> str:
    return safe_text(text).encode("ascii", "replace").decode()


def _names(names: Counter[str]) -> str:
    shown = [f"{name} ({count:,})" for name, count in names.most_common(_SHOWN)]
    return ", ".join(shown) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def _sets(tests: Collection[str], calls: Calls) -> list[tuple[tuple[str, ...], int]]:
    return sorted(Counter(calls[test] for test in tests).items(), key=lambda one: (-one[1], one[0]))


def _mostly(tests: Collection[str], calls: Calls) -> str:
    named = [f"{'+'.join(one)} {count:,}" for one, count in _sets(tests, calls)[:3]]
    return f", mostly in {', '.join(named)}" if named else ""
