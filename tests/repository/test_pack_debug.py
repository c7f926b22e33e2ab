"""scripts/pack_debug.py: a packed program runs, and a debugger reads the same of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pack_debug import pack_debug
from steps import StepFailed

SOURCE = """
#include <stdio.h>
struct counter { long reads; long writes; };
static _Thread_local struct counter own;
struct counter all = {1, 2};
static int add(struct counter *to, int n) { to->reads += n; return to->reads; }
int main(int argc, char **argv) { printf("%d\\n", add(&own, argc) + add(&all, argc)); return 0; }
"""


def debug_information(program: Path) -> list[bytes]:
    """What `readelf` decodes of each kind of debug section."""
    kinds = ("info", "abbrev", "rawline", "aranges", "str")
    dumps: list[list[str | Path]] = [["readelf", f"--debug-dump={kind}", program] for kind in kinds]
    return [subprocess.run(dump, capture_output=True, check=True).stdout for dump in dumps]


def sections(program: Path) -> str:
    return subprocess.run(["readelf", "-SW", program], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("flags", [(), ("-static",), ("-shared", "-fPIC")])
def test_a_packed_program_runs_and_reads_as_before(tmp_path: Path, flags: tuple[str, ...]) -> None:
    source, program = tmp_path / "counter.c", tmp_path / "counter"
    source.write_text(SOURCE)
    subprocess.run(["gcc", "-g", *flags, "-o", program, source], check=True)
    before, size_bytes, symbols = (
        debug_information(program),
        program.stat().st_size,
        subprocess.check_output(["nm", program]),
    )
    pack_debug(program)
    assert debug_information(program) == before
    assert subprocess.check_output(["nm", program]) == symbols
    assert program.stat().st_size < size_bytes
    assert ".debug_info" in sections(program)
    packed = [line for line in sections(program).splitlines() if ".debug_info" in line]
    assert " C " in packed[0], "the section is marked as compressed"
    if "-shared" not in flags:
        assert subprocess.check_output([program, "argument"]) == b"5\n"
    once = program.read_bytes()
    pack_debug(program)
    assert program.read_bytes() == once, "what is packed stays as it is"


def test_what_is_no_program_is_told(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("#!/bin/sh\n")
    with pytest.raises(StepFailed, match="expected a 64-bit little-endian ELF file"):
        pack_debug(tmp_path / "text")
