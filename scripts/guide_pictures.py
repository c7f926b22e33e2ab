"""Draws the pictures of the guides: `python scripts/guide_pictures.py`, into docs/guides/pictures.

Each is a few boxes, strips and arrows, in one hand: blue is a core or a thread, red what is shared without need, green
what is right or private, grey what only explains. A picture refers to nothing on the network and asks for no font.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from steps import ROOT

FOLDER = ROOT / "docs" / "guides" / "pictures"
WIDTH = 760
COLOURS = {
    "plain": ("#ffffff", "#57606a"),
    "core": ("#ddf4ff", "#0969da"),
    "shared": ("#ffebe9", "#cf222e"),
    "good": ("#dafbe1", "#1a7f37"),
    "note": ("#f6f8fa", "#d0d7de"),
}
"""Of a box: what fills it, and its edge."""
STYLE = (
    "text{font:13px ui-sans-serif,system-ui,sans-serif;fill:#24292f;text-anchor:middle}"
    ".code{font-family:ui-monospace,monospace;font-size:12px}.small{font-size:12px;fill:#57606a}"
    ".left{text-anchor:start}.head{font-weight:600}"
)
LINE_HEIGHT = 17


@dataclass
class Picture:
    """A drawing under way; lengths are in pixels, from the upper left corner."""

    height: int
    parts: list[str] = field(default_factory=list)

    def text(self, x: float, y: float, words: str, look: str = "") -> None:
        """Words around a point, or to the right of it where `look` has `left`."""
        self.parts.append(f'<text x="{x:g}" y="{y:g}" class="{look}">{escape(words)}</text>')

    def box(
        self, x: float, y: float, width: float, height: float, words: str, kind: str = "plain", look: str = ""
    ) -> None:
        """A box with lines of words in its middle."""
        fill, edge = COLOURS[kind]
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4" fill="{fill}" stroke="{edge}"/>'
        )
        lines = words.split("\n")
        top = y + height / 2 + 4.5 - (len(lines) - 1) * LINE_HEIGHT / 2
        for number, line in enumerate(lines):
            self.text(x + width / 2, top + number * LINE_HEIGHT, line, look)

    def arrow(self, x: float, y: float, to_x: float, to_y: float, words: str = "", colour: str = "#57606a") -> None:
        """An arrow, with words above its middle."""
        self.parts.append(
            f'<line x1="{x:g}" y1="{y:g}" x2="{to_x:g}" y2="{to_y:g}" stroke="{colour}" stroke-width="1.5" '
            'marker-end="url(#end)"/>'
        )
        if words:
            self.text((x + to_x) / 2, (y + to_y) / 2 - 6, words, "small")

    def line(self, x: float, y: float, fields: str, colours: str = "") -> None:
        """A cache line of 64 bytes: eight words, each with a name or empty, of a kind by its letter in `colours`."""
        kinds = {"s": "shared", "g": "good", "c": "core"}
        for number, name in enumerate(fields.split("|")):
            kind = kinds.get(colours[number : number + 1], "note")
            self.box(x + number * 38, y, 38, 30, name, kind, "code")

    def document(self, title: str) -> str:
        """The whole as SVG; the title is what a reader hears who does not see it."""
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" role="img">'
        end = '<marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        return "\n".join(
            [
                head,
                f"<title>{escape(title)}</title><style>{STYLE}</style>",
                f'<defs>{end}<path d="M0 0L8 4L0 8z" fill="#57606a"/></marker></defs>',
                f'<rect width="{WIDTH}" height="{self.height}" fill="#ffffff"/>',
                *self.parts,
                "</svg>\n",
            ]
        )


def ci() -> Picture:
    """What of a run is new."""
    picture = Picture(196)
    picture.text(130, 24, "the baseline", "head")
    picture.text(380, 24, "this run", "head")
    picture.text(620, 24, "the gate", "head")
    rows = (
        ("map.count in insert, remove", "map.count in insert, remove", "known", "good"),
        ("slot.lock in find, grow", "slot.lock in look_up, grow", "moved: find was renamed", "good"),
        ("", "stats.hits in find, find", "new: fails", "shared"),
    )
    for number, (before, now, verdict, kind) in enumerate(rows):
        y = 40 + 50 * number
        if before:
            picture.box(20, y, 220, 34, before, "note", "code")
            picture.arrow(244, y + 17, 266, y + 17)
        picture.box(270, y, 220, 34, now, "note", "code")
        picture.arrow(494, y + 17, 516, y + 17)
        picture.box(520, y, 220, 34, verdict, kind)
    return picture


def cluster() -> Picture:
    """Three shards and their merge."""
    picture = Picture(200)
    picture.box(20, 76, 150, 48, "tests 1 2 3 4 5 6 7 8 9", "note")
    for number in range(3):
        y = 20 + 62 * number
        picture.arrow(172, 100, 226, y + 22)
        tests = " ".join(str(number + 1 + 3 * step) for step in range(3))
        picture.box(230, y, 220, 44, f"machine {number + 1}: --shard {number + 1}/3\ntests {tests}", "core")
        picture.arrow(452, y + 22, 516, 100)
    picture.box(520, 76, 110, 48, "merge", "plain", "code")
    picture.arrow(632, 100, 656, 100)
    picture.box(660, 76, 80, 48, "one run,\none page", "good")
    return picture


def coherence() -> Picture:
    """What one domain must do for the other to see its bytes."""
    picture = Picture(220)
    for x, name, steps in (
        (20, "domain 1", "write, then write back"),
        (480, "domain 2", "invalidate, then read"),
    ):
        picture.box(x, 20, 260, 40, name, "core", "head")
        picture.box(x, 78, 260, 40, "its cache: a copy of the line", "note")
        picture.text(x + (60 if x < 100 else 200), 146, steps, "small")
    picture.box(190, 160, 380, 40, "the pool: memory that both have, without coherence", "plain")
    picture.arrow(190, 120, 246, 158)
    picture.arrow(514, 158, 570, 120)
    picture.text(380, 94, "no hardware says", "small")
    picture.text(380, 111, "that a copy is old", "small")
    return picture


def files() -> Picture:
    """Two threads that make files in one directory."""
    picture = Picture(210)
    for number, name in enumerate(("a", "b")):
        x = 60 + 400 * number
        picture.box(x, 20, 240, 36, f'thread {number + 1}: create("{name}")', "core", "code")
        picture.arrow(x + 120, 58, x + 120, 84)
        picture.box(x, 88, 240, 36, f'bucket of "{name}"', "good")
        picture.box(x, 136, 240, 36, f"inode and counts of core {number + 1}", "good")
    picture.text(380, 110, "one directory", "small")
    picture.text(380, 196, "Different names: no cache line is used by both threads.", "small")
    return picture


def libraries() -> Picture:
    """From a model to a field."""
    picture = Picture(170)
    steps = (
        ("model", "which calls\ncommute", "note"),
        ("tests", "one per case,\nboth orders", "note"),
        ("your library", "through an\nadapter", "core"),
        ("emulator", "every memory\naccess", "note"),
        ("finding", "type, field,\nboth stacks", "shared"),
    )
    for number, (head, words, kind) in enumerate(steps):
        x = 20 + 148 * number
        picture.text(x + 62, 40, head, "head")
        picture.box(x, 54, 124, 64, words, kind)
        if number:
            picture.arrow(x - 22, 86, x - 2, 86)
    picture.text(380, 148, "You write the adapter; for a new interface the model too.", "small")
    return picture


def lists() -> Picture:
    """A move in one step."""
    picture = Picture(230)
    for y, name, items in ((30, "idle", "a b c"), (130, "busy", "d e")):
        picture.text(30, y + 25, name, "head left")
        for number, item in enumerate(items.split()):
            x = 110 + 110 * number
            picture.box(x, y, 60, 38, item, "shared" if item == "b" else "note", "code")
            picture.arrow(x - 48 if number else 80, y + 19, x - 2, y + 19)
    picture.arrow(250, 72, 324, 126, "", "#1a7f37")
    picture.box(330, 130, 60, 38, "b", "good", "code")
    picture.arrow(282, 149, 328, 149)
    picture.box(
        470,
        30,
        270,
        138,
        "1  mark the words that change\n2  decide: one word of this core\n3  every mark counts as the new value",
        "core",
    )
    picture.text(380, 206, "A reader sees b in exactly one of the two lists at each moment.", "small")
    return picture


def locks() -> Picture:
    """Sections of one lock, as they run and as they could."""
    picture = Picture(230)
    picture.text(30, 24, "as it runs", "head left")
    picture.text(30, 134, "as it could", "head left")
    for number, (name, data) in enumerate((("thread 1", "table[3]"), ("thread 2", "table[8]"))):
        for y, x in ((36, 130 + 260 * number), (146, 130)):
            picture.text(30, y + 40 * number + 21, name, "left small")
            picture.box(
                x, y + 40 * number, 250, 30, f"lock, change {data}, unlock", "shared" if y == 36 else "good", "code"
            )
    picture.text(560, 165, "One lock, but the data are disjoint:", "small")
    picture.text(560, 182, "a lock for each part of the table", "small")
    picture.text(560, 199, "lets both run at once.", "small")
    return picture


def modelling() -> Picture:
    """Both orders of two calls."""
    picture = Picture(190)
    picture.box(20, 70, 110, 46, "a state", "note")
    for y, first, second in ((24, "put(k, 1)", "get(j)"), (122, "get(j)", "put(k, 1)")):
        for number, call in enumerate((first, second)):
            picture.box(180 + 170 * number, y, 140, 40, call, "core", "code")
        picture.arrow(132, 93, 176, y + 20)
        picture.arrow(322, y + 20, 346, y + 20)
        picture.arrow(492, y + 20, 546, 93)
    picture.box(550, 64, 190, 58, "same results and states?\nthen they commute", "good")
    picture.text(380, 98, "the question is: for which k, j and states", "small")
    return picture


def modelling_choices() -> Picture:
    """A call with several right answers."""
    picture = Picture(180)
    picture.box(20, 66, 150, 46, "pop() of an\nunordered pool", "core")
    for number, answer in enumerate(("a", "b", "c")):
        y = 20 + 54 * number
        picture.arrow(172, 89, 246, y + 16)
        picture.box(250, y, 70, 32, answer, "note", "code")
        picture.arrow(322, y + 16, 396, 89)
    picture.box(400, 60, 340, 58, "Each is right. Two calls commute if some\nchoice serves both orders.", "good")
    return picture


def patterns() -> Picture:
    """False sharing, before and after."""
    picture = Picture(220)
    picture.text(30, 30, "before", "head left")
    picture.line(228, 46, "len|hits|||flags|||", " s  s")
    picture.text(290, 24, "core 1 writes", "small")
    picture.text(430, 24, "core 2 reads", "small")
    picture.arrow(285, 28, 285, 44)
    picture.arrow(399, 28, 399, 44)
    picture.text(560, 66, "one line, two cores", "small left")
    picture.text(30, 130, "after", "head left")
    picture.line(228, 116, "len||||flags|||", "g   g")
    picture.line(228, 166, "hits|||||||", "g")
    picture.text(560, 136, "only read", "small left")
    picture.text(560, 186, "core 1's own", "small left")
    return picture


def programs() -> Picture:
    """The way of a call."""
    picture = Picture(230)
    picture.box(20, 30, 170, 60, 'program\nopen("/mnt/build/a")', "core", "code")
    picture.arrow(192, 60, 246, 60)
    picture.box(250, 30, 190, 60, "shim, in place of\nthe instruction syscall", "plain")
    picture.arrow(442, 50, 536, 50, "below the path")
    picture.box(540, 26, 200, 46, "ScaleFS, in memory that\nall its processes have", "good")
    picture.arrow(345, 92, 345, 146)
    picture.text(356, 124, "all other calls", "small left")
    picture.box(250, 150, 190, 46, "the kernel", "note")
    picture.text(640, 178, "no rights, no mount,", "small")
    picture.text(640, 195, "no kernel module", "small")
    return picture


def remedies() -> Picture:
    """What moving a field saves."""
    picture = Picture(250)
    picture.text(30, 30, "before: stat transfers the line for one field", "head left")
    picture.line(30, 44, "name|inode|lock|count||||", "ssss")
    picture.text(360, 58, "every stat writes count, and reads", "small left")
    picture.text(360, 75, "name and inode: 2 transfers for a pair", "small left")
    picture.text(30, 130, "after: move count and its lock", "head left")
    picture.line(30, 144, "name|inode|||||", "gg")
    picture.line(30, 190, "lock|count||||||", "ss")
    picture.text(360, 164, "only read: 0 transfers", "small left")
    picture.text(360, 210, "still shared: 1 transfer for a pair", "small left")
    picture.text(30, 240, "No test becomes free of conflicts, yet half of the transfers are gone.", "small left")
    return picture


def testing() -> Picture:
    """Where the check stands among a library's tests."""
    picture = Picture(150)
    steps = (
        ("your test runner", "pytest, ctest, cargo", "core"),
        ("check_sharing", "traced tests", "plain"),
        ("baseline", "kept in the repository", "note"),
        ("passes or fails", "and names what is new", "good"),
    )
    for number, (head, words, kind) in enumerate(steps):
        x = 20 + 187 * number
        picture.box(x, 44, 160, 60, f"{head}\n{words}", kind)
        if number:
            picture.arrow(x - 25, 74, x - 2, 74)
    return picture


