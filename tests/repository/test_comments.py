"""Comments and docstrings have the words of the field, as pages and messages have (`test_prose`)."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.repository.test_prose import DIALECT
from tests.repository.tree import ROOT, tracked

IN_COMMENTS = {
    **DIALECT,
    r"\btold apart\b": "distinguished",
    r"\bbeside\b": "next to, with, besides, during",
    r"\bbites\b": "has an effect",
}
"""What no comment says; pages may tell things apart."""

LEFT = ("crates/file-system/", "crates/trying/")
"""Folders whose comments still have such words."""

_RUST = re.compile(r"(?:^|\s)//[/!]?(?:\s(.*))?$")
_C = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")


def _python(text: str) -> Iterator[tuple[int, str]]:
    """Docstrings, of attributes too, and the lines of comments, with the number of their first line."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.removeprefix("#")


def _rust(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        if found := _RUST.search(line):
            yield number, found[1] or ""


def _c(text: str) -> Iterator[tuple[int, str]]:
    for found in _C.finditer(text):
        yield text.count("\n", 0, found.start()) + 1, re.sub(r"\n\s*\*", "\n", found[0])


READERS = {".py": _python, ".pyi": _python, ".rs": _rust, ".c": _c, ".h": _c, ".cpp": _c, ".hpp": _c}


def _paragraphs(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Comments on lines that follow each other are one text, since a phrase may be broken between two of them."""
    first, text = 0, ""
    for number, line in sorted(lines):
        if text and number == first + text.count("\n") + 1:
            text += f"\n{line}"
        else:
            yield first, text
            first, text = number, line
    yield first, text


def comments_in_dialect(file: Path, text: str) -> list[str]:
    """Lines of a source file whose comments, outside code, have words that readers of this field do not use so."""
    found = []
    for first, paragraph in _paragraphs(READERS[file.suffix](text)):
        plain = _CODE.sub("", paragraph)
        for pattern, better in IN_COMMENTS.items():
            for one in re.finditer(pattern.replace(" ", r"\s+"), plain, re.IGNORECASE):
                line = first + plain.count("\n", 0, one.start())
                found.append((line, f"{file}:{line}: {' '.join(one[0].split())}: say {better}"))
    return [said for _, said in sorted(found)]


SOURCES = [file.relative_to(ROOT) for file in tracked() if file.suffix in READERS]
FOLDERS = sorted({str(Path(*file.parts[: 1 + (file.parts[0] in {"crates", "src"})])) for file in SOURCES})


@pytest.mark.parametrize("folder", [folder for folder in FOLDERS if f"{folder}/" not in LEFT])
def test_comments_have_the_words_of_the_field(folder: str) -> None:
    files = [file for file in SOURCES if file.is_relative_to(folder)]
    wrong = [one for file in files for one in comments_in_dialect(file, (ROOT / file).read_text(encoding="utf-8"))]
    assert not wrong, "\n".join(wrong)


def test_folders_that_are_left_are_there() -> None:
    assert {folder.rstrip("/") for folder in LEFT} <= set(FOLDERS)


def test_planted_words_in_comments_are_found() -> None:
    python = 'x = "nobody"  # told\n"""Waits for\never, as `beside` does."""\n# So\n# many.\n'
    assert comments_in_dialect(Path("a.py"), python) == [
        "a.py:1: told: say predicted, reported, shown, returned",
        "a.py:2: for ever: say forever",
        "a.py:4: So many: say this many, as many",
    ]
    rust = '//! Whoever\nfn f() {\n    g("nobody"); // it is told\n    // apart, beside [`anew`]\n}\n'
    assert comments_in_dialect(Path("a.rs"), rust) == [
        "a.rs:1: Whoever: say anyone who",
        "a.rs:3: told apart: say distinguished",
        "a.rs:4: beside: say next to, with, besides, during",
    ]
    assert comments_in_dialect(Path("a.c"), '/* One\n * and nobody. */ puts("told");\n') == [
        "a.c:2: nobody: say no one"
    ]  # fmt: skip
