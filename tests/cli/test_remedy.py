"""`commutant remedy` and `commutant prove`: what is printed, and what is refused in one line."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import jsonschema
import pytest
from msgspec import structs

from commutant.campaign import KeyRate
from commutant.campaign.summary import Tally
from commutant.campaign.verdict import Outcome, Verdict
from commutant.mtrace import (
    AccessKind,
    CourseAccess,
    LineField,
    ObjectCourse,
    Picture,
    PictureLine,
    Touched,
    WindowCourse,
    pack_course,
)
from commutant.runs.directory import RunWriter, new_directory
from tests.campaign.fakes import make_corpus, make_finding
from tests.campaign.test_rundir import info

SCHEMAS = Path(__file__).parents[2] / "docs/schemas"
CORPUS = make_corpus(6)
FIELDS = (
    LineField(0, 8, "struct cred.user_ns"),
    LineField(8, 4, "struct cred.non_rcu"),
    LineField(16, 8, "struct cred.uid"),
)
USER_NS, NON_RCU, UID = (0, 8), (8, 4), (16, 8)


def picture(read: tuple[int, int], written: tuple[int, int]) -> Picture:
    touched = (Touched(0, (), (written,)), Touched(1, (read,), ()))
    return Picture("struct cred", (PictureLine(64, FIELDS, touched),))


def found(name: str, shown: Picture | None) -> Verdict:
    finding = structs.replace(make_finding(name), object="struct cred", sharing="false", fields=FIELDS if shown else ())
    return Verdict("", Outcome.CONFLICTING, (finding,), 6, pictures=((shown,),) if shown else ())


FREE = Verdict("", Outcome.CONFLICT_FREE, windows=2)
BASE = [found("non_rcu | user_ns", picture(USER_NS, NON_RCU))] * 3 + [found("uid", picture(UID, UID))] + [FREE] * 2
BETTER = [FREE] * 3 + BASE[3:]


def make_run(path: Path, verdicts: Sequence[Verdict], keys: tuple[KeyRate, ...] = ()) -> None:
    new_directory(path, "")
    with RunWriter.create(path, info(tests=len(CORPUS.tests)), CORPUS) as writer:
        tally = Tally(CORPUS.tests)
        for test, verdict in zip(CORPUS.tests, verdicts, strict=True):
            named = dataclasses.replace(verdict, test_id=test.id)
            writer.append(named, 1.0)
            tally.add(test, named)
        writer.finish(tally.summary("names", "fake", "conflict", 1.0, 1.0, keys))


@pytest.fixture
def runs(folder):
    make_run(Path("base"), BASE)
    make_run(Path("better"), BETTER)
    make_run(Path("clean"), [FREE] * 6)
    make_run(Path("old"), [found("a", None)] * 6)


def one_line(answer) -> str:
    (line,) = answer.stderr.splitlines()
    return line


def document(answer, name: str):
    assert answer.stderr == ""
    value = json.loads(answer.stdout)
    jsonschema.validate(value, json.loads((SCHEMAS / f"{name}.schema.json").read_text()))
    return value


def test_changes_are_ranked(commutant, runs):
    answer = commutant("remedy", "base")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "4 of 6 tests not conflict-free" in answer.stdout
    assert "move cred.non_rcu to a line of its own" in answer.stdout
    assert answer.stdout.endswith(
        "  commutant check base --target fake -o NEW\n  commutant prove base NEW --move cred.non_rcu\n"
    )
    value = document(commutant("remedy", "base", "--format", "json"), "remedy")
    assert value["changes"][0]["changes"] == [{"way": "move", "place": "cred.non_rcu"}]
    assert (value["changes"][0]["freed"], value["bytes_per_test"]) == (3, True)


def test_a_change_of_ones_own_is_foretold(commutant, runs):
    answer = commutant("remedy", "base", "--drop-write", "struct cred.non_rcu", "--move", "cred.uid")
    assert "frees 3 of 4 tests" in answer.stdout
    value = document(commutant("remedy", "base", "--drop", "cred", "--format", "json"), "remedy")
    assert (value["changes"][0]["freed"], value["changes"][0]["left"]) == (4, [])


def test_what_frees_nothing_is_said_in_words(commutant, runs):
    answer = commutant("remedy", "base", "--drop-write", "cred.user_ns")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "this change would free none of 4 tests that are not conflict-free" in answer.stdout
    lock = (8, 4)
    line = PictureLine(64, (LineField(8, 4, "struct cred.lock"),), (Touched(0, (), (lock,)), Touched(1, (), (lock,))))
    make_run(Path("lock"), [found("lock", Picture("struct cred", (line,)))] * 6)
    answer = commutant("remedy", "lock")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout == "6 of 6 tests not conflict-free; no change of a single place would free any of them\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("base", "--move", "cred.non_rc"), "no shared line of the run has this place; did you mean cred.non_rcu"),
        (("base", "--move", "non_rcu"), "expected TYPE.FIELD"),
        (("base", "--drop", ""), "expected TYPE.FIELD or a variable"),
        (("clean",), "every judged test is conflict-free"),
        (("old",), "does not say which bytes were touched"),
        (("nowhere",), "nowhere"),
    ],
)
def test_what_cannot_be_foretold_is_refused_in_one_line(commutant, runs, arguments, said):
    answer = commutant("remedy", *arguments)
    assert answer.returncode == 2
    assert said in one_line(answer)


def test_a_change_is_proved(commutant, runs):
    value = document(commutant("prove", "base", "better", "--move", "cred.non_rcu", "--format", "json"), "prove")
    assert (value["holds"], value["foretold"], value["freed_as_foretold"]) == (True, 3, 3)
    assert (value["not_conflict_free"], value["appeared"], value["worse_of_base"]) == ([4, 1], [], None)
    text = commutant("prove", "base", "better", "--move", "cred.non_rcu").stdout
    assert "as predicted: 3 of 3, besides: 0" in text
    assert "new: nothing above the noise floor" in text


def test_what_is_left_is_told_with_its_variable(commutant, runs):
    text = commutant("prove", "base", "base", "--move", "cred.non_rcu").stdout
    assert "predicted but left: 3, by struct cred.non_rcu | user_ns (3)" in text


def test_the_evidence_for_a_message_shows_the_line(commutant, runs):
    answer = commutant("prove", "base", "better", "--format", "commit")
    assert answer.stdout.isascii()
    assert "72   4  cred.non_rcu" in answer.stdout
    assert answer.stdout.split("  cred.non_rcu", 1)[1].splitlines()[0].endswith("CPU 0 writes")
    assert "not conflict-free: 4 before, 1 after" in answer.stdout


def test_loops_go_to_a_new_folder(commutant, runs):
    answer = commutant("prove", "base", "better", "--format", "c")
    assert answer.returncode == 2
    assert "expected one NEW, and -o FOLDER" in one_line(answer)
    answer = commutant("prove", "base", "better", "--format", "c", "-o", "loops")
    assert answer.returncode == 2
    assert "no C form for link-rename, open-open; there is nothing to repeat" in one_line(answer)
    assert not Path("loops").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("base", "better", "--drop-write", "cred.user_ns"), "predicted to free no test"),
        (("base", "other"), "expected runs of one corpus"),
        (("base", "better", "--again", "other"), "expected runs of one corpus"),
        (("base", "nowhere"), "nowhere"),
    ],
)
def test_what_cannot_be_proved_is_refused_in_one_line(commutant, runs, arguments, said):
    make_run(Path("other"), [FREE] * 6)
    path = Path("other/run.json")
    path.write_text(path.read_text().replace("0123abcd", "89abcdef"))
    answer = commutant("prove", *arguments)
    assert answer.returncode == 2
    assert said in one_line(answer)


@pytest.mark.parametrize(
    ("target", "kernel", "said"),
    [
        ("linux:fs=ramfs,kernel=own", "6.1.192-own", "expected targets that differ in what is changed alone"),
        ("scalefs:seed=2", "6.1.192-own", "expected targets that differ in what is changed alone"),
        ("linux:kernel=own", "6.12.3", "expected one kernel with and without a change"),
    ],
)
def test_runs_that_differ_in_more_than_the_change_are_refused(commutant, runs, target, kernel, said):
    for name, place, release in (("base", "linux", "6.1.0-56-amd64"), ("better", target, kernel)):
        path = Path(name, "run.json")
        text = path.read_text().replace('"target": "fake"', f'"target": "{place}"')
        path.write_text(text.replace('"kernel": "none"', f'"kernel": "{release}"'))
    answer = commutant("prove", "base", "better")
    assert answer.returncode == 2
    assert said in one_line(answer)


@pytest.mark.parametrize(
    ("facts", "code", "said"),
    [
        ({"config_sha256": "b"}, 2, "are of kernels that differ in configuration: expected one kernel"),
        ({"compiler": "gcc 14", "source_sha256": "c"}, 2, "differ in sources and compiler"),
        ({"patches": [{"title": "cred: look first"}]}, 0, ""),
        (None, 0, "base is of no kernel that `commutant kernel build` made"),
    ],
)
def test_kernels_that_differ_in_more_than_patches_are_told(commutant, runs, facts, code, said):
    plain = {"source_sha256": "a", "config_sha256": "a", "compiler": "gcc 12", "patches": []}
    for name, build in (("base", None if facts is None else plain), ("better", {**plain, **(facts or {})})):
        path = Path(name, "run.json")
        value = json.loads(path.read_text())
        value["target_description"] |= {"kernel": "6.1.192"} | ({"kernel_build": build} if build else {})
        path.write_text(json.dumps(value))
    answer = commutant("prove", "base", "better")
    assert answer.returncode == code
    assert said in answer.stderr and len(answer.stderr.splitlines()) == bool(said)


def test_another_order_of_the_tests_is_told(commutant, runs):
    path = Path("better/run.json")
    path.write_text(path.read_text().replace('"seed": 7', '"seed": 8'))
    answer = commutant("prove", "base", "better")
    assert answer.returncode == 0
    assert "better has seed 8, base 7: their tests ran in another order" in one_line(answer)


def test_the_patches_of_a_kernel_stand_in_the_evidence(commutant, runs):
    path = Path("better/run.json")
    build = '"kernel": "6.1.192", "kernel_build": {"patches": [{"title": "cred: look first"}]}'
    path.write_text(path.read_text().replace('"kernel": "none"', build))
    assert (
        "after on Linux 6.1.192 with 'cred: look first':"
        in commutant("prove", "base", "better", "--format", "commit").stdout
    )


def test_the_page_says_what_changes_are_worth(commutant, runs):
    assert commutant("report", "base", "--format", "html").returncode == 0
    page = Path("base/report.html").read_text()
    assert "move cred.non_rcu to a line of its own: frees 3" in page
    assert commutant("report", "old", "--format", "html").returncode == 0


def test_what_parts_keys_is_told_beside_what_frees_tests(commutant, runs):
    """That two keys fall to one line is no test's fault, so no change that frees tests would say it."""
    keys = tuple(KeyRate(name, "false", 20, 2560, 123) for name in ("shards[].lock", "hits"))
    said = "for some keys, in 4.8 % of 2,560 windows with keys of their own, of 20 tests: spread the entries of shards"
    make_run(Path("keys"), BASE, keys)
    listed = [line for line in commutant("remedy", "keys").stdout.splitlines() if "for some keys" in line]
    assert listed == [f"{said}, each on a line of its own"]
    make_run(Path("free"), [FREE] * 6, keys)
    assert said in one_line(commutant("remedy", "free"))


