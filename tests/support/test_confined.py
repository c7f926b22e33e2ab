"""A confined program changes nothing outside of itself, in each of the two ways in which a system can see to that."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from pathlib import Path

from commutant.support import confined, confinement_layers, start_program

_TRIES = """
import json, os, socket, threading

def thread():
    one = threading.Thread(target=int)
    one.start()
    one.join()

def write(path, count=1):
    with open(path, "r+b" if os.path.exists(path) else "wb") as file:
        for _ in range(count):
            file.write(bytes(1 << 20))

def said(what):
    try:
        what()
    except OSError as error:
        return error.strerror
    return "done"

outside, parent = {outside!r}, {parent}
print(json.dumps(dict(
    read=said(lambda: open(outside + "/kept").read()),
    thread=said(thread),
    own_signal=said(lambda: os.kill(os.getpid(), 0)),
    fork=said(os.fork),
    spawn=said(lambda: os.posix_spawn("/bin/true", ["true"], {{}})),
    socket=said(socket.socket),
    signal=said(lambda: os.kill(parent, 0)),
    signal_to_all=said(lambda: os.kill(-1, 0)),
    memory_of_others=said(lambda: open(f"/proc/{{parent}}/mem", "rb").read(1)),
    anonymous_file=said(lambda: os.memfd_create("m")),
    overwrite=said(lambda: write(outside + "/kept")),
    create=said(lambda: write(outside + "/made")),
    folder=said(lambda: os.mkdir(outside + "/folder")),
    remove=said(lambda: os.unlink(outside + "/kept")),
    rename=said(lambda: os.rename(outside + "/kept", outside + "/moved")),
    scratch=said(lambda: write("/dev/shm/confined-scratch")),
    much=said(lambda: write("/dev/shm/confined-much", {too_much})),
)))
"""

_WITHOUT_NAMESPACES = """
import errno, sys
sys.path.insert(0, {folder!r})
import confined

def refused():
    raise OSError(errno.EPERM, "no namespaces")

confined.enter_namespaces = refused
confined.main(sys.argv[1:])
"""


_REFUSALS = {"namespaces": "Read-only file system", "landlock": "Permission denied"}
"""What a program gets that changes a file, by the layer that keeps it from that."""


def _check(folder: Path, layers: set[str], *launcher: str) -> None:
    """Lets a program try, which this started, and holds what it got against what these layers promise.

    A system with neither layer on files has the one on processes. That is then all that is promised: `check` says so.
    """
    (folder / "kept").write_text("kept")
    too_much = confined.SCRATCH_BYTES // (1 << 20) + 1
    script = _TRIES.format(outside=str(folder), parent=os.getpid(), too_much=too_much)
    command = [*launcher, sys.executable, "-c", script]
    with start_program(command, messages=subprocess.PIPE, is_confined=not launcher) as process:
        output, messages = process.communicate(timeout=60)
    assert process.returncode == 0, messages.decode()
    said: dict[str, str] = json.loads(output)
    assert [said.pop(what) for what in ("read", "thread", "own_signal")] == ["done"] * 3
    for what in ("fork", "spawn", "socket", "signal", "signal_to_all"):
        assert said.pop(what) == "Operation not permitted", what
    assert said.pop("memory_of_others") in ("Permission denied", "Operation not permitted")
    assert said.pop("anonymous_file") == "Function not implemented"
    on_files = layers & set(_REFUSALS)
    if not on_files:
        for left in Path("/dev/shm").glob("confined-*"):
            left.unlink()
        return
    assert sorted(path.name for path in folder.iterdir()) == ["kept"]
    assert (folder / "kept").read_text() == "kept"
    assert not list(Path("/dev/shm").glob("confined-*"))
    if "namespaces" in layers:  # with a small folder to write to that no one else sees
        assert (said.pop("scratch"), said.pop("much")) == ("done", "No space left on device")
    assert set(said.values()) == {_REFUSALS[layer] for layer in on_files}


def test_a_confined_program_changes_nothing(tmp_path: Path) -> None:
    _check(tmp_path, confinement_layers())


def test_where_no_namespaces_are_granted_it_changes_nothing_either(tmp_path: Path) -> None:
    script = _WITHOUT_NAMESPACES.format(folder=str(Path(confined.__file__).parent))
    layers = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert "namespaces" not in layers
    _check(tmp_path, set(layers), sys.executable, "-c", script, str(os.getpid()))


def test_the_layers_that_a_system_has_are_told() -> None:
    assert confinement_layers() >= {"seccomp"}
    assert len(confinement_layers() & {"namespaces", "landlock"}) <= 1


def test_a_confined_program_that_cannot_be_started_says_so(tmp_path: Path) -> None:
    with start_program([str(tmp_path / "none")], messages=subprocess.PIPE, is_confined=True) as process:
        _, messages = process.communicate(timeout=60)
    assert process.returncode == 1
    assert messages.decode() == f"{tmp_path / 'none'} does not start: No such file or directory\n"


def test_a_confined_program_ends_with_its_parent() -> None:
    script = (
        "import time\nfrom commutant.support import start_program\n"
        "print(start_program(['sleep', '1000'], is_confined=True).pid, flush=True)\ntime.sleep(1000)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        started = os.pidfd_open(child)
        parent.kill()
    try:
        assert select.select([started], [], [], 60)[0], f"still there: {child}"
    finally:
        os.close(started)
