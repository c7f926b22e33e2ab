"""The instructions of the table in a machine, under its kernel: what is seen of each on a line of a program's memory
that the same program, then on another core, writes as a whole."""

from __future__ import annotations

from pathlib import Path

from tests.mtrace.booted import guest_of
from tests.mtrace.instructions import CLOBBERED, TABLE, assembly, seen_by

_INIT = """
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/reboot.h>
enum {{ WINDOW_OPEN = 0x10, CALL_BEGIN, CALL_END, WINDOW_CLOSE, FLUSH, THREAD }};
#define MARKER(code) asm volatile(".byte 0x0f, 0x1f, 0x84, 0x00, %c0, 0x52, 0x54, 0x4d" ::"i"(code) : "memory")
static char *const line = (char *)0x600000000000; /* where user accesses count */
static void stand_on(int cpu) {{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set)) abort();
}}
{functions}
static void (*const instructions[])(void) = {{{names}}};
int main(void) {{
    void *page = mmap(line, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (page == MAP_FAILED) abort();
    memset(page, 1, 4096);
    MARKER(THREAD);
    printf("scenario all\\n");
    for (unsigned number = 0; number < sizeof instructions / sizeof *instructions; number++) {{
        MARKER(WINDOW_OPEN);
        stand_on(0);
        MARKER(CALL_BEGIN);
        instructions[number]();
        MARKER(CALL_END);
        stand_on(1);
        MARKER(CALL_BEGIN);
        for (int word = 0; word < 8; word++) ((volatile long *)line)[word] = 0;
        MARKER(CALL_END);
        stand_on(2);
        MARKER(WINDOW_CLOSE);
    }}
    MARKER(FLUSH);
    printf("done\\n");
    fflush(stdout);
    reboot(RB_POWER_OFF);
}}
"""


def test_each_instruction_is_seen_in_a_machine_as_the_table_says(tmp_path: Path) -> None:
    functions = "\n".join(
        f'static void i{number}(void) {{ asm volatile("{assembly(one.instruction)}" :: "r"(line) : {CLOBBERED}); }}'
        for number, one in enumerate(TABLE)
    )
    source = tmp_path / "instructions.c"
    names = ", ".join(f"i{number}" for number in range(len(TABLE)))
    source.write_text(_INIT.format(functions=functions, names=names))
    guest = guest_of(tmp_path, source)
    trace, scenarios = guest.boot("instructions", "on")
    assert scenarios == ["all"]
    with trace.open("rb") as file:
        windows, end = iter(guest.reader(file).read_batch, None)
    assert end == []
    seen = []
    for window, one in zip(windows, TABLE, strict=True):
        shown = zip(window.findings, window.pictures, strict=True)
        found = [(finding, picture) for finding, picture in shown if finding.object == "user page"]
        touched = [touched for _, picture in found for line in picture.lines for touched in line.touched]
        seen.append(seen_by(0, [finding for finding, _ in found], touched, one))
    expected = [one.in_a_machine() for one in TABLE]
    wrong = [pair for pair in zip(seen, expected, strict=True) if pair[0] != pair[1]]
    assert not wrong, "\n".join(f"{got}, expected {want}" for got, want in wrong)
