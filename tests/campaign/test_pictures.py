"""Pictures: kept by the judge for each finding, written once, read back by number, refused in one line when damaged."""

from __future__ import annotations

import contextlib
import copy
import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commutant.campaign.verdict import Judge, Outcome, Verdict
from commutant.mtrace import LineField, Picture, PictureLine, Touched
from commutant.runs.directory import RunWriter, load_run, new_directory
from commutant.runs.pictures import PictureNumbers, PicturesRead
from commutant.support.errors import UsageError
from commutant.targets.base import Job, WindowRecord
from tests.campaign.fakes import make_corpus, make_finding, make_test
from tests.campaign.test_rundir import SCHEMAS, info

names = st.text(max_size=8)
ranges = st.integers(0, 63).flatmap(lambda offset: st.tuples(st.just(offset), st.integers(1, 64 - offset)))
several = st.lists(ranges, max_size=3).map(tuple)
fields = st.lists(st.builds(lambda place, name: LineField(*place, name), ranges, names), max_size=3).map(tuple)
touched = st.lists(st.builds(Touched, st.integers(0, 63), several, several), max_size=3).map(tuple)
lines = st.builds(PictureLine, st.integers(-64, 2**64 - 1), fields, touched)
pictures = st.builds(Picture, names, st.lists(lines, min_size=1, max_size=3).map(tuple))

INODE = Picture("struct inode", (PictureLine(64, (LineField(0, 8, "struct inode.i_nlink"),), ()),))
DENTRY = Picture("struct dentry", (PictureLine(0, (), (Touched(0, (), ((8, 4),)), Touched(1, ((8, 4),), ()))),))


def read_lines(documents: list[dict[str, object]]) -> PicturesRead:
    read = PicturesRead()
    for document in documents:
        assert read.take(json.loads(json.dumps(document)))
    return read


@given(drawn=st.lists(st.lists(pictures, min_size=1, max_size=2), max_size=4))
def test_pictures_survive_a_file_and_stand_in_it_once(drawn: list[list[Picture]]) -> None:
    schema = json.loads((SCHEMAS / "verdict.schema.json").read_text())
    numbers = PictureNumbers()
    given_numbers = numbers.of(drawn)
    documents = numbers.take_new()
    for document in documents:
        if all(line[0] >= 0 for line in document.get("picture", {}).get("lines", ())):
            jsonschema.validate(document, schema)
    assert numbers.of(copy.deepcopy(drawn)) == given_numbers
    assert numbers.take_new() == []
    read = read_lines(documents)
    assert [[read.pictures[number] for number in one] for one in given_numbers] == drawn
    assert len(set(read.pictures)) == len(read.pictures)
    again = PictureNumbers(read.pictures, read.fields)
    assert again.of(drawn) == given_numbers
    assert again.take_new() == []


@given(data=st.data())
def test_a_line_with_one_value_replaced_is_read_or_refused_but_never_crashes(data: st.DataObject) -> None:
    numbers = PictureNumbers()
    numbers.of([[INODE, DENTRY]])
    documents = json.loads(json.dumps(numbers.take_new()))
    place = documents
    while True:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        inner = place[key]
        if isinstance(inner, dict | list) and inner and data.draw(st.booleans()):
            place = inner
            continue
        place[key] = data.draw(st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.just([]))
        break
    read = PicturesRead()
    with contextlib.suppress(KeyError, TypeError, ValueError):
        for document in documents:
            if type(document) is dict:
                read.take(document)


def test_the_judge_keeps_what_the_first_window_of_each_order_showed() -> None:
    test, finding = make_test(), make_finding()
    shows = [[INODE], [DENTRY], [DENTRY, INODE], [DENTRY], [INODE], [INODE]]  # orders take turns
    judge = Judge(test)
    for window, drawn in enumerate(shows):
        found = (finding,) * len(drawn)
        judge.add(WindowRecord(Job(test, window % 2), found, pictures=tuple(drawn)))
    assert judge.verdict is not None
    assert judge.verdict.pictures == ((INODE, DENTRY),)


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
    schema = json.loads((SCHEMAS / "verdict.schema.json").read_text())
    for line in text.splitlines():
        jsonschema.validate(json.loads(line), schema)
    (path / "verdicts.jsonl").write_text(text.replace('"pictures":[[0],', '"pictures":[[7],'))
    with pytest.raises(UsageError, match="pictures names one that does not stand before it"):
        list(load_run(path).verdicts())
