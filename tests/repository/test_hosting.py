"""Files that a place that hosts the repository reads: workflows, the form for bugs, the recipe of the container.

No runner of workflows is here, so their commands are held to what the repository has.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

import container
import without_guest
from tests.repository.test_docs import TARGETS
from tests.repository.tree import ROOT, toml, tracked

GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
CONTAINERFILE = (ROOT / "Containerfile").read_text()


def jobs(name: str) -> dict[str, Any]:
    """The jobs of a workflow."""
    found: dict[str, Any] = yaml.safe_load((GITHUB / "workflows" / f"{name}.yml").read_text())["jobs"]
    return found


def commands(job: dict[str, Any]) -> list[str]:
    """What the steps of a job run."""
    return [step["run"] for step in job["steps"] if "run" in step]


def test_each_release_of_debian_runs_what_a_newcomer_runs() -> None:
    debian = jobs("test")["debian"]
    assert set(debian["strategy"]["matrix"]["release"]) == set(container.RELEASES)
    assert set(jobs("test")["container"]["strategy"]["matrix"]["release"]) == set(container.RELEASES)
    assert ".ci/run" in commands(debian)


def test_each_python_that_is_claimed_runs_what_needs_no_guest() -> None:
    matrix = jobs("test")["python"]["strategy"]["matrix"]["python"]
    claimed = [line.rpartition(" ")[2] for line in toml("pyproject.toml")["project"]["classifiers"] if "3." in line]
    assert matrix == claimed
    assert commands(jobs("test")["python"])[-1] == "python scripts/without_guest.py test"
    assert all((ROOT / folder).is_dir() for folder in without_guest.TESTS)
    assert all((ROOT / test.partition("::")[0]).is_file() for test in without_guest.LEFT_OUT)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda file: file.name)
def test_a_workflow_reads_only_and_has_limits(workflow: Any) -> None:
    whole = yaml.safe_load(workflow.read_text())
    assert whole["permissions"] == {"contents": "read"}
    for name, job in whole["jobs"].items():
        assert job["timeout-minutes"] <= 120, name
        for step in job["steps"]:
            assert "run" in step or re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"]), step
        text = "\n".join(commands(job))
        assert set(re.findall(r"\bmake ([\w-]+)$", text, re.MULTILINE)) <= TARGETS
        assert all((ROOT / path).is_file() for path in re.findall(r"\bscripts/\w+\.py|\.ci/run", text))


@pytest.mark.parametrize("name", ["debian", "python"])
def test_what_was_built_is_kept_by_compiler_and_lock(name: str) -> None:
    (kept,) = (step["with"] for step in jobs("test")[name]["steps"] if step.get("uses", "").startswith("actions/cache"))
    assert "target" in kept["path"].split()
    assert "hashFiles('Cargo.lock')" in kept["key"] and "steps.rust.outputs.version" in kept["key"]
    assert kept["key"].startswith(kept["restore-keys"]), "what another compiler built is of no use"


def test_the_form_asks_for_what_a_bug_is_found_by() -> None:
    form = yaml.safe_load((GITHUB / "ISSUE_TEMPLATE" / "bug.yml").read_text())
    asked = {one["id"]: one["validations"]["required"] for one in form["body"] if one["type"] != "markdown"}
    assert asked == {"command": True, "expected": True, "actual": True, "doctor": True, "run": False}
    text = (GITHUB / "ISSUE_TEMPLATE" / "bug.yml").read_text()
    assert "SECURITY.md" in text and "COMMUTANT_TRACEBACK=1" in text


def test_the_container_is_made_by_set_up_and_runs_the_main_job_without_privileges() -> None:
    lines = CONTAINERFILE.splitlines()
    assert "ARG BASE=debian:13" in lines and "FROM ${BASE}" in lines
    user = lines.index("USER commutant")
    assert not [line for line in lines[user + 1 :] if line.startswith("USER") or "sudo" in line or "apt-get" in line]
    assert "RUN make setup" in CONTAINERFILE and lines[-1] == 'CMD ["make", "demo"]'
    assert lines.index("COPY scripts scripts") < user < lines.index("COPY --chown=commutant:commutant . .")


def test_nothing_built_goes_into_the_container() -> None:
    left_out = {line.strip("/") for line in (ROOT / ".containerignore").read_text().splitlines() if line[:1] != "#"}
    built = {line.strip("/") for line in (ROOT / ".gitignore").read_text().splitlines()}
    of_tools = {"__pycache__": "**/__pycache__"}
    missing = {of_tools.get(name, name) for name in built if "egg-info" not in name and "Cargo.lock" not in name}
    assert not missing - left_out
    names = {file.relative_to(ROOT).parts[0] for file in tracked()}
    assert not (left_out - {".git"}) & names
