"""Many mutants in one text: each behind a switch, so that a crate is built once for all.

A mutant is a span of a file and what takes its place, as cargo-mutants lists it. In the woven text `a < b` becomes
`(if crate::one_mutant::is(7) { a <= b } else { a < b })`. A function's body begins with
`if crate::one_mutant::is(8) { return ...; }`. The environment variable `COMMUTANT_MUTANT` says which one is chosen when
the tests run, and none is without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tree_sitter

CHOSEN = "COMMUTANT_MUTANT"
"""The number of the mutant that a program is to have; from 1 on."""
REACHED = "COMMUTANT_MUTANTS_REACHED"
"""A file with a byte for each mutant, which a program sets to 1 once it reaches the mutant's place."""

ARM = (b" if !crate::one_mutant::", b"!crate::one_mutant::")
"""How the piece of an arm that is left out begins."""

SWITCH = """
#[doc(hidden)]
#[allow(missing_docs)]
pub mod one_mutant {
    extern crate std;
    use core::ffi::{c_int, c_void};
    use core::ptr;
    use std::os::fd::AsRawFd as _;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

    static CHOSEN: OnceLock<usize> = OnceLock::new();
    static REACHED: AtomicPtr<[AtomicU8; COUNT + 1]> = AtomicPtr::new(ptr::null_mut());

    unsafe extern "C" {
        fn mmap(at: *mut c_void, bytes: usize, rights: c_int, flags: c_int, file: c_int, from: i64) -> *mut c_void;
    }

    // Before `main`, and as memory: a test may change its root directory, and close what it has not opened.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static START: extern "C" fn() = start;

    extern "C" fn start() {
        let Some(name) = std::env::var_os("COMMUTANT_MUTANTS_REACHED") else { return };
        let file = std::fs::OpenOptions::new().read(true).write(true).create(true).open(name).expect("the list");
        file.set_len(COUNT + 1).expect("room for the list");
        // SAFETY: a new mapping of all of the file, to be loaded from and stored to, shared.
        let list = unsafe { mmap(ptr::null_mut(), COUNT + 1, 3, 1, file.as_raw_fd(), 0) };
        assert!(list as isize != -1, "the list is mapped");
        REACHED.store(list.cast(), Ordering::Release);
    }

    pub fn is(number: usize) -> bool {
        // SAFETY: nothing, or a mapping that stays.
        if let Some(reached) = unsafe { REACHED.load(Ordering::Acquire).as_ref() } {
            reached[number].store(1, Ordering::Relaxed);
        }
        let chosen = || std::env::var("COMMUTANT_MUTANT").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
        number == *CHOSEN.get_or_init(chosen)
    }
}
"""


@dataclass(frozen=True)
class Change:
    """One mutant of a file: bytes from `start` to `end` become `text`. `genre` is what cargo-mutants calls its kind."""

    number: int
    start: int
    end: int
    text: str
    genre: str


@dataclass
class _Site:
    """A place of the text that gets switches: `before` and `after` what lies between `start` and `end`."""

    start: int
    end: int
    before: list[tuple[int, str]] = field(default_factory=list)
    """Pieces of text, each with the mutant that it belongs to."""
    after: str = ""


@dataclass(frozen=True)
class Woven:
    """A file with switches: its text, and for each mutant where in it (bytes) its own piece lies."""

    text: bytes
    pieces: Mapping[int, tuple[int, int]]
    outer: Mapping[int, tuple[int, int]]
    """The same with all that the switch chooses between."""

    def culprits(self, start: int, end: int) -> set[int]:
        """The mutants to which an error at these bytes belongs."""
        for places in (self.pieces, self.outer):
            found = [
                (last - first, number)
                for number, (first, last) in places.items()
                if first < max(end, start + 1) and start < last
            ]
            if found:
                return {number for length, number in found if length == min(found)[0]}
        return set()

    def arm_behind(self, place: int) -> set[int]:
        """The first mutant after this byte that leaves an arm of a `match` out: that of a `match` that begins here."""
        arms = [
            (first, number) for number, (first, last) in self.pieces.items() if self.text[first:last].startswith(ARM)
        ]
        return {min(arms)[1]} if (arms := [arm for arm in arms if arm[0] >= place]) else set()


