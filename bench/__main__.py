"""Runs the areas that are named, or all, and records their figures in docs/benchmarks.json and docs/benchmarks.md."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import bench.areas
from bench import document
from bench.figure import number


def names() -> list[str]:
    """All areas, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules(bench.areas.__path__))


def main(wanted: list[str]) -> int:
    """Measures; returns 0, 1 if a goal was missed, or 2 for an unknown area."""
    unknown = sorted(set(wanted) - set(names()))
    if unknown:
        print(f"unknown area {', '.join(unknown)}; there are: {', '.join(names())}", file=sys.stderr)
        return 2
    missed = []
    for name in wanted or names():
        area = importlib.import_module(f"bench.areas.{name}")
        print(f"{name}: {area.TITLE}", flush=True)
        figures = area.measure()
        document.store(name, area.TITLE, figures, getattr(area, "PICTURE", None))
        for figure in figures:
            goal = "" if figure.goal is None else f" (goal {figure.goal})"
            print(f"  {figure.name}: {number(figure.median)} {figure.unit}{goal}", flush=True)
            if figure.met is False:
                missed.append(f"{name}: {figure.name}")
        if hasattr(area, "TABLE"):
            print("\n".join(area.TABLE({figure.name: figure for figure in figures})))
    print(f"written: {document.PAGE.relative_to(document.DOCS.parent)}")
    if missed:
        print(f"goals missed: {'; '.join(missed)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
