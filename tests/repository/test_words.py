"""One word for one thing: no two classes of the package share a name, and the glossary names what is there."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from tests.repository.tree import ROOT, python_files

OF_EACH_MODEL = "src/commutant/interfaces/"
"""Interfaces are worlds of their own: each has its names, inode numbers and inodes."""


def test_no_two_classes_share_a_name() -> None:
    places = defaultdict(set)
    for file in python_files("src/commutant"):
        path = str(file.relative_to(ROOT))
        if path.startswith(OF_EACH_MODEL):
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


DIALECT = {
    "asked": "requested, queried",
    "book": "registry",
    "came": "actual",
    "dear": "expensive",
    "dearest": "expensive",
    "each": "map, unique",
    "once": "cache",
    "refusal": "unsupported, an error",
    "said": "on_progress, output, message",
    "standing": "confirmed",
    "told": "returned, reported",
    "most": "limit, max",
}
"""Words that stood in names, and what the field says."""

LEFT = {
    "src/commutant/interfaces/": "models are worlds of their own",
    "src/commutant/report/documents.py: most_shared": "as documents have it",
    "src/commutant/lock_view/study/what_if.py: most": "an interval from least to most, as documents have it",
}


def test_public_names_are_the_fields_words() -> None:
    wrong = []
    for file in python_files("src/commutant"):
        path = str(file.relative_to(ROOT))
        for line, name in _public_names(ast.parse(file.read_text())):
            words = set(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_")) & DIALECT.keys()
            if words and not any(f"{path}: {name}".startswith(left) for left in LEFT):
                wrong += [f"{path}:{line}: {name}: say {DIALECT[word]}" for word in sorted(words)]
    assert not wrong, "\n".join(wrong)


def _public_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Classes, functions, their parameters, and the fields of classes, without a leading underscore."""
    pending: list[tuple[ast.AST, bool]] = [(node, True) for node in tree.body]
    while pending:
        node, public = pending.pop()
        names: list[str] = []
        if isinstance(node, ast.ClassDef):
            names = [node.name]
            pending += [(inner, not node.name.startswith("_")) for inner in node.body]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = [node.name]
            if not node.name.startswith("_") or node.name == "__init__":
                names += [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names = [node.target.id]
        elif isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        if public:
            yield from ((node.lineno, name) for name in names if not name.startswith("_"))  # type: ignore[attr-defined]
