"""ScaleFS at length: random calls against tmpfs, histories with and without chosen schedules, models whole."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = 10
CALLS_PER_PART = 400_000
"""Of each of the three kinds: on names; on names and data; and the latter on file systems that run full."""
CALLS_PER_SEED = 200
"""As in scalefs/tests/tmpfs and scalefs-c/tests/random: a seed stands for one sequence of this many calls."""
DOOR_PARTS = 20
DOOR_CALLS_PER_PART = 500_000
HISTORIES = 6_000
STRUCTURES_HISTORIES = 200_000
OVERTAKEN_MS = 600_000
"""Of each structure; a round of chosen schedules takes a tenth of a millisecond to one and a half."""
NOT_COMMUTING_PER_PART = 100_000
COMMUTING_PAIRS = 10_000
RIGHTS_PARTS = 10
SEQUENCES_PARTS = 10
SCRIPT_PARTS = 8
OTHER_SEEDS = 5
ADYA_RUNS = 2_000
POOL_CALLS = 10_000_000
DOMAINS_PARTS = 10
DOMAINS_HISTORIES_PER_PART = 10_000
DOMAINS_CALLS_PER_PART = 250_000
"""Of each kind of random calls; those over three domains make four times as many, ten million in all parts."""
DOMAINS_SEEDS_PER_PART = 1_000_000
FULL_RINGS_PARTS = 2
FULL_RINGS_SECONDS_PER_PART = 300
"""Ten minutes in all, in parts that a test program has time for (scripts/limited.py)."""
DURABLE_PARTS = 20
POWER_CUTS_PER_PART = 5_000
KILLS_PER_PART = 50
WRONG_BITS_PER_PART = 1_000
KILL_PARTS = 4
KILLS_OF_PROGRAMS_PER_PART = 250
STRUCTURES = sorted(
    {path.parents[1].name for path in ROOT.glob("crates/*/*/tests/histories.rs")} - {"history", "scalefs"}
)
MODELS = sorted(path.parents[1].name for path in ROOT.glob("crates/*/*/tests/models.rs"))

pytestmark = pytest.mark.long


def run_test(crate: str, name: str, environment: Mapping[str, str], only: str = "") -> None:
    """Runs one test program of a crate, built with optimisation; of its tests those whose name has `only` in it."""
    run_cargo_test(["--release", "-p", crate, "--test", name, only], environment)


def run_cargo_test(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Runs `cargo test` of this repository; if a test fails, says what was set."""
    cargo = shutil.which("cargo") or str(Path.home() / ".cargo" / "bin" / "cargo")
    command = [cargo, "test", "--quiet", "--locked", "--offline", *arguments]
    outcome = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert outcome.returncode == 0, f"with {dict(environment)}:\n{outcome.stdout[-4000:]}{outcome.stderr[-4000:]}"


@pytest.mark.parametrize("number", range(OTHER_SEEDS))
def test_random_cases_of_other_seeds(number: int) -> None:
    """`make test` draws the same cases each time; here no one has seen them before. The seed that failed is printed."""
    run_cargo_test(["--workspace", "--no-fail-fast"], {"PROPTEST_RNG_SEED": str(secrets.randbelow(2**32))})


