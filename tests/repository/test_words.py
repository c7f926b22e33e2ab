"""One word for one thing: no two classes of the package share a name, and the glossary names what is there."""

from __future__ import annotations

import ast
import re
from collections import defaultdict

from tests.repository.tree import ROOT, python_files

OF_EACH_MODEL = "src/commutant/interfaces/"
"""Interfaces are worlds of their own: each has its names, inode numbers and inodes."""

PUBLIC_MODULE = "src/commutant/scalefs.py"
"""What Python programs import to have a file system; its names are that world's."""


def test_no_two_classes_share_a_name() -> None:
    places = defaultdict(set)
    for file in python_files("src/commutant"):
        path = str(file.relative_to(ROOT))
        if path.startswith(OF_EACH_MODEL) or path == PUBLIC_MODULE:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].add(path)
    shared = {name: sorted(paths) for name, paths in places.items() if len(paths) > 1}
    assert not shared, shared
    print(f"{len(places)} names of classes, each of one class")


def test_terms_of_the_glossary_are_defined_once() -> None:
    text = (ROOT / "docs" / "reference" / "glossary.md").read_text()
    heads = re.findall(r"^- (\*\*[^:]+?):", text, re.MULTILINE)
    terms = [term.lower() for head in heads for term in re.findall(r"\*\*([^*]+)\*\*", head)]
    assert len(terms) >= 40
    assert len(terms) == len(set(terms))
