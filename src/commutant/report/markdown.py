"""Pieces of GitHub-flavoured Markdown in which a foreign name can be nothing but text.

Names go into code spans, whose fence is longer than any run of backticks in them, so that neither HTML nor emphasis nor
a link can arise; within tables the bar is escaped, as the extension for tables wants it. Text outside of code spans is
ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from commutant.support import safe_text

LONGEST_NAME = 160


def code(text: str) -> str:
    """A name as a code span, for text and lists."""
    shown = safe_text(text, LONGEST_NAME) or " "
    longest = max(map(len, re.findall("`+", shown)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if shown[0] in "` " or shown[-1] in "` " else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def cell(text: str) -> str:
    """A name as a code span within a table."""
    return code(text).replace("|", r"\|")


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a heading that ends in `:` is for numbers, which stand on the right."""
    lines = [
        "| " + " | ".join(heading.rstrip(":") for heading in headings) + " |",
        "| " + " | ".join("---:" if heading.endswith(":") else "---" for heading in headings) + " |",
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
    return "\n".join(lines)


def folded(summary: str, content: str) -> str:
    """A part that is closed until the reader opens it; `summary` is our own text."""
    return f"<details>\n<summary>{summary}</summary>\n\n{content}\n\n</details>"