def test_bit_fields_are_not_told_apart(commutant, folder):
    shared = picture(USER_NS, NON_RCU)
    line = structs.replace(shared.lines[0], fields=(*FIELDS, LineField(12, 1, "struct cred.first..last")))
    make_run(Path("bits"), [found("non_rcu | user_ns", structs.replace(shared, lines=(line,)))] * 6)
    answer = commutant("remedy", "bits", "--move", "cred.last")
    assert answer.returncode == 2
    assert "lies in the same bytes as other fields (cred.first..last), as bit fields do" in one_line(answer)


def test_a_union_moves_as_a_whole(commutant, folder):
    line = structs.replace(
        picture(USER_NS, NON_RCU).lines[0], fields=(*FIELDS[:1], LineField(8, 4, "struct cred.u.alias"), FIELDS[2])
    )
    shown = structs.replace(picture(USER_NS, NON_RCU), lines=(line,))
    make_run(Path("union"), [found("u.alias | user_ns", shown)] * 6)
    assert "frees 6 of 6 tests" in commutant("remedy", "union", "--move", "cred.u").stdout
    answer = commutant("remedy", "union", "--move", "cred.u.rcu")
    assert answer.returncode == 2
    assert "no shared line of the run has this place; did you mean cred.u, " in one_line(answer)


