"""`commutant.testing`: the example of docs/guides/testing.md runs; checks fail where they should, and say why."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import commutant
from commutant.interfaces.names import Names
from commutant.support.errors import RunError, UsageError
from commutant.targets.base import WindowRecord
from commutant.testgen import Corpus
from commutant.testing import check_model, check_sharing
from tests.campaign.fakes import FakeTarget, conflicting, make_corpus
from tests.conformance.model_target import ModelTarget
from tests.conformance.models import RenameOfLinksRemoves

PAGE = Path(__file__).parents[2] / "docs/guides/testing.md"


def test_the_example_of_the_page_passes(tmp_path: Path) -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "test_names.py").write_text(example)
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_names.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(commutant.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "3 passed" in ended.stdout


def test_a_right_implementation_passes_and_a_wrong_one_fails_with_the_transcript() -> None:
    assert check_model(Names, ModelTarget(Names), sequences=200).tally.sequences == 200
    with pytest.raises(
        AssertionError, match=r"(?s)names on model: 1 difference in .*rename\(.*again: commutant conform"
    ):
        check_model("names", ModelTarget(RenameOfLinksRemoves), seed=7)


def test_what_cannot_be_checked_is_no_failed_check() -> None:
    with pytest.raises(UsageError, match="model does not know link of names"):
        check_model("names", ModelTarget(Names, unknown=["link"]))
    with pytest.raises(UsageError, match="unknown interface"):
        check_model("nope", ModelTarget(Names))
    with pytest.raises(UsageError, match="have their calls"):
        check_sharing(make_corpus(2), FakeTarget(), calls=["link"])
    with pytest.raises(UsageError, match="expected a run directory"):
        check_sharing(make_corpus(2), FakeTarget(), baseline="nowhere")


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Corpus:
    monkeypatch.chdir(tmp_path)
    return make_corpus(6)


def test_sharing_fails_on_findings_and_not_on_those_of_a_baseline(corpus: Corpus) -> None:
    assert check_sharing(corpus, FakeTarget(), directory="clean").summary.conflict_free == 6
    with pytest.raises(AssertionError, match=r"(?s)2 findings:.*d_lockref in dget and dput \(link, rename; 3 tests\)"):
        check_sharing(corpus, FakeTarget(conflicting), directory="first")
    again = check_sharing(corpus, FakeTarget(conflicting), baseline="first", directory="again")
    assert again.summary.conflicting == 6
    with pytest.raises(AssertionError, match="2 new findings:"):
        check_sharing(corpus, FakeTarget(conflicting), baseline=["clean"], directory="new")


def test_sharing_fails_on_wrong_results_deaths_and_if_nothing_runs(corpus: Corpus) -> None:
    wrong = FakeTarget(lambda job, before: WindowRecord(job, wrong="link returned EEXIST, acceptable: 0"))
    with pytest.raises(AssertionError, match="6 tests with wrong results, 0 in which the target died"):
        check_sharing(corpus, wrong, directory="wrong")
    died = FakeTarget(lambda job, before: WindowRecord(job, crashed="Kernel panic"))
    with pytest.raises(AssertionError, match="0 tests with wrong results, 6 in which the target died"):
        check_sharing(corpus, died, directory="died")
    with pytest.raises(UsageError, match="can run none of the 6 tests"):
        check_sharing(corpus, FakeTarget(unknown=["rename", "open"]), directory="skipped")


def test_an_error_of_the_run_is_raised() -> None:
    class Dying(FakeTarget):
        """Does not start."""

        def start(self, *_: object) -> None:
            raise RunError("no emulator")

    with pytest.raises(RunError, match="no emulator"):
        check_sharing(make_corpus(2), Dying())
