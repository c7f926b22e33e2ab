"""guides/lists.md: what it shows of the examples stands there, and its program in C compiles."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs/guides/lists.md").read_text()
INCLUDE = ROOT / "crates/structures/olf-c/include"
EXAMPLES = ROOT / "crates/structures/olf/examples"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)


def test_each_piece_of_rust_stands_in_an_example_that_the_tests_run() -> None:
    examples = {name: (EXAMPLES / f"{name}.rs").read_text() for name in ("coins", "client_pool", "work_stealing")}
    tests = (EXAMPLES.parent / "tests/examples.rs").read_text()
    pieces = blocks("rust")
    assert len(pieces) == 5
    shown = {name for piece in pieces for name, text in examples.items() if piece in text}
    assert all(any(piece in text for text in examples.values()) for piece in pieces)
    assert shown == set(examples)
    assert all(f"examples/{name}.rs" in tests for name in examples)


def compile_only(folder: Path, compiler: list[str], text: str) -> None:
    source = folder / "piece.c"
    source.write_text(f"#include <olf.h>\n{text}")
    command = [*compiler, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{INCLUDE}", str(source)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr


def test_the_piece_of_c_compiles_and_the_header_is_one_for_both_languages(tmp_path: Path) -> None:
    (piece,) = blocks("c")
    lists = "struct lists { olf_list *cold, *hot; };\n"
    size = '(sizeof(olf_link) == 160 && {}(olf_link) == OLF_ALIGN, "");\n'
    main = "int main(void) { return sizeof(struct page) == 0 || hand_over(0, 0); }\n"
    compile_only(tmp_path, ["gcc", "-std=c11"], f"_Static_assert{size.format('_Alignof')}{lists}{piece}{main}")
    compile_only(tmp_path, ["g++", "-x", "c++", "-std=c++17"], f"static_assert{size.format('alignof')}")