def test_a_lock_in_a_line_that_only_one_core_touched_is_no_change_to_rank(commutant, folder):
    own = PictureLine(128, (LineField(0, 4, "struct cred.lock"),), (Touched(0, (), ((0, 4),)),))
    shared = picture(NON_RCU, NON_RCU)
    make_run(Path("own"), [found("non_rcu", structs.replace(shared, lines=(*shared.lines, own)))] * 6)
    answer = commutant("remedy", "own")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "lock" not in answer.stdout


def test_the_text_says_beside_each_hint_what_changes_are_worth(commutant, runs):
    text = commutant("report", "base", "--first").stdout
    assert text.index("Separate the fields") < text.index("move cred.non_rcu to a line of its own: frees 3")
    assert "move cred.non_rcu to a line of its own: frees 3" in commutant("report", "base").stdout.partition("Worth")[0]
    without = commutant("report", "old")
    assert (without.returncode, "frees" in without.stdout) == (0, False)


def test_a_check_of_what_shared_a_variable_runs_those_tests_alone(commutant, runs):
    fake = ("--target", "fake:outcome=clean", "--format", "json")
    some = commutant("check", "--of", "base", "--sharing", "cred.non_rcu", *fake, "-o", "some")
    assert (some.returncode, json.loads(some.stdout)["tests"]) == (0, 3)
    more = commutant("check", "--of", "base", "--sharing", "struct cred.u*", "--sample", "2", *fake, "-o", "more")
    assert json.loads(more.stdout)["tests"] == 5  # all four that share `uid` or `user_ns`, and one of the other two
    proof = document(commutant("prove", "base", "some", "--move", "cred.non_rcu", "--format", "json"), "prove")
    assert (proof["tests"], proof["freed_as_foretold"]) == (3, 3)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--of", "base", "--sharing", "dentry.*"), "no test shared a variable named 'dentry.*'"),
        (("--of", "base"), "--of RUN needs --sharing PATTERN"),
        (("names", "--of", "base", "--sharing", "cred.*"), "or --of RUN instead"),
        ((), "expected an interface or a corpus"),
        (("names", "--sharing", "cred.*"), "goes with --of RUN"),
        (("--of", "base", "--sharing", "cred.*", "--size", "3"), "--size cannot be given"),
    ],
)
def test_a_choice_of_tests_that_cannot_be_made_is_refused(commutant, runs, arguments, said):
    answer = commutant("check", *arguments, "--target", "fake:outcome=clean")
    assert answer.returncode == 2
    assert said in one_line(answer)


