"""The target `library` as a whole: a hash table in C behind an adapter, and what is wrong with adapters."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from commutant.documents import encode
from commutant.lang.load import load_interface
from commutant.runs import Check
from commutant.support.errors import UsageError
from commutant.targets.base import Job
from commutant.targets.library.options import Options, parse_options
from commutant.targets.registry import load_target
from commutant.testgen import TestCase, generate
from commutant.testing import check_sharing
from tests.libraries.building import SOURCES, both_orders, build, pair, session, variable


def all_of_map() -> tuple[TestCase, ...]:
    return tuple(generate(load_interface("map")).tests)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("table"), "table", "table.c", "table_adapter.c")


def test_a_hash_table_counts_its_look_ups_where_readers_meet(table: Path) -> None:
    tests = all_of_map()
    assert len(tests) >= 60
    with session(table) as running:
        records = list(running.run([Job(test, order) for test in tests for order in range(len(test.orders))]))
    assert [record.wrong for record in records if record.wrong] == []
    shared: dict[str, set[str]] = {}
    for record in records:
        shared.setdefault(record.job.test.set_name, set()).update(map(variable, record.findings))
    assert "struct table.lookups" in shared["get-get"]
    assert "struct table.lookups" not in shared["put-put"]
    assert not any(name.startswith(("block of", "memory outside")) for name in shared["get-get"])


def test_two_runs_find_the_same_to_the_byte(table: Path) -> None:
    def found() -> list[bytes]:
        tests = all_of_map()[:20]
        with session(table) as running:
            return [b"".join(map(encode, record.findings)) for record in running.run(both_orders(*tests))]

    assert found() == found()


def test_a_private_allocator_leaves_only_the_librarys_own_sharing(table: Path) -> None:
    tests = all_of_map()
    with session(table, ",allocator=per-core") as running:
        names = {
            variable(finding)
            for record in running.run([Job(test, order) for test in tests for order in range(len(test.orders))])
            for finding in record.findings
        }
    assert "struct table.lookups" in names
    assert not any("libc" in name or "outside of blocks" in name or "allocator" in name for name in names)


def test_the_adapter_is_small() -> None:
    lines = (SOURCES / "table_adapter.c").read_text().splitlines()
    assert len([line for line in lines if line.strip()]) <= 40


def test_options_are_checked() -> None:
    assert parse_options("library", {"path": "a.so", "cores": "4"}) == Options(Path("a.so"), 4)
    for options, message in (
        ({}, "expected the adapter's file"),
        ({"path": "a.so", "name": "a-b"}, "name=a-b: expected letters, digits and _"),
        ({"path": "a.so", "cores": "0"}, "cores=0: expected a number from 1 to 1024"),
        ({"path": "a.so", "seed": "x"}, "seed=x: expected a number"),
        ({"path": "a.so", "allocator": "mine"}, "allocator=mine: expected one of program, per-core"),
        ({"path": "a.so", "core": "4"}, "unknown option 'core'; expected path=FILE, name=NAME, cores=N"),
    ):
        with pytest.raises(UsageError, match=message.replace("(", r"\(").replace("|", r"\|")):
            parse_options("library:...", options)


def adapter(folder: Path, calls: str, code: str = "", constant: str = "COMMUTANT_ADAPTER(calls, make, drop)") -> Path:
    """An adapter whose calls do what a test wants."""
    source = folder / "adapter.c"
    source.write_text(
        f"#define _GNU_SOURCE\n#include <commutant.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n"
        "#include <pthread.h>\n#include <sched.h>\n"
        "static int object;\nstatic void *make(void) { return &object; }\nstatic void drop(void *o) { (void)o; }\n"
        f"{code}\nstatic const commutant_call calls[] = {{{calls} {{0, 0}}}};\n"
        f"const commutant_adapter_type commutant_adapter = {constant};\n"
    )
    return build(folder, "adapter", source)


def test_what_is_no_adapter_is_refused_in_one_line(tmp_path: Path) -> None:
    text = tmp_path / "text.so"
    text.write_text("no library")
    program = tmp_path / "program.so"
    program.write_bytes(Path("/usr/bin/gcc").resolve().read_bytes())
    arm = tmp_path / "arm.so"
    arm.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + (3).to_bytes(2, "little") + (183).to_bytes(2, "little"))
    (tmp_path / "plain.c").write_text("int nothing;\n")
    plain = build(tmp_path, "plain", tmp_path / "plain.c")
    (tmp_path / "needy.c").write_text("int missing_function(void);\nint call(void) { return missing_function(); }\n")
    needy = build(tmp_path, "needy", tmp_path / "needy.c")
    (tmp_path / "lost.c").write_text("int lost(void) { return 1; }\n")
    build(tmp_path, "liblost", tmp_path / "lost.c")
    (tmp_path / "loser.c").write_text("int lost(void);\nint call(void) { return lost(); }\n")
    loser = build(tmp_path, "loser", tmp_path / "loser.c", extra=(f"-L{tmp_path}", "-llost"))
    old = adapter(tmp_path, "", constant="{99, sizeof(commutant_adapter_type), calls, make, drop, 0, 0, 0}")
    for path, message in (
        (tmp_path / "none.so", "expected an adapter, a shared object: No such file"),
        (text, "expected an adapter, a shared object (ELF)"),
        (program, "expected a shared object"),
        (arm, "expected a shared object for x86-64, got one for 64-bit Arm"),
        (plain, "expected a constant `commutant_adapter`, found none"),
        (f"{plain},name=two", "expected a constant `commutant_adapter_two`, found none"),
        (needy, "undefined symbol: missing_function"),
        (loser, "liblost.so: cannot open shared object file"),
        (old, "expected an adapter of version 1"),
    ):
        if path == program and program.read_bytes()[16] == 3:
            continue  # a position-independent program is a shared object by its header
        with pytest.raises(UsageError) as caught:
            load_target(f"library:path={path}").implements("get", ("key",))
        assert message in str(caught.value) and "\n" not in str(caught.value), str(caught.value)


ENDINGS = {
    "faults": ("*(volatile int *)(size_t)a->number = 1;", "killed by signal"),
    "exits": ("exit(0);", "exit code 0"),
    "aborts": ("abort();", "killed by signal"),
    "sleeps": ("pause();", "2 s of processor time"),  # of who waits for it
    "hangs": ("for (;;) ;", "2 s of processor time"),
}
RESULTS = {
    "no_kind": ("commutant_put(r, 77, 0, 0);", "a value of kind 77"),
    "number": ("commutant_member(r, 12345);", "12345, which no call was given"),
    "text": ('commutant_text(r, "nobody");', "nobody, which no call was given"),
    "endless": ('commutant_put(r, COMMUTANT_HANDLE, 1, "x")->length = 1u << 30;', "a text of at most 4096 bytes"),
    "many": ("for (int i = 0; i < 1000; i++) commutant_number(r, i);", "at most 256 values, got 1000"),
    "few": ("commutant_sequence(r)->length = 9;", "fewer values than its length"),
    "failed": ('commutant_failed(r, "the map is damaged");', "the call failed: the map is damaged"),
}


def adapter_of(folder: Path, bodies: Mapping[str, str]) -> Path:
    """An adapter with a call for each body of a function of the object `o`, the arguments `a` and the result `r`."""
    head = "(void *o, const commutant_value *a, commutant_result *r) { (void)o; (void)a; (void)r; "
    code = "".join(f"static void {name}{head}{body} }}\n" for name, body in bodies.items())
    calls = "".join(f'{{"{name}()", {name}}}, ' for name in bodies)
    return adapter(folder, calls, code)


def test_a_call_that_ends_the_program_costs_its_test_alone(tmp_path: Path) -> None:
    good = {"good": "commutant_number(r, 0);"}
    path = adapter_of(tmp_path, {**{name: body for name, (body, _) in ENDINGS.items()}, **good})
    jobs = [job for name in ENDINGS for job in (Job(pair("good"), 0), Job(pair(name), 0))]
    with session(path) as running:
        records = list(running.run([*jobs, Job(pair("good"), 1)]))
    assert [record.wrong for record in records] == [None] * len(records)
    assert [record.crashed is None for record in records[::2]] == [True] * (len(ENDINGS) + 1)
    for (_, told), record in zip(ENDINGS.values(), records[1::2], strict=True):
        assert told in (record.crashed or "")


def test_a_program_that_runs_without_an_answer_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine the two seconds of processor time that decide took longer than the wait for an answer."""
    monkeypatch.setattr("commutant.targets.process.session._SILENCE_SECONDS", 0.5)
    path = adapter_of(tmp_path, {"hangs": ENDINGS["hangs"][0]})
    with session(path) as running:
        (record,) = running.run([Job(pair("hangs"), 0)])
    assert "2 s of processor time" in (record.crashed or "")