def transactions() -> Picture:
    """Three files at one moment."""
    picture = Picture(220)
    picture.text(30, 46, "transaction", "left")
    picture.box(150, 26, 330, 34, "create passwd, shadow, group", "core", "code")
    picture.arrow(482, 43, 526, 43)
    picture.box(530, 26, 90, 34, "commit", "good")
    picture.text(30, 116, "others see", "left")
    picture.box(150, 96, 424, 34, "none of the three", "note")
    picture.box(576, 96, 164, 34, "all of the three", "good")
    picture.arrow(575, 62, 575, 94, "", "#1a7f37")
    picture.text(380, 170, "What the transaction has seen is asked again at the commit.", "small")
    picture.text(380, 190, "Has another changed it, then nothing happens, and it runs again.", "small")
    return picture


def trying() -> Picture:
    """Layers of a command that is tried."""
    picture = Picture(230)
    picture.box(20, 30, 190, 46, "make install", "core", "code")
    picture.arrow(212, 53, 266, 53)
    picture.box(270, 24, 220, 58, "upper layer:\nwhat it changes", "good")
    picture.box(270, 96, 220, 46, "recorder: what it has seen", "plain")
    picture.box(270, 156, 220, 46, "your files, untouched", "note")
    picture.arrow(380, 84, 380, 94)
    picture.arrow(380, 144, 380, 154)
    picture.arrow(492, 53, 546, 53, "commit")
    picture.box(550, 24, 190, 58, "asks again all\nthat was seen", "plain")
    picture.arrow(610, 84, 560, 154)
    picture.arrow(690, 84, 700, 154)
    picture.box(506, 158, 106, 44, "the same:\nall of it", "good")
    picture.box(634, 158, 106, 44, "changed:\nnone of it", "shared")
    return picture