def offset(lines: list[bytes], line: int, column: int) -> int:
    """The byte at a line and a column of characters, both counted from 1."""
    return sum(map(len, lines[: line - 1])) + len(lines[line - 1].decode()[: column - 1].encode())


def weave(content: bytes, changes: Iterable[Change]) -> Woven:
    """The text with a switch for each change that can have one; others have no piece in the result."""
    import tree_sitter  # only who tries mutants has it
    import tree_sitter_rust

    tree = tree_sitter.Parser(tree_sitter.Language(tree_sitter_rust.language())).parse(content)
    sites: dict[tuple[int, int, str], _Site] = {}
    for change in changes:
        _place(tree.root_node, content, change, sites)
    # What contains another begins before it or ends after it; what is only put in comes first.
    order = sorted(sites.values(), key=lambda site: (site.start, site.start != site.end, -site.end))
    return _Weaver(content, order).woven()


def _place(root: tree_sitter.Node, content: bytes, change: Change, sites: dict[tuple[int, int, str], _Site]) -> None:
    if change.genre == "FnValue":
        site = sites.setdefault((change.start, change.start, "body"), _Site(change.start, change.start))
        site.before.append((change.number, f"if {_is(change)} {{ return {change.text}; }} "))
        return
    node = root.descendant_for_byte_range(change.start, change.end)
    if node is None:
        return
    if change.genre == "MatchArm":
        _place_arm(node, change, sites)
        return
    if change.genre == "MatchArmGuard":
        start, end, text = change.start, change.end, change.text
    else:
        whole = node.parent
        kinds = ("binary_expression", "compound_assignment_expr", "unary_expression")
        if (node.start_byte, node.end_byte) != (change.start, change.end) or whole is None or whole.type not in kinds:
            return
        start, end = whole.start_byte, whole.end_byte
        text = (content[start : change.start] + change.text.encode() + content[change.end : end]).decode()
    site = sites.setdefault((start, end, "expression"), _Site(start, end, after=" })"))
    opening = "(if" if not site.before else "else if"
    site.before.append((change.number, f"{opening} {_is(change)} {{ {text} }} "))


def _place_arm(node: tree_sitter.Node, change: Change, sites: dict[tuple[int, int, str], _Site]) -> None:
    while node.type != "match_arm" and node.parent is not None:
        node = node.parent
    pattern = node.child_by_field_name("pattern")
    if node.start_byte != change.start or pattern is None:
        return
    condition = pattern.child_by_field_name("condition")
    if condition is None:
        site = _Site(pattern.end_byte, pattern.end_byte, [(change.number, f" if !{_is(change)} ")])
    else:
        start, end = condition.start_byte, condition.end_byte
        site = _Site(start, end, [(change.number, f"!{_is(change)} && (")], ")")
    sites[site.start, site.end, "arm"] = site


def _is(change: Change) -> str:
    return f"crate::one_mutant::is({change.number})"


class _Weaver:
    """Writes the text once, from site to site."""

    def __init__(self, content: bytes, sites: list[_Site]) -> None:
        self._content, self._sites = content, sites
        self._next = 0
        self._text = bytearray()
        self._pieces: dict[int, tuple[int, int]] = {}
        self._outer: dict[int, tuple[int, int]] = {}

    def woven(self) -> Woven:
        self._write(0, len(self._content))
        return Woven(bytes(self._text), self._pieces, self._outer)

    def _write(self, start: int, end: int) -> None:
        """The text of these bytes, with all sites within them."""
        at = start
        while self._next < len(self._sites) and self._sites[self._next].end <= end:
            site = self._sites[self._next]
            if site.start < at or site.start > end or (site.start == end and site.end > end):
                break
            self._next += 1
            self._text += self._content[at : site.start]
            began = len(self._text)
            for number, piece in site.before:
                first = len(self._text)
                self._text += piece.encode()
                self._pieces[number] = first, len(self._text)
            if site.after == " })":
                self._text += b"else { "
            self._write(site.start, site.end)
            self._text += site.after.encode()
            self._outer.update((number, (began, len(self._text))) for number, _ in site.before)
            at = site.end
        self._text += self._content[at:end]