def test_a_result_that_is_none_is_a_wrong_result_with_its_reason(tmp_path: Path) -> None:
    path = adapter_of(tmp_path, {name: body for name, (body, _) in RESULTS.items()})
    with session(path) as running:
        records = list(running.run([Job(pair(name), 0) for name in RESULTS]))
    for (_, told), record in zip(RESULTS.values(), records, strict=True):
        assert record.crashed is None
        assert told in (record.wrong or ""), record.wrong


def test_what_an_adapter_prints_closes_and_forks_harms_nothing(tmp_path: Path) -> None:
    bodies = {
        "loud": """printf("noise on standard output\\n"); fflush(stdout);
            for (int descriptor = 0; descriptor < 1024; descriptor++) close(descriptor);
            commutant_number(r, fork() < 0 ? 0 : 1);""",
        "greedy": "commutant_number(r, malloc((size_t)1 << 40) != NULL);",
        "asks": "commutant_number(r, sysconf(_SC_NPROCESSORS_ONLN) - 5);",
    }
    path = adapter_of(tmp_path, bodies)
    with session(path, ",cores=5") as running:
        records = list(running.run(both_orders(pair("loud"), pair("greedy"), pair("asks"))))
    assert [(record.wrong, record.crashed) for record in records] == [(None, None)] * 6