def agents() -> Picture:
    """Two agents on one tree."""
    picture = Picture(190)
    for number, (name, does) in enumerate((("agent 1", "edits a.c, reads b.h"), ("agent 2", "edits d.c, reads b.h"))):
        y = 20 + 84 * number
        picture.box(20, y, 90, 56, name, "core")
        picture.arrow(112, y + 28, 156, y + 28)
        picture.box(160, y, 240, 56, f"commutant try\n{does}", "good")
        picture.arrow(402, y + 28, 496, 82)
    picture.box(500, 54, 240, 56, "one tree: both commit,\nsince neither changed what\nthe other one had read", "plain")
    picture.text(620, 140, "else: refused, with the paths,", "small")
    picture.text(620, 157, "as JSON", "small")
    return picture


PICTURES: dict[str, tuple[Callable[[], Picture], str]] = {
    "agents": (
        agents,
        "Two agents work on one tree, each in a run of its own; both commit if neither changed what the other had read",
    ),
    "ci": (
        ci,
        "Findings of a baseline beside those of a run: one is known, one has moved, one is new and fails the gate",
    ),
    "cluster": (cluster, "Nine tests go to three machines, each takes every third; merge makes one run of the three"),
    "coherence": (
        coherence,
        "Two domains, each with a copy of a line in its cache, above a pool: one writes back, the other invalidates",
    ),
    "files": (
        files,
        "Two threads create different names in one directory: each uses a bucket, an inode and counts of its own",
    ),
    "libraries": (libraries, "From a model through tests, your library and an emulator to a finding"),
    "lists": (
        lists,
        "An item goes from one list to another: mark the words, decide in one word, every mark then has its new value",
    ),
    "locks": (
        locks,
        "Two threads change different parts of a table under one lock, one after the other; with two they run at once",
    ),
    "modelling": (
        modelling,
        "From one state two calls run in both orders; if results and states are the same, they commute",
    ),
    "modelling-choices": (modelling_choices, "A call that may return any of three items: each answer is right"),
    "patterns": (
        patterns,
        "A line with a field that one core writes and one that another reads; then the written field in its own line",
    ),
    "programs": (programs, "A call of a program goes to the shim, and from there to ScaleFS or to the kernel"),
    "remedies": (
        remedies,
        "A line of four fields before and after two of them moved: two transfers for a pair become one",
    ),
    "testing": (testing, "Your test runner calls check_sharing, which compares with a baseline and passes or fails"),
    "transactions": (
        transactions,
        "Three files are created in a transaction; others see none of them before its commit, all after it",
    ),
    "try": (trying, "A command writes to a layer above your files; at the commit all that it has seen is asked again"),
}
"""Each guide's picture, and what it shows in words."""


def documents() -> dict[Path, str]:
    """What each file holds."""
    return {FOLDER / f"{name}.svg": draw().document(title) for name, (draw, title) in PICTURES.items()}


def main() -> int:
    """Writes the pictures; returns the exit code."""
    for path, text in documents().items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