@pytest.mark.parametrize("part", range(PARTS))
def test_random_calls_against_tmpfs(part: int) -> None:
    seed = 1 + part * (CALLS_PER_PART // CALLS_PER_SEED)
    run_test("scalefs", "tmpfs", {"SCALEFS_FUZZ_CALLS": str(CALLS_PER_PART), "SCALEFS_FUZZ_SEED": str(seed)})


def test_all_cases_of_the_table() -> None:
    """Of calls on names, data and times: on ScaleFS, on `plain` and on tmpfs."""
    run_test("scalefs", "tmpfs", {"SCALEFS_CASES": "all"}, "of_the_table")


def test_random_calls_on_attributes_and_room_against_tmpfs() -> None:
    environment = {"SCALEFS_FUZZ_CALLS": str(CALLS_PER_PART), "SCALEFS_FUZZ_SEED": "1000000"}
    run_test("scalefs", "tmpfs", environment, "attributes_and_room")


@pytest.mark.parametrize("part", range(1, SEQUENCES_PARTS + 1))
def test_all_sequences_of_six_calls_are_those_of_plain(part: int) -> None:
    """In parts, as rights are."""
    environment = {"SCALEFS_SEQUENCE_CALLS": "6", "SCALEFS_SEQUENCES": f"{part}/{SEQUENCES_PARTS}"}
    run_test("scalefs", "tmpfs", environment, "all_short_sequences")


@pytest.mark.parametrize("part", range(1, SCRIPT_PARTS + 1))
def test_scripts_of_sibylfs_give_the_same_as_on_tmpfs(part: int) -> None:
    """They are another project's data, and not in the repository: docs/notes/sibylfs.md says where they are found."""
    if not os.environ.get("SIBYLFS_SCRIPTS"):
        pytest.skip("SIBYLFS_SCRIPTS names no folder with the scripts")
    run_test("scalefs", "tmpfs", {"SIBYLFS_PART": f"{part}/{SCRIPT_PARTS}"}, "scripts_of_a_folder")


@pytest.mark.parametrize("part", range(1, RIGHTS_PARTS + 1))
def test_all_rights_are_those_of_tmpfs(part: int) -> None:
    """In parts, since a test program has a limit of time (scripts/limited.py)."""
    run_test("scalefs", "tmpfs", {"RIGHTS": f"{part}/{RIGHTS_PARTS}"}, "rights")


def test_planted_faults_of_calls_are_found(tmp_path_factory: pytest.TempPathFactory) -> None:
    """By as many calls as `make test` makes; under `--cfg fuzzing`, where faults can be planted, all is built apart."""
    target = tmp_path_factory.getbasetemp() / "fuzzing"
    run_test("scalefs", "tmpfs", {"RUSTFLAGS": "--cfg fuzzing", "CARGO_TARGET_DIR": str(target)})


@pytest.mark.parametrize("part", range(DOOR_PARTS))
def test_random_calls_through_c(part: int) -> None:
    """Ten million, in parts: one at a time by threads that take turns, compared with `plain`."""
    seed = 1 + part * (DOOR_CALLS_PER_PART // CALLS_PER_SEED)
    environment = {"SCALEFS_DOOR_CALLS": str(DOOR_CALLS_PER_PART), "SCALEFS_DOOR_SEED": str(seed)}
    run_test("scalefs-c", "random", environment)


def test_random_calls_on_memory_against_real_processes() -> None:
    run_test("scalefs", "memory", {"SCALEFS_FUZZ_CALLS": str(CALLS_PER_PART), "SCALEFS_FUZZ_SEED": "1000000"})


@pytest.mark.parametrize("calls", ["histories", "data_histories"])
def test_concurrent_histories(calls: str) -> None:
    run_test("scalefs", calls, {"HISTORIES": str(HISTORIES)})


@pytest.mark.parametrize(("calls", "rounds"), [("histories", 150_000), ("data_histories", 60_000)])
def test_scheduled_histories(calls: str, rounds: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """With threads of which a scheduler lets one run at a time; under `--cfg shuttle` everything is built apart."""
    target = tmp_path_factory.getbasetemp() / "shuttle"
    environment = {"RUSTFLAGS": "--cfg shuttle", "CARGO_TARGET_DIR": str(target), "HISTORIES": str(rounds)}
    run_test("scalefs", calls, environment)


@pytest.mark.parametrize("calls", ["histories", "data_histories"])
def test_calls_that_are_overtaken(calls: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    target = tmp_path_factory.getbasetemp() / "shuttle"
    environment = {"RUSTFLAGS": "--cfg shuttle", "CARGO_TARGET_DIR": str(target), "HISTORIES_MS": str(OVERTAKEN_MS)}
    run_test("scalefs", calls, environment, "overtaken")


@pytest.mark.parametrize("crate", STRUCTURES)
def test_scheduled_histories_of_structures(crate: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    target = tmp_path_factory.getbasetemp() / "shuttle"
    rounds = str(STRUCTURES_HISTORIES)
    run_test(crate, "histories", {"RUSTFLAGS": "--cfg shuttle", "CARGO_TARGET_DIR": str(target), "HISTORIES": rounds})


@pytest.mark.parametrize("part", range(PARTS))
def test_transactions_that_do_not_commute_have_an_order(part: int) -> None:
    """A million histories, a part at a time, of two parties that show something else in the other order."""
    first = part * NOT_COMMUTING_PER_PART
    run_test("transact", "histories", {"HISTORIES": f"{first}..{first + NOT_COMMUTING_PER_PART}"}, "not_commute")


def test_transactions_of_calls_that_commute_both_commit() -> None:
    run_test("transact", "pairs", {"HISTORIES": str(COMMUTING_PAIRS)})


def test_long_runs_of_transactions_have_no_anomaly() -> None:
    run_test("transact", "adya", {"HISTORIES": str(ADYA_RUNS)})


def test_a_million_answers_are_one_transaction() -> None:
    run_test("transact", "misuse", {"ANSWERS": "1000000"})


@pytest.mark.parametrize("seed", range(1, KILL_PARTS + 1))
def test_killed_processes_leave_whole_trees(seed: int) -> None:
    """A thousand kills in a tree of `scalefs run`, in parts; after each twenty `scalefs status --check` looks at it."""
    environment = {"SCALEFS_KILLS": str(KILLS_OF_PROGRAMS_PER_PART), "SCALEFS_SEED": str(seed)}
    run_test("scalefs-program", "running", environment, "killed_processes")


@pytest.mark.parametrize("structure", ["ring", "log"])
def test_memory_without_coherence_has_no_report(structure: str) -> None:
    run_test("pool", "pool", {"POOL_CALLS": str(POOL_CALLS)}, f"{structure}_is_right_under")


@pytest.mark.parametrize("part", range(DOMAINS_PARTS))
def test_histories_of_several_domains_have_an_order(part: int) -> None:
    """A hundred thousand, a part at a time, each in a schedule of its own."""
    first = part * DOMAINS_HISTORIES_PER_PART
    histories = f"{first}..{first + DOMAINS_HISTORIES_PER_PART}"
    run_test("domains", "domains", {"HISTORIES": histories}, "calls_of_several_domains_have_an_order")


@pytest.mark.parametrize("part", range(DOMAINS_PARTS))
def test_random_calls_of_several_domains_give_the_same_as_on_plain(part: int) -> None:
    seed = 1 + part * DOMAINS_SEEDS_PER_PART
    environment = {"DOMAINS_CALLS": str(DOMAINS_CALLS_PER_PART), "DOMAINS_SEED": str(seed)}
    run_test("domains", "domains", environment, "random::random_calls")


@pytest.mark.parametrize("part", range(FULL_RINGS_PARTS))
@pytest.mark.parametrize("only", ["rings_that_are_full", "threads_talk_over_full_rings"])
def test_full_rings_do_not_stall(only: str, part: int) -> None:
    """Domains make calls under the adversary, then threads over a pool file; both end, or a seed stands still."""
    environment = {
        "FULL_RINGS_SECONDS": str(FULL_RINGS_SECONDS_PER_PART),
        "FULL_RINGS_SEED": str(part * DOMAINS_SEEDS_PER_PART),
    }
    run_test("transports", "transports", environment, only)


def test_a_ring_is_explored_until_lines_are_written_over() -> None:
    run_test("pool", "pool", {"POOL_MESSAGES": "3"}, "a_ring_is_right_in_every_state")


@pytest.mark.parametrize("crate", MODELS)
def test_models_whole(crate: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Under `--cfg loom` everything is built apart."""
    target = tmp_path_factory.getbasetemp() / "loom"
    run_test(crate, "models", {"RUSTFLAGS": "--cfg loom", "CARGO_TARGET_DIR": str(target)})


@pytest.mark.parametrize("part", range(DURABLE_PARTS))
@pytest.mark.parametrize(
    ("only", "variable", "count"),
    [
        ("power_cuts", "COMMUTANT_POWER_CUTS", POWER_CUTS_PER_PART),
        ("kills", "COMMUTANT_KILLS", KILLS_PER_PART),
        ("damage", "COMMUTANT_FLIPS", WRONG_BITS_PER_PART),
    ],
)
def test_durable_instances_at_length(part: int, only: str, variable: str, count: int) -> None:
    """Power cuts, processes that are killed, and wrong bits: what has returned is there."""
    run_test("durable", "durable", {variable: str(count), "COMMUTANT_PART": str(part)}, only)


def test_faults_planted_in_durable_instances_are_found(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Under `--cfg fuzzing`, where faults can be planted, all is built apart."""
    target = tmp_path_factory.getbasetemp() / "fuzzing"
    environment = {"RUSTFLAGS": "--cfg fuzzing", "CARGO_TARGET_DIR": str(target)}
    run_test("durable", "durable", environment, "faults")
    run_test("transact", "journal", environment, "found")