def test_the_worth_of_a_change_stands_beside_its_hint(commutant, runs):
    shown = commutant("show", CORPUS.tests[0].id, "--from", "base").stdout
    assert "In this run: move cred.non_rcu to a line of its own: frees 3" in shown
    assert "In this run" not in commutant("show", CORPUS.tests[0].id, "--from", "old").stdout
    listed = commutant("report", "base").stdout
    assert "move cred.non_rcu to a line of its own: frees 3" in listed.split("Worth most")[1]
    assert "Worth most" not in commutant("report", "clean").stdout


def test_a_history_tells_what_came_and_went(commutant, runs):
    value = document(commutant("history", "base", "better", "clean", "--format", "json"), "history")
    assert [run["not_conflict_free"] for run in value["runs"]] == [4, 1, 0]
    assert value["causes"][0] == {
        "name": "struct cred.non_rcu | struct cred.user_ns",
        "tests": [3, 0, 0],
        "fate": "went",
    }
    answer = commutant("history", "clean", "base")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "came" in answer.stdout and "6 tests in all runs" in answer.stdout
    assert "two runs or more" in one_line(commutant("history", "base"))


LIMIT_READ = [CourseAccess(at, 1, AccessKind.READ, 0, 8) for at in (10, 40)]
WRITES = [CourseAccess(at, 0, AccessKind.UPDATE, 8, 4) for at in (20, 60)]
BOTH_WRITE = [CourseAccess(at, 1, AccessKind.UPDATE, 8, 4) for at in (30, 70)]


def met(drawn: Picture, accesses: Sequence[CourseAccess]) -> tuple[WindowCourse | None, ...]:
    return (WindowCourse((100, 100), (ObjectCourse(drawn, (pack_course(accesses),)),)), None)


