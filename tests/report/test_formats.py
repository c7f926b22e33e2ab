"""Every format is read back by somebody else's reader, and no name is more than a name in it."""

from __future__ import annotations

import dataclasses
import datetime
import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from urllib.parse import urlsplit

import jsonschema
import msgspec
import pyarrow.compute
import pyarrow.parquet
import pytest
from markdown_it import MarkdownIt
from msgspec import structs

from commutant.campaign import Summary
from commutant.campaign.verdict import Outcome
from commutant.compare import Suppression, Suppressions, findings_of
from commutant.documents import text
from commutant.report import junit, rank_shared, report_document, run_markdown, sarif
from commutant.report.data import JudgedTest, RunReport
from commutant.report.groups import FindingGroup, group_findings
from commutant.report.hints import Technique
from commutant.report.markdown import cell, code, table
from commutant.runs.table import write_findings
from tests.report.invented import HOSTILE_NAMES, hostile_run, invented_run, pair_test, shared_line, summary_of
from tests.report.sarif_part import SCHEMA as SARIF_SCHEMA

SCHEMAS = Path(__file__).parents[2] / "docs/schemas"
SARIF = jsonschema.Draft202012Validator(SARIF_SCHEMA, format_checker=jsonschema.FormatChecker())
HARM = ("\x1b", "\x00", "\u2028", "\u202e", "x" * 500)


@pytest.fixture(scope="module", params=["friendly", "hostile", "empty"])
def run(request: pytest.FixtureRequest) -> RunReport:
    match request.param:
        case "friendly":
            return invented_run(tests_per_pair=20)
        case "hostile":
            return hostile_run()
        case _:
            return RunReport(summary_of([]), [])


@pytest.fixture(scope="module")
def groups(run: RunReport) -> list[FindingGroup]:
    return findings_of(run, [], Suppressions())


def compared(run: RunReport) -> list[FindingGroup]:
    """The run's findings, each fourth of them unknown to the baseline, and those on inodes accepted."""
    marks = sorted(group_findings(run.tests))[::4]
    known = [
        dataclasses.replace(
            judged,
            findings=tuple(
                finding
                for finding in judged.findings
                if next(
                    iter(
                        group_findings([dataclasses.replace(judged, outcome=Outcome.CONFLICTING, findings=(finding,))])
                    )
                )
                not in marks
            ),
        )
        for judged in run.tests
    ]
    accepted = Suppression(None, None, "struct inode*", None, "agreed | <b>why</b>", datetime.date.max)
    return findings_of(run, [RunReport(run.summary, known)], Suppressions([accepted]))


