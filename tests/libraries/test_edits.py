"""The gate of a library after edits that change no code, and on a machine without the C library's debug symbols."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from commutant import api
from commutant.api import Checked, check, gate, generate
from tests.libraries.building import SOURCES, build

DEBUG_FOLDER = Path("/usr/lib/debug/.build-id")


@pytest.fixture(scope="module")
def tests_of_map() -> api.Tests:
    return generate("map", calls=["get", "put"])


class Project:
    """A library's sources in a folder, and the adapter that is built from them."""

    def __init__(self, folder: Path, *sources: str, compiled: int, extra: tuple[str, ...] = ()) -> None:
        self.folder = folder
        folder.mkdir()
        self.sources = [Path(shutil.copy(SOURCES / name, folder)) for name in sources]
        self._compiled, self._extra = self.sources[:compiled], extra

    def check(self, tests: api.Tests, name: str) -> Checked:
        """Builds the adapter again, and checks it in one process: which objects lie side by side is then the same."""
        built = build(self.folder, "adapter", *self._compiled, extra=(f"-I{self.folder}", *self._extra))
        return check(tests, target=f"library:path={built}", directory=self.folder / name, jobs=1)

    def edit(self, drawn: random.Random) -> None:
        """An edit that changes no code: a comment or empty lines somewhere."""
        source = drawn.choice(self.sources)
        lines = source.read_text().splitlines(keepends=True)
        inside = False
        places = [0]
        for number, line in enumerate(lines, 1):
            inside = line.rfind("/*") > line.rfind("*/") or (inside and "*/" not in line)
            if not inside and not line.endswith("\\\n"):
                places.append(number)
        lines.insert(
            drawn.choice(places), drawn.choice(["/* Said anew. */\n", "\n", "\n\n\n", "/* Of two\n   lines. */\n"])
        )
        source.write_text("".join(lines))


def test_a_comment_in_a_header_is_no_new_finding(tests_of_map: api.Tests, tmp_path: Path) -> None:
    table = Project(tmp_path / "table", "table.c", "table_adapter.c", "table.h", compiled=2)
    base = table.check(tests_of_map, "base")
    assert base.summary.conflicting
    for source in table.sources:
        source.write_text("/* A comment. */\n\n" + source.read_text())
    answer = gate(table.check(tests_of_map, "new"), baseline=base.run.path)
    assert answer and not answer.gated.new and not answer.gated.moved
    assert any(":" in group.name.partition("(")[2] for group in answer.gated.findings), "memory is named by its line"
    assert str(answer) == "no new finding"


def test_a_planted_sharing_is_new_and_named(tests_of_map: api.Tests, tmp_path: Path) -> None:
    table = Project(tmp_path / "table", "table.c", "table_adapter.c", "table.h", compiled=2)
    base = table.check(tests_of_map, "base")
    adapter = table.sources[1]
    head, call, body = adapter.read_text().partition("  long value;\n")
    assert call, "the adapter's function `get` begins so"
    adapter.write_text(f"static volatile long planted_calls;\n{head}{call}  planted_calls++;\n{body}")
    answer = gate(table.check(tests_of_map, "new"), baseline=base.run.path)
    assert not answer and any("planted_calls" in line for line in answer.gated.lines())


def test_debug_symbols_of_the_c_library_change_no_finding(tests_of_map: api.Tests, tmp_path: Path) -> None:
    """The same adapter, with the folder of debug symbols hidden by a mount that this process alone sees."""
    hidden = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    mount = "mount -t tmpfs none /usr/lib/debug"
    if not DEBUG_FOLDER.is_dir() or subprocess.run([*hidden, mount], check=False, capture_output=True).returncode:
        pytest.skip("no debug symbols to hide, or no mount of one's own")
    queue = Project(tmp_path / "queue", "job_queue.c", compiled=1)
    model = Path(__file__).with_name("job_queue.py")
    tests = generate(f"{model}:JobQueue", calls=["submit", "lease"])
    base = queue.check(tests, "base")
    tests.write(tmp_path / "tests.jsonl.gz")
    command = (
        f"{sys.executable} -m commutant check {tmp_path}/tests.jsonl.gz --target library:path={queue.folder}/adapter.so"
    )
    subprocess.run([*hidden, f"{mount} && {command} -o {queue.folder}/without"], check=True, capture_output=True)
    without = gate(queue.folder / "without", baseline=base.run.path, again=False)
    assert without and not without.gated.moved
    assert any("queue.lock" in group.name for group in without.gated.findings)
    back = gate(base, baseline=queue.folder / "without", again=False)
    assert back and not back.gated.moved


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "interface", "sources", "compiled"),
    [
        ("table", "map", ("table.c", "table_adapter.c", "table.h"), 2),
        ("shared_map", "map", ("shared_map.cpp",), 1),
        ("job_queue", f"{Path(__file__).with_name('job_queue.py')}:JobQueue", ("job_queue.c",), 1),
    ],
)
def test_a_hundred_edits_that_change_no_code(
    name: str, interface: str, sources: tuple[str, ...], compiled: int, tmp_path: Path
) -> None:
    project = Project(tmp_path / name, *sources, compiled=compiled)
    tests = generate(interface)
    base = project.check(tests, "base")
    drawn = random.Random(7)
    for number in range(100):
        project.edit(drawn)
        if number % 10 == 9:  # ten edits a build: each of them moves lines
            answer = gate(project.check(tests, f"after-{number}"), baseline=base.run.path)
            assert answer and not answer.gated.new and not answer.gated.moved, str(answer)