@pytest.fixture
def counted(folder):
    """A run in which nothing but sharing of a count remains if it moves: `user_ns` is read next to it."""
    drawn = picture(NON_RCU, NON_RCU)
    touched = (Touched(0, (NON_RCU,), (NON_RCU,)), Touched(1, (NON_RCU, USER_NS), (NON_RCU,)))
    drawn = structs.replace(drawn, lines=(structs.replace(drawn.lines[0], touched=touched),))
    verdict = dataclasses.replace(
        found("non_rcu", drawn),
        courses=met(drawn, sorted([*WRITES, *LIMIT_READ, *BOTH_WRITE], key=lambda one: (one.core, one.position))),
    )
    make_run(Path("counted"), [verdict] * 4 + [FREE] * 2)


def test_transfers_are_ranked_where_no_test_is_freed(commutant, counted) -> None:
    answer = commutant("remedy", "counted", "--by", "transfers", "--cores", "2")
    assert answer.returncode == 0
    lines = [line for line in answer.stdout.splitlines() if "move cred.non_rcu to a line of its own" in line]
    assert lines
    assert "away from user_ns" in answer.stdout
    listed = json.loads(commutant("remedy", "counted", "--by", "transfers", "--format", "json").stdout)
    schema = json.loads((SCHEMAS / "remedy.schema.json").read_text())
    jsonschema.validate(listed, schema)
    first = listed["layouts"][0]
    assert first["changes"] == [{"way": "move", "place": "cred.non_rcu"}]
    assert first["freed"] == 0
    assert 0 < first["share"]["plain"] < 1
    asked = json.loads(
        commutant("remedy", "counted", "--by", "transfers", "--move", "cred.non_rcu", "--format", "json").stdout
    )
    assert asked["requested"][0]["share"] == first["share"]
    plain = commutant("remedy", "counted", "--move", "cred.non_rcu")
    assert "would free none" in plain.stdout
    assert "but saves" in plain.stdout


def test_what_cannot_be_counted_in_transfers_is_refused_in_one_line(commutant, runs, counted) -> None:
    old = commutant("remedy", "old", "--by", "transfers")
    assert (old.returncode, "does not say which bytes" in one_line(old)) == (2, True)
    assert one_line(old).endswith("make it again with `commutant check old --target fake`")
    base = commutant("remedy", "base", "--by", "transfers")
    assert "does not say in which order lines were touched" in one_line(base)
    assert one_line(base).endswith("make it again with `commutant check base --target fake`")
    for mix, message in [
        ("chmod=1", "no test of the run whose calls all succeed makes 'chmod'"),
        ("open=0", "sums to nothing"),
        ("open=-1", "no negative number"),
        ("open", "expected CALL=NUMBER"),
    ]:
        answer = commutant("remedy", "counted", "--by", "transfers", "--mix", mix)
        assert answer.returncode == 2
        assert message in one_line(answer)
    assert "is a matter of --by transfers" in one_line(commutant("remedy", "counted", "--mix", "open=1"))
    parted = commutant("remedy", "counted", "--by", "transfers", "--part", "cred.uid,file.f_count")
    assert "lies in 2 types" in one_line(parted)


def test_a_field_across_a_border_of_lines_is_said_in_one_line(commutant, folder) -> None:
    ends = {64: (60, 4), 128: (0, 4)}
    beside = {64: LineField(0, 8, "struct cred.user_ns"), 128: LineField(8, 8, "struct cred.uid")}
    lines = tuple(
        PictureLine(
            at,
            tuple(sorted((LineField(*end, "struct cred.long"), beside[at]), key=lambda one: one.offset)),
            (Touched(0, (), (end,)), Touched(1, (end,), ())),
        )
        for at, end in ends.items()
    )
    courses = tuple(
        pack_course([CourseAccess(10, 0, AccessKind.UPDATE, *end), CourseAccess(20, 1, AccessKind.READ, *end)])
        for end in ends.values()
    )
    drawn = Picture("struct cred", lines)
    verdict = dataclasses.replace(
        found("long", drawn), courses=(WindowCourse((100, 100), (ObjectCourse(drawn, courses),)), None)
    )
    make_run(Path("straddles"), [verdict] * 4 + [FREE] * 2)
    answer = commutant("remedy", "straddles", "--by", "transfers", "--move", "cred.long")
    assert answer.returncode == 0
    assert "cred.long lies across a border of lines: moved to one of its own, it takes one alone" in one_line(answer)
