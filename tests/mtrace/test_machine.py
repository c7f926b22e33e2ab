"""The tracer on a real kernel, with sharing planted by an init of our own (guest_init.c).

Every rule is seen at work: with it the planted conflict is counted as ignored, without it the same conflict is found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from commutant.mtrace.finding import Finding
from commutant.mtrace.trace import TracedWindow
from commutant.support.errors import RunError
from tests.mtrace.booted import Guest, guest_of

WINDOWS = 6
MAJORITY = 4


def traced(guest: Guest, name: str, rules: str) -> Mapping[str, list[TracedWindow]]:
    """Boots once and gives the windows of each scenario."""
    trace, scenarios = guest.boot(name, rules)
    with trace.open("rb") as file:
        batches = list(iter(guest.reader(file).read_batch, None))
    assert batches.pop() == [], "the end of the trace"
    assert [len(batch) for batch in batches] == [WINDOWS] * len(scenarios)
    return dict(zip(scenarios, batches, strict=True))


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Guest:
    return guest_of(tmp_path_factory.mktemp("machine"), Path(__file__).with_name("guest_init.c"))


@pytest.fixture(scope="module")
def with_rules(guest: Guest) -> Mapping[str, list[TracedWindow]]:
    return traced(guest, "with-rules", "on")


@pytest.fixture(scope="module")
def without_rules(guest: Guest) -> Mapping[str, list[TracedWindow]]:
    return traced(guest, "without-rules", "off")


def stable_names(windows: list[TracedWindow]) -> set[str]:
    """Names found in most windows of a scenario."""
    counts = Counter(name for window in windows for name in {finding.name for finding in window.findings})
    return {name for name, count in counts.items() if count >= MAJORITY}


def find(windows: list[TracedWindow], name: str) -> Finding:
    """One finding of that name."""
    return next(finding for window in windows for finding in window.findings if finding.name == name)


def ignored(windows: list[TracedWindow], rule: str) -> int:
    return sum(window.ignored.get(rule, 0) for window in windows)


def test_calls_that_share_nothing_have_no_finding(with_rules: Mapping[str, list[TracedWindow]]) -> None:
    windows = with_rules["getppid"]
    assert stable_names(windows) == set()
    first, second = sorted(windows[0].counted_accesses)[-2:]
    assert 0 < first <= second


def test_a_reference_count_is_found_with_both_stacks(with_rules: Mapping[str, list[TracedWindow]]) -> None:
    windows = with_rules["fstat"]
    assert stable_names(windows) == {"struct file.f_count"}
    finding = find(windows, "struct file.f_count")
    assert finding.sharing == "true"
    for core, access in enumerate((finding.first, finding.second)):
        assert (access.core, access.write, access.size_bytes) == (core, True, 8)
        functions = [frame.split("+")[0] for frame in access.stack]
        assert functions[0] == access.function
        assert functions[-2:] == ["do_syscall_64", "entry_SYSCALL_64_after_hwframe"]
        assert "__do_sys_newfstat" in functions


def test_creation_in_one_directory_shares_the_parent(with_rules: Mapping[str, list[TracedWindow]]) -> None:
    names = stable_names(with_rules["create"])
    assert {"struct dentry.d_lockref", "struct inode.i_rwsem"} <= names


def test_user_memory_counts_by_what_is_behind_its_address(with_rules: Mapping[str, list[TracedWindow]]) -> None:
    false = [finding for window in with_rules["user-false"] for finding in window.findings]
    assert len(false) >= MAJORITY and {finding.sharing for finding in false} == {"false"}
    assert {(finding.first.offset, finding.second.offset) for finding in false} == {(0, 8)}
    assert "user page" in stable_names(with_rules["user-true"]), "two processes, one page"
    assert find(with_rules["user-true"], "user page").sharing == "true"
    assert stable_names(with_rules["user-private"]) == set(), "two processes, one address, two pages"


def test_an_access_across_a_border_of_pages_touches_what_is_behind_both(
    with_rules: Mapping[str, list[TracedWindow]],
) -> None:
    """The second page lies elsewhere in memory than after the first: there the other process meets it."""
    found = [finding for window in with_rules["user-border"] for finding in window.findings]
    assert "user page" in stable_names(with_rules["user-border"])
    finding = find(with_rules["user-border"], "user page")
    assert finding.sharing == "true"
    assert {(one.offset, one.size_bytes) for one in (finding.first, finding.second)} == {(0, 4), (0, 8)}, found


def test_an_interrupt_that_a_call_sends_counts(with_rules: Mapping[str, list[TracedWindow]]) -> None:
    findings = [finding for window in with_rules["shoot-down"] for finding in window.findings]
    sent = [finding for finding in findings if finding.second.stack[-1].startswith("asm_sysvec_call_function")]
    assert any("munmap" in frame for finding in sent for frame in finding.first.stack)
    windows_with_it = {window.sequence for window in with_rules["shoot-down"] if set(window.findings) & set(sent)}
    assert len(windows_with_it) >= MAJORITY


@pytest.mark.parametrize(("scenario", "rule"), [("runner", "runner"), ("timer", "interrupt"), ("yield", "other_task")])
def test_each_rule_removes_what_is_found_without_it(
    scenario: str,
    rule: str,
    with_rules: Mapping[str, list[TracedWindow]],
    without_rules: Mapping[str, list[TracedWindow]],
) -> None:
    assert ignored(with_rules[scenario], rule) >= MAJORITY
    assert stable_names(with_rules[scenario]) == set()
    assert sum(map(len, (window.findings for window in without_rules[scenario]))) >= MAJORITY
    assert all(not window.ignored for windows in without_rules.values() for window in windows)


def test_without_rules_the_other_task_shares_the_file(without_rules: Mapping[str, list[TracedWindow]]) -> None:
    names = stable_names(without_rules["yield"])
    assert any(name.startswith("struct file.f_count") for name in names), names


def test_a_machine_with_several_threads_is_refused(guest: Guest) -> None:
    """Regression: it went on, and its threads met in one virtual CPU's state, which ended the tracer now and then."""
    trace, done = guest.run("threads", "on", threads="multi")
    problem = "expected -accel tcg,thread=single, got virtual CPUs in several threads"
    assert (done.returncode, done.stderr.strip()) == (1, f"commutant tracer: {problem}")
    with trace.open("rb") as file, pytest.raises(RunError, match=f"the tracer says: {problem}"):
        list(iter(guest.reader(file).read_batch, None))
