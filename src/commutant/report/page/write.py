"""Renders the page of a run, or of two side by side, and writes it.

The page asks the browser to refuse everything that is not its own: a content security policy allows exactly this script
and this style, by their hashes, and no request at all; the script may not turn text into HTML (trusted types).
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import BaseLoader, Environment, StrictUndefined, TemplateNotFound
from markupsafe import Markup

from commutant.report.causes import RunCause, rank_causes
from commutant.report.data import RunReport, SetCounts, read_sets, total_counts
from commutant.report.heat import COLOUR_STEPS, HeatMap, heat_map, level, sorted_sets
from commutant.report.page.bundle import page_template, script, style
from commutant.report.page.pack import Pack, Row, unique_names
from commutant.report.parallel import ParallelCall, parallel_calls
from commutant.report.ranking import FUNCTIONS_SHOWN, SharedVariable, rank_shared
from commutant.report.reach import not_reached
from commutant.support import RunError, paused_collector, percent, plural, safe_text

RANKING_AT_FIRST = 10
"""Variables that the ranking shows before it is asked for all."""

CAUSES_SHOWN = 5
"""Causes of a run that the page begins with."""

_COMPACT_CALLS = 9
"""From this many calls on, the cells of the heat map are small."""


def write_html(run: RunReport, path: Path, base: RunReport | None = None) -> None:
    """Writes the page of a run to `path`, which appears complete or not at all; with `base`, of two runs side by side.

    Raises RunError if it cannot be written.
    """
    with paused_collector():
        text = render_html(run, base)
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_text(text, encoding="utf-8", newline="\n")
        partial.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise RunError(
            f"expected to write the page {path}, got: {error.strerror or error}; "
            "free some space or choose another folder"
        ) from error


@dataclass(frozen=True, slots=True)
class View:
    """What the head of the page shows of one run."""

    title: str
    facts: Sequence[tuple[str, str]]
    total: SetCounts
    pairs: HeatMap | None
    sets: Sequence[SetCounts]
    first: Sequence[RunCause]
    parallel: Sequence[ParallelCall]
    ignored: Mapping[str, int]
    not_reached: Sequence[str]


def render_html(run: RunReport, base: RunReport | None = None) -> str:
    """The page as text. Raises UsageError if a run's summary is not one."""
    views = [_view(one) for one in (base, run) if one is not None]
    ranking = rank_shared(run.tests)
    before = {variable.name: variable for variable in rank_shared(base.tests)} if base else {}
    names = {variable.name for variable in ranking}
    everything = [*ranking, *(variable for variable in before.values() if variable.name not in names)]
    template = _environment().get_template("page.html.j2")
    return template.render(
        policy=content_security_policy(),
        style=Markup(style()),  # our own files, checked by bundle
        script=Markup(script()),
        data=embedded_data(_packed(run, base, everything)),
        title=" and ".join(view.title for view in views),
        views=views,
        set_key=_set_key,
        compact=any(view.pairs is not None and len(view.pairs.calls) >= _COMPACT_CALLS for view in views),
        level=level,
        levels=range(1, COLOUR_STEPS),
        ranking=list(zip(unique_names([variable.name for variable in everything]), everything, strict=True)),
        before=before if base else None,
        worth=run.worth,
        gone=before.keys() - names,
        most_tests=max((variable.tests for variable in everything), default=0),
        ranking_at_first=RANKING_AT_FIRST,
        functions_shown=FUNCTIONS_SHOWN,
    )


def _view(run: RunReport) -> View:
    sets = read_sets(run.summary)
    pairs = heat_map(sets)
    ignored = run.summary.get("ignored")
    return View(
        title=f"{run.summary.get('interface', 'interface')} on {run.summary.get('target', 'target')}",
        facts=[(label, text) for label, text in run.facts.items() if text],
        total=total_counts(sets),
        pairs=pairs,
        sets=sorted_sets(sets) if pairs is None else [],
        first=[cause for cause in rank_causes(run.tests)[:CAUSES_SHOWN] if cause.first],
        parallel=parallel_calls(run.tests),
        ignored=ignored if isinstance(ignored, Mapping) else {},
        not_reached=not_reached(run.summary),
    )


def _packed(run: RunReport, base: RunReport | None, ranking: Sequence[SharedVariable]) -> dict[str, object]:
    before = {judged.test.id: judged for judged in base.tests} if base else {}
    rows: list[Row] = [(judged.test, judged, before.pop(judged.test.id, None)) for judged in run.tests]
    rows += [(old.test, None, old) for old in before.values()]
    return Pack(ranking).tables(rows, is_comparison=base is not None)


def content_security_policy() -> str:
    """The policy: nothing from anywhere, and of scripts and styles the page's own alone."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_hash(script())}'",
            f"style-src '{_hash(style())}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def embedded_data(value: object) -> str:
    """JSON, compressed, as Base64: an eighth of its size, and nothing in it that HTML could read as a mark."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), compresslevel=6, mtime=0)).decode()


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _set_key(counts: SetCounts) -> str:
    """What names a set in an address of the page; the scripts build the same from the packed sets."""
    return ",".join(sorted(map(safe_text, counts.calls)))


class _PackageLoader(BaseLoader):
    """Reads templates from the package, wherever it is installed."""

    def get_source(self, environment: Environment, template: str) -> tuple[str, str | None, None]:
        try:
            return page_template(template), template, None
        except FileNotFoundError:
            raise TemplateNotFound(template) from None


def _environment() -> Environment:
    environment = Environment(
        loader=_PackageLoader(), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["safe_text"] = safe_text
    environment.filters["percent"] = percent
    environment.filters["plural"] = plural
    environment.filters["thousands"] = lambda number: f"{number:,}"
    return environment
