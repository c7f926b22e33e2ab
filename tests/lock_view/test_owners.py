"""A lock is named by the function that takes it and gives it back, whatever functions it has around its locks."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from commutant.lock_view import LockStudy, record_program, study

ROUNDS = 200

LIBRARY = """
#include <pthread.h>
#include <stdlib.h>
static void enter(pthread_mutex_t *mutex) { if (pthread_mutex_lock(mutex)) abort(); }
void wrap_lock(pthread_mutex_t *mutex) { enter(mutex); }
void wrap_unlock(pthread_mutex_t *mutex) { if (pthread_mutex_unlock(mutex)) abort(); }
static pthread_mutex_t own_lock = PTHREAD_MUTEX_INITIALIZER, common_lock = PTHREAD_MUTEX_INITIALIZER;
static void add(pthread_mutex_t *mutex, long *numbers) {
    wrap_lock(mutex);
    for (int i = 0; i < 32; i++) numbers[i]++;
    wrap_unlock(mutex);
}
void use_own(long *numbers) { add(&own_lock, numbers); __asm__(""); }
void use_common(long *numbers) {
    wrap_lock(&common_lock);
    for (int i = 0; i < 32; i++) numbers[i]++;
    wrap_unlock(&common_lock);
}
"""

PROGRAM = """
#include <pthread.h>
void use_own(long *), use_common(long *);
static long own[3][64], common[64];
static void *work(void *which) {
    for (int i = 0; i < 200; i++) { use_own(own[(long)which]); use_common(common); }
    return 0;
}
int main(void) {
    pthread_t threads[3];
    for (long i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
}
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> LockStudy:
    folder = tmp_path_factory.mktemp("owners")
    (folder / "library.c").write_text(LIBRARY)
    (folder / "program.c").write_text(PROGRAM)
    library, program = folder / "libwrap.so", folder / "program"
    compile_it = ["cc", "-O1", "-fno-optimize-sibling-calls", "-pthread"]
    subprocess.run([*compile_it, "-shared", "-fPIC", "-s", folder / "library.c", "-o", library], check=True)
    subprocess.run([*compile_it, folder / "program.c", library, "-o", program], check=True)
    run = record_program((str(Path(program)),), timeout_seconds=300.0)
    assert (run.exit_code, run.timed_out) == (0, False)
    return study(run.records[0])


def test_locks_behind_a_librarys_own_lock_function_are_told_apart(result: LockStudy) -> None:
    of_library = {one.name: one for one in result.classes if one.acquired == 3 * ROUNDS}
    assert len(of_library) == 2 and "lock of use_common" in of_library
    common = of_library.pop("lock of use_common")
    (own,) = of_library.values()
    assert (common.instances, own.instances) == (1, 1)
    assert (common.independence_percent(), own.independence_percent()) == (0.0, 100.0)
    assert "wrap" not in own.name, "named by what takes the lock and gives it back"


def test_callers_are_what_gives_a_lock_back_too(result: LockStudy) -> None:
    (common,) = [one for one in result.classes if one.name == "lock of use_common"]
    assert [caller.name for caller in common.callers] == ["use_common"]
