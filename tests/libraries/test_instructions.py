"""The instructions of the table as calls of a library, so in the emulator of programs: what is seen of each on a line
that another core writes as a whole."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from commutant.corpus import PlacedCall, TestCase
from commutant.targets.base import Job
from tests.libraries.building import pair, session
from tests.libraries.test_library import adapter
from tests.mtrace.instructions import CLOBBERED, TABLE, assembly, seen_by


def _beside_writer(call: str) -> TestCase:
    test = pair(call)
    test = replace(test, calls=(test.calls[0], PlacedCall("all", {}, 0, 1, 1)))
    return replace(test, id=test.content_id())


def test_each_instruction_is_seen_as_the_table_says(tmp_path: Path) -> None:
    head = "(void *o, const commutant_value *a, commutant_result *r) { (void)o; (void)a;"
    code = ["static struct line { char bytes[64]; } __attribute__((aligned(64))) line;"]
    for number, expected in enumerate(TABLE):
        text = assembly(expected.instruction)
        body = f'__asm__ volatile("{text}" :: "r"(&line) : {CLOBBERED}); commutant_number(r, 0);'
        code.append(f"static void i{number}{head} {body} }}")
    stores = "for (int i = 0; i < 8; i++) ((volatile long *)&line)[i] = 0; commutant_number(r, 0);"
    code.append(f"static void all{head} {stores} }}")
    names = [f"i{number}" for number in range(len(TABLE))]
    calls = "".join(f'{{"{name}()", {name}}}, ' for name in (*names, "all"))
    with session(adapter(tmp_path, calls, "\n".join(code))) as running:
        records = list(running.run([Job(_beside_writer(name), 0) for name in names]))
    assert [(record.wrong, record.crashed) for record in records] == [(None, None)] * len(TABLE)
    assert len(TABLE) == 86
    seen = []
    for record, one in zip(records, TABLE, strict=True):
        touched = [touched for finding in record.findings for touched in finding.touched]
        seen.append(seen_by(0, record.findings, touched, one))
    assert seen == list(TABLE)


def test_asking_for_a_null_end_in_advance_is_no_access(tmp_path: Path) -> None:
    """Nothing is mapped there, so a processor does nothing; the same of a line that is there is found on both cores."""
    head = "(void *o, const commutant_value *a, commutant_result *r) { (void)o; (void)a; commutant_number(r, 0);"
    code = ["static struct line { char bytes[64]; } __attribute__((aligned(64))) line;"]
    addresses = {"null": "0", "behind_null": "0xfff8", "there": "&line"}
    for name, address in addresses.items():
        code.append(f'static void {name}{head} __asm__ volatile("prefetchw (%0)" :: "r"({address}) : "memory"); }}')
    calls = "".join(f'{{"{name}()", {name}}}, ' for name in addresses)
    with session(adapter(tmp_path, calls, "\n".join(code))) as running:
        records = list(running.run([Job(pair(name), 0) for name in addresses]))
    assert [(record.wrong, record.crashed) for record in records] == [(None, None)] * len(addresses)
    lines = [{finding.object for finding in record.findings} for record in records]
    assert lines == [set(), set(), {"line"}]
    (found,) = records[-1].findings
    assert found.first.prefetch and found.second.prefetch