def test_all_memory_is_not_to_be_had(tmp_path: Path) -> None:
    body = """long blocks = 0; while (blocks < 1000 && malloc((size_t)512 << 20)) blocks++;
        commutant_number(r, blocks < 8 ? 0 : blocks);"""
    with session(adapter_of(tmp_path, {"takes_all": body})) as running:
        (record,) = running.run([Job(pair("takes_all"), 0)])
    assert (record.wrong, record.crashed) == (None, None)


def test_state_that_stays_between_tests_is_said_to_stay(tmp_path: Path) -> None:
    code = "static long kept[4096]; static int first, count;"
    push = """static void push(void *o, const commutant_value *a, commutant_result *r) {
        for (int i = 0; i < 8; i++) kept[count++ % 4096] = a[0].number; }"""
    pop = """static void pop(void *o, const commutant_value *a, commutant_result *r) {
        if (first < count) commutant_member(r, kept[first++ % 4096]); else commutant_error(r, 11); }"""
    unused = '#pragma GCC diagnostic ignored "-Wunused-parameter"'
    path = adapter(tmp_path, '{"push(item)", push}, {"pop()", pop},', "\n".join([unused, code, push, pop]))
    tests = tuple(generate(load_interface("stack"), calls=["push"]).tests)
    with session(path) as running:
        records = list(running.run([Job(test, 0) for test in tests]))
    told = [record.wrong for record in records if record.wrong]
    assert told
    assert any("is a member of an earlier test; does the library keep state between tests?" in text for text in told), (
        told[0]
    )


@pytest.mark.parametrize("kept", [True, False])
def test_every_64th_test_begins_with_a_look_at_an_object_that_should_be_empty(kept: bool, tmp_path: Path) -> None:
    """What stays and is no member of a sort shows in what is observed, and it is said what is wrong."""
    bodies = f"""static long sum;
        static void *new(void) {{ sum = {int(kept)} ? sum : 0; return make(); }}
        static void add(void *o, const commutant_value *a, commutant_result *r) {{
            (void)o; (void)r; sum += a[0].number; }}
        static void read_(void *o, const commutant_value *a, commutant_result *r) {{
            (void)o; (void)a; commutant_number(r, sum); }}"""
    calls, constant = '{"add(amount)", add}, {"read()", read_},', "COMMUTANT_ADAPTER(calls, new, drop)"
    path = adapter(tmp_path, calls, bodies, constant)
    tests = [test for test in generate(load_interface("counter")).tests if test.observe]
    jobs = [Job(tests[number % len(tests)], 0) for number in range(200)]
    with session(path) as running:
        told = [record.wrong or "" for record in running.run(jobs)]
    assert any(told[1:64]) == kept
    looked = [number for number, text in enumerate(told) if "does the library keep state between tests?" in text]
    assert looked == ([64, 128, 192] if kept else []), told
    if kept:
        assert "read() of an object that should be empty gave" in told[looked[0]]


def test_a_panic_through_a_call_costs_its_test_and_says_so(tmp_path: Path) -> None:
    source = tmp_path / "panics.rs"
    source.write_text(
        "use commutant_adapter::{Arguments, library};\n"
        'fn panics(_: &(), _: Arguments) -> i64 { panic!("no room") }\n'
        "fn good(_: &(), _: Arguments) -> i64 { 0 }\n"
        'library! { (): || (); "panics()" => panics, "good()" => good }\n'
    )
    with session(build(tmp_path, "panics", source)) as running:
        panicked, good = running.run([Job(pair("panics"), 0), Job(pair("good"), 0)])
    assert "it panicked: no room" in (panicked.wrong or ""), panicked
    assert (good.wrong, good.crashed) == (None, None)