class TestSarif:
    def read(self, run: RunReport, groups: list[FindingGroup], is_complete: bool = True) -> dict:
        text = sarif(run, groups, is_complete)
        assert text.isascii()
        document = json.loads(text)
        SARIF.validate(document)
        return document["runs"][0]

    def test_one_result_per_fingerprint_with_both_stacks(self, run, groups):
        results = self.read(run, groups)["results"]
        findings = [result for result in results if result["level"] == "warning"]
        assert [result["partialFingerprints"]["commutant/v1"] for result in findings] == [
            group.fingerprint.digest for group in groups
        ]
        for result, group in zip(findings, groups, strict=True):
            assert [len(stack["frames"]) for stack in result["stacks"]] == [
                len(group.example.first.stack),
                len(group.example.second.stack),
            ]
            assert result["occurrenceCount"] == group.tests

    def test_every_result_points_to_its_rule(self, run, groups):
        content = self.read(run, groups)
        rules = [rule["id"] for rule in content["tool"]["driver"]["rules"]]
        assert len(rules) == len(set(rules)) == 10
        for result in content["results"]:
            assert rules[result["ruleIndex"]] == result["ruleId"]

    def test_failures_are_errors(self):
        run = invented_run(tests_per_pair=60)
        wrong = [judged for judged in run.tests if judged.outcome is Outcome.WRONG_RESULT]
        results = self.read(run, [])["results"]
        assert [result["ruleId"] for result in results] == ["wrong-result"] * len(wrong) != []
        assert wrong[0].detail in results[0]["message"]["text"]

    def test_source_lines_are_physical_locations(self):
        run = invented_run()
        group = findings_of(run, [], Suppressions())[0]
        result = self.read(run, [group])["results"][0]
        locations = [frame["location"] for frame in result["stacks"][0]["frames"]]
        for location, frame in zip(locations, group.example.first.stack, strict=True):
            source = re.search(r" (\S+):(\d+)$", frame)
            assert ("physicalLocation" in location) == (source is not None)
            assert location["logicalLocations"][0]["fullyQualifiedName"] == frame.split("+")[0]
            if source:
                physical = location["physicalLocation"]
                assert physical["artifactLocation"] == {"uri": source[1], "uriBaseId": "SRCROOT"}
                assert physical["region"] == {"startLine": int(source[2])}

    @pytest.mark.parametrize(
        ("frame", "uri"),
        [
            ("f+0x1 /usr/src/a b.c:3", "file:///usr/src/a%20b.c"),
            ("f+0x1 ../x#y?.c:3", "../x%23y%3F.c"),
            ("f+0x1 c:/x.c:3", "c%3A/x.c"),
            ("f+0x1 a.c:0", "corpus.jsonl.gz"),
            ("f+0x1 a.c:x", "corpus.jsonl.gz"),
            ("f+0x1 a.c:99999999999", "corpus.jsonl.gz"),
            ("f", "corpus.jsonl.gz"),
            ("", "corpus.jsonl.gz"),
        ],
    )
    def test_files_are_uri_references(self, frame, uri):
        finding = shared_line(0, "open", "link")
        finding = structs.replace(finding, first=structs.replace(finding.first, stack=(frame,)))
        tests = [JudgedTest(pair_test("open", "link", ("a", "b"), 1, ""), Outcome.CONFLICTING, (finding,))]
        run = RunReport(summary_of(tests), tests)
        (result,) = self.read(run, findings_of(run, [], Suppressions()))["results"]
        physical = result["locations"][0].get("physicalLocation")
        assert (physical and physical["artifactLocation"]["uri"]) == uri
        if uri:
            assert not urlsplit(uri).query and not urlsplit(uri).fragment

    def test_state_against_a_baseline_and_suppressions(self):
        run = invented_run()
        groups = compared(run)
        results = [one for one in self.read(run, groups, False)["results"] if one["level"] == "warning"]
        assert {one["baselineState"] for one in results} == {"new", "unchanged"}
        for result, group in zip(results, groups, strict=True):
            assert (result["baselineState"] == "new") == group.is_new
            assert ("suppressions" in result) == group.name.startswith("struct inode")
        assert self.read(run, groups, False)["invocations"][0]["executionSuccessful"] is False

    def test_no_message_has_a_placeholder_or_a_link(self):
        for result in self.read(hostile_run(), findings_of(hostile_run(), [], Suppressions()))["results"]:
            text = result["message"]["text"]
            assert not re.search(r"\]\(", text)
            assert not re.search(r"(?<!\{)\{\d+\}(?!\})", text)
            assert not any(harm in text for harm in HARM)


class TestJunit:
    def read(self, run: RunReport, groups: list[FindingGroup]) -> ElementTree.Element:
        text = "".join(junit(run, groups))
        return ElementTree.fromstring(text)

    def test_every_test_is_a_case_with_its_verdict(self, run, groups):
        document = self.read(run, groups)
        cases = {case.get("name"): case for case in document.iter("testcase")}
        assert set(cases) == {judged.test.id for judged in run.tests}
        for judged in run.tests:
            children = [child.tag for child in cases[judged.test.id]]
            expected = {
                Outcome.CONFLICT_FREE: [],
                Outcome.CONFLICTING: ["failure"],
                Outcome.WRONG_RESULT: ["error"],
                Outcome.CRASHED: ["error"],
            }
            assert children == expected.get(judged.outcome, ["skipped"])

    def test_counts_are_those_of_the_cases(self, run, groups):
        document = self.read(run, groups)
        for element in [document, *document.iter("testsuite")]:
            cases = list(element.iter("testcase"))
            assert int(element.get("tests", "")) == len(cases)
            for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
                assert int(element.get(name, "")) == sum(1 for case in cases if case.find(tag) is not None)

    def test_a_failure_says_what_and_where(self):
        run = invented_run()
        judged = next(judged for judged in run.tests if judged.outcome is Outcome.CONFLICTING)
        document = self.read(run, findings_of(run, [], Suppressions()))
        failure = document.find(f".//testcase[@name='{judged.test.id}']/failure")
        for finding in judged.findings:
            assert finding.name in failure.get("message")
            assert f"in {finding.first.function}" in failure.text

    def test_known_and_accepted_findings_do_not_fail(self):
        run = invented_run()
        groups = {group.fingerprint: group for group in compared(run)}
        document = self.read(run, list(groups.values()))
        seen = set()
        for judged in run.tests:
            if judged.outcome is Outcome.CONFLICTING:
                fails = any(groups[mark].is_new and not groups[mark].accepted for mark in group_findings([judged]))
                case = document.find(f".//testcase[@name='{judged.test.id}']")
                assert (case.find("failure") is not None) == fails
                seen.add(fails)
        assert seen == {True, False}


