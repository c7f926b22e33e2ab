"""Lines of verdicts.jsonl: written once, read back by number, refused in one line when damaged."""

from __future__ import annotations

import contextlib
import copy
import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commutant.campaign.verdict import Outcome, Verdict
from commutant.mtrace import (
    Access,
    CourseAccess,
    Finding,
    LineField,
    ObjectCourse,
    Picture,
    PictureLine,
    Touched,
    WindowCourse,
    pack_course,
)
from commutant.runs.directory import RunWriter, load_run, new_directory
from commutant.runs.lines import LineReader, LineWriter
from commutant.support.errors import UsageError
from tests.campaign.fakes import make_corpus, make_finding
from tests.campaign.test_rundir import SCHEMAS, info

VALIDATOR = jsonschema.Draft202012Validator(json.loads((SCHEMAS / "verdict.schema.json").read_text()))

names = st.text(max_size=8)
ranges = st.integers(0, 63).flatmap(lambda offset: st.tuples(st.just(offset), st.integers(1, 64 - offset)))
several = st.lists(ranges, max_size=3).map(tuple)
fields = st.lists(st.builds(lambda place, name: LineField(*place, name), ranges, names), max_size=3).map(tuple)
touched = st.lists(st.builds(Touched, st.integers(0, 63), several, several), max_size=3).map(tuple)
lines = st.builds(PictureLine, st.integers(-64, 2**64 - 1), fields, touched)
pictures = st.builds(Picture, names, st.lists(lines, min_size=1, max_size=3).map(tuple))

INODE = Picture("struct inode", (PictureLine(64, (LineField(0, 8, "struct inode.i_nlink"),), ()),))
DENTRY = Picture("struct dentry", (PictureLine(0, (), (Touched(0, (), ((8, 4),)), Touched(1, ((8, 4),), ()))),))


accesses = st.builds(
    Access,
    core=st.integers(0, 64),
    write=st.booleans(),
    offset=st.integers(0, 63),
    size_bytes=st.integers(1, 64),
    function=names,
    stack=st.lists(names, max_size=3).map(tuple),
)
findings = st.builds(
    Finding,
    line_address=st.integers(0, 2**64 - 1),
    object=names,
    field=names,
    sharing=st.sampled_from(["true", "false"]),
    first=accesses,
    second=accesses,
    fields=fields,
    touched=touched,
    under=names,
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def courses(draw: st.DrawFn, shown: list[Picture]) -> WindowCourse:
    """What was done to some of these objects, in order."""
    access = st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 3), st.integers(0, 63)).map(
        lambda one: CourseAccess(one[0], 0, one[1], one[2], 64 - one[2])
    )
    line = st.tuples(*[st.lists(access, max_size=3).map(sorted) for _ in range(2)]).map(
        lambda cores: pack_course(one._replace(core=core) for core, made in enumerate(cores) for one in made)
    )
    objects = draw(st.lists(st.sampled_from(shown), max_size=3))
    met = tuple(ObjectCourse(one, tuple(draw(line) for _ in one.lines)) for one in objects)
    return WindowCourse(draw(st.tuples(st.integers(1, 9), st.integers(1, 9))), met)


@st.composite
def verdicts(draw: st.DrawFn) -> Verdict:
    """A verdict with findings if its outcome has any, and pictures for all of them or none."""
    outcome = draw(st.sampled_from(Outcome))
    some = outcome in (Outcome.CONFLICTING, Outcome.UNSTABLE)
    found = draw(st.lists(findings, min_size=1, max_size=3)) if some else []
    shown = st.lists(pictures, min_size=1, max_size=2).map(tuple)
    drawn = draw(st.just(()) | st.tuples(*[shown for _ in found]))
    collision = outcome is Outcome.CONFLICTING and draw(st.booleans())
    met = [picture for each in drawn for picture in each]
    made = draw(st.just(()) | st.tuples(*[st.none() | courses(met) for _ in range(2)])) if met else ()
    return Verdict("t", outcome, tuple(found), 7, {"timer": 2}, draw(names), collision, drawn, made)


def read_lines(lines: list[bytes]) -> tuple[LineReader, list[Verdict]]:
    reader = LineReader()
    taken = [reader.take(line) for line in lines]
    return reader, [record[0] for record in taken if isinstance(record, tuple)]


@settings(max_examples=40)
@given(judged=st.lists(verdicts(), max_size=4))
def test_verdicts_survive_a_file_and_what_they_share_stands_in_it_once(judged: list[Verdict]) -> None:
    writer = LineWriter()
    lines = [line for verdict in judged for line in writer.lines(verdict, 1.0)[0].splitlines()]
    for line in lines:
        VALIDATOR.validate(json.loads(line))
    reader, again = read_lines(lines)
    assert again == judged
    for shared in (reader.findings, reader.pictures, reader.fields, reader.courses):
        assert len(set(shared)) == len(shared)
    other = LineWriter(reader.findings, reader.pictures, reader.fields, reader.courses)
    for verdict in copy.deepcopy(judged):
        assert len(other.lines(verdict, 1.0)[0].splitlines()) == 1


@settings(max_examples=60)
@given(verdict=verdicts(), data=st.data())
def test_a_line_with_one_value_replaced_is_read_or_refused_but_never_crashes(
    verdict: Verdict, data: st.DataObject
) -> None:
    documents = [json.loads(line) for line in LineWriter().lines(verdict, 1.0)[0].splitlines()]
    place: object = documents[data.draw(st.integers(0, len(documents) - 1))]
    while True:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        inner = place[key]
        if isinstance(inner, dict | list) and inner and data.draw(st.booleans()):
            place = inner
            continue
        place[key] = data.draw(json_values)
        break
    with contextlib.suppress(ValueError):
        read_lines([json.dumps(document).encode() for document in documents])


def test_a_run_keeps_pictures_and_goes_on_with_its_numbers(tmp_path: Path) -> None:
    corpus, path = make_corpus(3), new_directory(tmp_path / "run", "")
    found = (make_finding("a"), make_finding("b"))
    verdicts = [
        Verdict(corpus.tests[0].id, Outcome.CONFLICTING, found, 6, pictures=((INODE,), (DENTRY, INODE))),
        Verdict(corpus.tests[1].id, Outcome.CONFLICTING, found[:1], 6, pictures=((DENTRY,),)),
        Verdict(corpus.tests[2].id, Outcome.UNSTABLE, found[:1], 6),  # as runs of earlier versions have it
    ]
    with RunWriter.create(path, info(tests=3), corpus) as writer:
        for verdict in verdicts[:1]:
            writer.append(verdict, 1.0)
    with RunWriter.resume(load_run(path)) as writer:
        for verdict in verdicts[1:]:
            writer.append(verdict, 2.0)
    assert list(load_run(path).verdicts()) == verdicts
    text = (path / "verdicts.jsonl").read_text()
    assert text.count('"holder":') == 2
    for line in text.splitlines():
        VALIDATOR.validate(json.loads(line))
    (path / "verdicts.jsonl").write_text(text.replace('"pictures":[[0],', '"pictures":[[7],'))
    with pytest.raises(UsageError, match="pictures names one that does not stand before it"):
        list(load_run(path).verdicts())
