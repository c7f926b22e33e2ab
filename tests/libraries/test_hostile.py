"""What a library behind an adapter does to others: nothing, whatever it tries."""

from __future__ import annotations

from pathlib import Path

import pytest

from commutant.support import confinement_layers
from commutant.support.errors import UsageError
from commutant.targets.base import WindowRecord
from commutant.targets.process import spending
from commutant.targets.registry import load_target
from tests.libraries.building import both_orders, pair, session
from tests.libraries.test_library import adapter

_CALL = "static void call(void *o, const commutant_value *a, commutant_result *r) { (void)o; (void)a; (void)r; }\n"
_LISTED = '{"call()", call},'
_INCLUDED = ("string", "fcntl", "errno", "signal", "sys/socket", "sys/syscall")
_HEADERS = "".join(f"#include <{name}.h>\n" for name in _INCLUDED)


def _records(folder: Path, body: str) -> list[WindowRecord]:
    """What came of a call with this body in two windows, and then of one that does no harm."""
    calls = {"harm": body, "nothing": "commutant_number(r, 0);"}
    head = "(void *o, const commutant_value *a, commutant_result *r) { (void)o; (void)a; (void)r; "
    code = _HEADERS + "".join(f"static void {name}{head}{body} }}\n" for name, body in calls.items())
    listed = "".join(f'{{"{name}()", {name}}}, ' for name in calls)
    with session(adapter(folder, listed, code)) as running:
        records = list(running.run(both_orders(pair("harm"), pair("nothing"))))
    assert [(record.wrong, record.crashed) for record in records[2:]] == [(None, None)] * 2
    return records[:2]


def test_memory_that_is_taken_without_end_ends_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spending, "MEMORY_LIMIT_BYTES", 1 << 29)
    # The kernel fills it, sooner than the program's own stores would, which are recorded.
    body = 'for (int zero = open("/dev/zero", O_RDONLY);;) if (read(zero, malloc(1 << 26), 1 << 26) < 0) abort();'
    for record in _records(tmp_path, body):
        assert "of memory" in (record.crashed or "")


def test_threads_without_end_end_the_program(tmp_path: Path) -> None:
    body = """static pthread_t t; pthread_attr_t small;
    pthread_attr_init(&small); pthread_attr_setstacksize(&small, 1 << 16);
    for (;;) if (pthread_create(&t, &small, (void *(*)(void *))(void *)pause, 0)) usleep(1000);"""
    for record in _records(tmp_path, body):
        assert "threads" in (record.crashed or "")


def test_processes_files_sockets_and_signals_are_refused(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("kept")
    tries = (
        "fork() < 0",
        "syscall(SYS_fork) < 0 && errno == EPERM",
        'system("true") != 0',
        "socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == EPERM",
        f'open("{kept}", O_WRONLY) < 0',
        f'open("{tmp_path}/made", O_CREAT | O_WRONLY, 0600) < 0',
        f'unlink("{kept}") < 0',
        "kill(getppid(), 0) < 0 && errno == EPERM",
        "kill(-1, 0) < 0 && errno == EPERM",
    )
    body = " ".join(
        f"if (!({one})) {{ commutant_number(r, {number}); return; }}" for number, one in enumerate(tries, 1)
    )
    for record in _records(tmp_path, body + " commutant_number(r, 0);"):
        assert (record.wrong, record.crashed) == (None, None)
    assert kept.read_text() == "kept"
    assert not (tmp_path / "made").exists()


def test_an_adapter_that_does_harm_when_it_is_loaded_does_none(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("kept")
    code = (
        _HEADERS
        + f'''__attribute__((constructor)) static void harm(void) {{
        unlink("{kept}"); if (fork() >= 0 || open("{kept}", O_TRUNC | O_WRONLY) >= 0) abort(); }}'''
    )
    with session(adapter(tmp_path, _LISTED, code + _CALL)):
        pass
    assert kept.read_text() == "kept"


def test_an_adapter_that_takes_memory_without_end_when_it_is_loaded_is_refused(tmp_path: Path) -> None:
    body = "for (;;) { char *p = malloc(1 << 28); if (!p) abort(); memset(p, 1, 1 << 20); }"
    code = f"{_HEADERS}__attribute__((constructor)) static void greedy(void) {{ {body} }}\n"
    target = load_target(f"library:path={adapter(tmp_path, _LISTED, code + _CALL)}")
    with pytest.raises(UsageError, match="loading it ended the program"):
        target.implements("call", ())


def test_users_are_told_where_nothing_confines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = load_target(f"library:path={adapter(tmp_path, _LISTED, _CALL)}")
    assert "limits" not in target.describe() or not confinement_layers() & {"namespaces", "landlock"}
    monkeypatch.setattr("commutant.targets.process.target.confinement_layers", lambda: frozenset({"seccomp"}))
    assert "neither user namespaces nor Landlock" in str(target.describe()["limits"])