class TestMarkdown:
    def html(self, text: str) -> str:
        return MarkdownIt("commonmark", {"html": True}).enable("table").render(text)

    def test_only_our_own_html_is_html(self, run, groups):
        text = run_markdown(run, groups)
        parser = MarkdownIt("commonmark", {"html": True}).enable("table")
        raw = [
            token.content.strip()
            for block in parser.parse(text)
            for token in [block, *(block.children or [])]
            if token.type in ("html_block", "html_inline")
        ]
        assert {re.sub(r">[^<]+<", "><", mark) for mark in raw} <= {"<details><summary></summary>", "</details>"}
        assert "<a " not in self.html(text) and "<img" not in self.html(text)
        assert not any(harm in text for harm in HARM)

    def test_every_row_has_the_cells_of_its_head(self, run, groups):
        html = self.html(run_markdown(run, groups))
        for shown in re.findall(r"<table>.*?</table>", html, re.DOTALL):
            rows = [len(re.findall(r"<t[hd]\b", row)) for row in re.findall(r"<tr>.*?</tr>", shown, re.DOTALL)]
            assert len(rows) > 1 and len(set(rows)) == 1

    def test_it_is_short_and_says_the_figures(self):
        run = invented_run()
        text = run_markdown(run, compared(run))
        before_folds = text.split("<details>")[0]
        assert len(before_folds.splitlines()) < 25
        new = sum(1 for group in compared(run) if group.is_new and not group.accepted)
        assert f"**{new} new**" in before_folds and "accepted" in before_folds
        assert rank_shared(run.tests)[0].name.replace("|", r"\|") in before_folds

    @pytest.mark.parametrize("name", ["`", "a`b", "``", " a ", "|", "a | b", "\\", "<b>", "*x*", "", "]("])
    def test_a_name_is_itself(self, name):
        html = self.html(code(name))
        assert re.fullmatch(r"<p><code>(.*)</code></p>\n", html, re.DOTALL)
        cells = re.findall(r"<td><code>(.*?)</code></td>", self.html(table(("a", "b"), [(cell(name), cell("x"))])))
        assert cells[1] == "x" and len(cells) == 2


class TestJson:
    def test_it_fits_the_published_schema(self, run, groups):
        summary = msgspec.convert(run.summary, Summary)
        document = report_document(summary, run.tests, groups, complete=True, limit=10)
        schema = json.loads((SCHEMAS / "report.schema.json").read_text())
        jsonschema.Draft202012Validator(schema).validate(json.loads(text(document)))
        names = [variable.name for variable in rank_shared(run.tests)]
        assert [variable.name for variable in document.most_shared] == names[:10]


class TestParquet:
    def test_the_documented_query_gives_the_ranking(self, tmp_path):
        """reference/cli.md: SELECT name, count(DISTINCT test_id) AS tests ... GROUP BY name ORDER BY tests DESC."""
        run = invented_run()
        path = tmp_path / "findings.parquet"
        write_findings(path, run.tests)
        rows = pyarrow.parquet.read_table(path)
        counted = rows.group_by("name").aggregate([("test_id", "count_distinct")]).to_pylist()
        standing = [judged for judged in run.tests if judged.outcome is Outcome.CONFLICTING]
        assert {row["name"]: row["test_id_count_distinct"] for row in counted} == {
            variable.name: variable.tests for variable in rank_shared(standing)
        }
        marks = pyarrow.compute.unique(rows["fingerprint"]).to_pylist()
        assert set(marks) == {group.fingerprint.digest for group in group_findings(run.tests).values()}
        assert set(rows["technique"].to_pylist()) <= {technique.anchor for technique in Technique}

    def test_hostile_names_are_kept_as_they_are(self, tmp_path):
        run = hostile_run([name for name in HOSTILE_NAMES if "\ud800" not in name])
        path = tmp_path / "findings.parquet"
        write_findings(path, run.tests)
        rows = pyarrow.parquet.read_table(path).to_pylist()
        assert [row["field"] for row in rows] == [judged.findings[0].field for judged in run.tests]
