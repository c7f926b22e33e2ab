"""What `make test-programs` makes of what programs and suites print."""

from __future__ import annotations

import programs


def test_results_of_suites_are_found_by_test() -> None:
    printed = (
        "test_a (test.test_os.X.test_a) ... ok\ntest_b (test.test_os.X.test_b)\nDoc. ... skipped 'no'\n"
        "test_c (test.test_os.X.test_c) ... warning: x\nok\ntest_d (test.test_os.X.test_d) ... FAIL\n"
    )
    ends = {name.split()[0]: how for name, how in programs.unittest_results(printed).items()}
    assert ends == {"test_a": "ok", "test_b": "skipped", "test_c": "ok", "test_d": "FAIL"}
    printed = "unlink::a::b      ok\nchown::c    FAILED\n\tassertion failed\nmkdir    skipped\n"
    assert programs.pjdfstest_results(printed) == {"unlink::a::b": "ok", "chown::c": "FAILED", "mkdir": "skipped"}


def test_differences_are_those_of_what_passes_on_tmpfs() -> None:
    listed = {program.name: program for program in programs.programs()}
    assert len(listed) >= 14
    suite, plain = listed["pjdfstest"], listed["tar"]
    assert programs.differences(suite, "a ok\nb FAILED\n", "a FAILED\nb ok\n") == ["a passes on tmpfs, here FAILED"]
    assert programs.differences(suite, "a ok\n", "") == ["a passes on tmpfs, here not"]
    assert programs.differences(suite, "error\n", "error\n")[0].startswith("expected results of tests on tmpfs")
    assert programs.differences(plain, "a\nb\n", "a\nc\n") == ["expected 'b', got 'c'"]
    assert programs.differences(plain, "a\n", "a\n") == []


def test_what_is_not_installed_is_missed() -> None:
    program = programs.Program("p", ("sh", "no-such-program", "python3:no_such_module"), "p", "true")
    assert programs.missing(program) == ["no-such-program", "python3:no_such_module"]
