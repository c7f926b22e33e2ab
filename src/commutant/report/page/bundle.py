"""Joins the page's own scripts and styles into one inline script and one inline style.

The scripts are ECMAScript modules in `templates/page/js`, so that editors and tools understand them. Within one file
there is nothing to import from: the modules are written one after the other in the order of their imports, without
their `import` lines and `export` words. That asks two things of them, both checked here: names at the top level are
unique over all modules, and a module comes after those that it imports.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

from commutant.report.palette import DARK, LIGHT, text_colour

MODULES = (
    *("dom", "run", "address", "search", "roving", "heatmap", "ranking", "list", "line", "program", "test", "main"),
)
STYLES = ("base", "map", "tests", "print")

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([a-z]+)\.js";\n', re.MULTILINE)
_TOP_LEVEL = re.compile(r"^(?:export )?(?:async )?(?:function|class|const|let) ([A-Za-z0-9_$]+)", re.MULTILINE)


@cache
def script() -> str:
    """All modules as one script."""
    joined: list[str] = []
    seen: dict[str, str] = {}
    done: set[str] = set()
    for module in MODULES:
        source = page_template(f"js/{module}.js")
        for imported in _IMPORT.findall(source):
            assert imported in done, f"{module}.js imports {imported}.js, which comes later"
        for name in _TOP_LEVEL.findall(source):
            assert name not in seen, f"{name} is defined in {seen[name]}.js and in {module}.js"
            seen[name] = module
        joined.append(re.sub(r"^export ", "", _IMPORT.sub("", source), flags=re.MULTILINE))
        done.add(module)
    return _embeddable("\n" + "\n".join(joined), "</script", "<!--")


@cache
def style() -> str:
    """All styles as one, with the colours of the heat map."""
    parts = [_colours(), *(page_template(f"css/{name}.css") for name in STYLES)]
    return _embeddable("\n" + "\n".join(parts), "</style", "<!--")


@cache
def page_template(name: str) -> str:
    """A file from `templates/page`."""
    folder = resources.files("commutant.report") / "templates" / "page"
    return folder.joinpath(name).read_text(encoding="utf-8")


def _colours() -> str:
    def variables(palette: tuple[str, ...]) -> str:
        return " ".join(
            f"--level-{step}: {colour}; --level-{step}-text: {text_colour(colour)};"
            for step, colour in enumerate(palette)
        )

    return (
        f":root {{ {variables(LIGHT)} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {variables(DARK)} }} }}\n"
    )


def _embeddable(text: str, *forbidden: str) -> str:
    for mark in forbidden:
        assert mark not in text.lower(), f"{mark} within an inline script or style would end it"
    return text
