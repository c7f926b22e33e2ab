"""Comparisons as text and Markdown, of runs with names that try to be more than names."""

from __future__ import annotations

import io

from markdown_it import MarkdownIt
from rich.console import Console

from commutant.campaign.verdict import Outcome
from commutant.compare import Suppressions, compare_corpora, compare_runs
from commutant.compare.documents import run_comparison_document
from commutant.compare.markdown import corpus_comparison_markdown, run_comparison_markdown
from commutant.compare.sides import side_of_corpus, side_of_run
from commutant.compare.terminal import print_corpus_comparison, print_run_comparison
from commutant.corpus.file import Corpus
from commutant.report.data import JudgedTest, RunReport
from tests.campaign.fakes import make_finding, make_test
from tests.report.invented import HOSTILE_NAMES, hostile_run, summary_of

NEW = hostile_run()
BASE = RunReport(NEW.summary, [JudgedTest(one.test, Outcome.CONFLICT_FREE) for one in NEW.tests])
SIDES = [side_of_run(name, run, True) for name, run in zip(HOSTILE_NAMES, (BASE, NEW), strict=False)]


def corpora():
    tests = [one.test for one in NEW.tests]
    return [
        Corpus(HOSTILE_NAMES[0], "conflict", "00", tests[:2]),
        Corpus(HOSTILE_NAMES[1], "conflict", "01", tests[1:]),
    ]


def test_nothing_but_text_reaches_the_terminal():
    out = io.StringIO()
    console = Console(file=out, width=100, force_terminal=True, color_system="truecolor")
    print_run_comparison(compare_runs(BASE, NEW), *SIDES, console)
    print_run_comparison(compare_runs(NEW, BASE), *SIDES, console)
    old, new = corpora()
    sides = [side_of_corpus(HOSTILE_NAMES[2], old), side_of_corpus(HOSTILE_NAMES[3], new)]
    print_corpus_comparison(compare_corpora(old, new), *sides, console)
    text = out.getvalue()
    assert "\x1b]" not in text and "\x1b[2J" not in text and "\u202e" not in text and "\u2028" not in text
    assert "[bold red]markup[/]" in text


def test_calls_that_share_more_are_listed_though_no_test_became_worse():
    """ext4 against tmpfs: nearly all tests of names conflict on both, but on ext4 each shares many more lines."""
    tests = [make_test(number) for number in range(4)]
    few = [JudgedTest(test, Outcome.CONFLICTING, (make_finding("a"),)) for test in tests]
    many = [JudgedTest(test, Outcome.CONFLICTING, (make_finding("a"), make_finding("b"))) for test in tests]
    runs = [RunReport(summary_of(side), side) for side in (few, many)]
    sides = [side_of_run(name, run, True) for name, run in zip("xy", runs, strict=True)]

    def shown(base, new):
        out = io.StringIO()
        print_run_comparison(compare_runs(base, new), *sides, Console(file=out, width=120))
        return out.getvalue()

    more, less, same = shown(*runs), shown(*runs[::-1]), shown(runs[0], runs[0])
    assert "0 worse, 0 better; a test shares 1.0 variables in BASE, 2.0 in NEW" in more
    assert "Calls that share more" in more and "struct dentry.b (" in more and "share less" not in more
    assert "Calls that share less" in less and "share more" not in less
    assert "share more" not in same and "share less" not in same


def test_what_neither_or_one_run_reaches_stands_below_their_percentages():
    tests = [JudgedTest(make_test(number), Outcome.CONFLICT_FREE) for number in range(2)]
    linux, ramfs, library = (
        RunReport(summary_of(tests, "names", target), tests)
        for target in ("linux", "linux:fs=ramfs", "library:path=a.so")
    )

    def shown(base, new):
        comparison = compare_runs(base, new)
        sides = [side_of_run("run", run, True) for run in (base, new)]
        out = io.StringIO()
        print_run_comparison(comparison, *sides, Console(file=out, width=300))
        return out.getvalue(), run_comparison_markdown(comparison, *sides)

    puts_off = "work that the kernel puts off to later calls; names beyond 7 letters"
    for text in shown(linux, ramfs):
        assert text.count("Not reached") == 1 and f"Not reached: {puts_off}" in text
    for text, new in zip(shown(linux, library), ("NEW", "new"), strict=True):
        assert f": {puts_off}" in text and f"Not reached in {new}: names beyond 200 bytes" in text
        assert text.index("not conflict-free") < text.index("Not reached in") < text.index(f"Not reached in {new}")


def test_markdown_has_no_html_but_the_folds():
    old, new = corpora()
    sides = [side_of_corpus(HOSTILE_NAMES[2], old), side_of_corpus(HOSTILE_NAMES[3], new)]
    for text in (
        run_comparison_markdown(compare_runs(BASE, NEW), *SIDES),
        corpus_comparison_markdown(compare_corpora(old, new), *sides),
    ):
        parser = MarkdownIt("commonmark", {"html": True}).enable("table")
        html = parser.render(text)
        for harm in ("<script", "<img", "<!--", "\x1b", "\u202e"):
            assert harm not in html
        assert html.count("<details>") == html.count("</details>") > 0


def test_the_document_is_ascii_after_encoding_and_complete():
    document = run_comparison_document(compare_runs(BASE, NEW), *SIDES, Suppressions())
    assert len(document.worse) == len(document.appeared) == len(HOSTILE_NAMES)