def test_what_a_thread_of_the_library_shares_counts_apart(tmp_path: Path) -> None:
    """One that a call has started: threads that loading starts take the places of cores, and the self-test says so."""
    code = """static volatile long ticks;
        static void *run(void *nothing) { for (;;) { ticks++; } return nothing; }
        static void starts(void *o, const commutant_value *a, commutant_result *r) {
            (void)o; (void)a; pthread_t t; if (!ticks++) pthread_create(&t, 0, run, 0); commutant_number(r, 0); }
        static void looks(void *o, const commutant_value *a, commutant_result *r) {
            (void)o; (void)a; long seen = ticks; while (ticks < seen + 2) sched_yield(); commutant_number(r, 0); }"""
    path = adapter(tmp_path, '{"starts()", starts}, {"looks()", looks},', code)
    with session(path) as running:
        _, *records = running.run([Job(pair("starts"), 0), *both_orders(*[pair("looks")] * 5)])
    assert [(record.wrong, record.crashed, record.findings) for record in records] == [(None, None, ())] * len(records)
    told = [dict(record.ignored) for record in records]
    assert any(one.get("other_task") for one in told), told


def test_an_exception_through_a_call_costs_its_test(tmp_path: Path) -> None:
    source = tmp_path / "throws.cpp"
    source.write_text(
        "#include <commutant.h>\n#include <stdexcept>\nstatic int object;\n"
        "static void *make(void) { return &object; }\nstatic void drop(void *) {}\n"
        'static void throws(void *, const commutant_value *, commutant_result *) { throw std::runtime_error("no"); }\n'
        "static void good(void *, const commutant_value *, commutant_result *r) { commutant_number(r, 0); }\n"
        'static const commutant_call calls[] = {{"throws()", throws}, {"good()", good}, {0, 0}};\n'
        'extern "C" const commutant_adapter_type commutant_adapter = COMMUTANT_ADAPTER(calls, make, drop);\n'
    )
    with session(build(tmp_path, "throws", source)) as running:
        thrown, good = running.run([Job(pair("throws"), 0), Job(pair("good"), 0)])
    assert thrown.crashed and "signal" in thrown.crashed
    assert (good.wrong, good.crashed) == (None, None)


def test_a_stripped_library_still_has_modules_for_names(tmp_path: Path) -> None:
    path = adapter_of(tmp_path, {"counts": "static long all; all++; commutant_number(r, 0);"})
    subprocess.run(["strip", str(path)], check=True)
    with session(path) as running:
        (record,) = running.run([Job(pair("counts"), 0)])
    (finding,) = record.findings
    assert finding.name.startswith("adapter.so+0x")


def test_a_call_that_the_adapter_lacks_is_known_as_lacking(table: Path, tmp_path: Path) -> None:
    target = load_target(f"library:path={table}")
    assert target.implements("put", ("value", "key"))
    assert not target.implements("put", ("key",))
    assert not target.implements("len", ())
    with (
        Check.new(
            generate(load_interface("map-len"), calls=["len"]),
            target,
            jobs=1,
            repeats=3,
            seed=0,
            directory=tmp_path / "run",
        ) as check,
        pytest.raises(UsageError, match=r"does not know the call .*; an adapter needs a call of just that signature"),
    ):
        check.start(lambda _: None)


def test_the_command_names_the_planted_field(table: Path, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "commutant",
        "check",
        "map",
        "--target",
        f"library:path={table}",
        "--calls",
        "get,get",
    ]
    answer = subprocess.run(
        [*command, "-o", str(tmp_path / "run")], capture_output=True, text=True, timeout=300, check=False
    )
    assert answer.returncode == 0, answer.stderr
    assert "struct table.lookups" in answer.stdout


def test_check_sharing_takes_a_library_and_fails_on_what_is_new_alone(table: Path, tmp_path: Path) -> None:
    target = f"library:path={table}"
    with pytest.raises(AssertionError, match=r"struct table\.lookups"):
        check_sharing("map", target, calls=["get", "get"], directory=tmp_path / "known")
    again = check_sharing(
        "map", target, calls=["get", "get"], baseline=tmp_path / "known", directory=tmp_path / "again"
    )
    assert again.summary.conflicting > 0
