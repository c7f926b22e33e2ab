"""Corpus files: what is written is read back, everything else is refused in one line."""

from __future__ import annotations

import copy
import dataclasses
import gzip
import json
import os
import random
from pathlib import Path

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from commutant.corpus import file as corpus_module
from commutant.corpus import reading
from commutant.corpus.equal_objects import EqualObjects
from commutant.corpus.file import Corpus, looks_like_corpus, read_corpus, select_tests, write_corpus
from commutant.corpus.reading import TestReader
from commutant.corpus.testcase import (
    ExpectedOutcome,
    Order,
    PlacedCall,
    SetupStep,
    Step,
    TestCase,
    encode,
    id_of,
    read_test,
)
from commutant.corpus.untested import Untested
from commutant.corpus.values import Malformed
from commutant.lang import load_interface
from commutant.support.errors import RunError, UsageError
from commutant.testgen import generate
from tests.campaign.fakes import make_corpus, make_test

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schemas/corpus.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

identifiers = st.one_of(
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True),
    st.sampled_from(["calls", "call", "setup", "observe", "orders", "order", "outcomes", "results", "observation"]),
)
names = st.text(st.characters(categories=["L", "N", "P"], exclude_characters="/"), min_size=1, max_size=8).filter(
    lambda text: text not in (".", "..")
)
integers = st.integers(-(2**63), 2**64 - 1)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    integers,
    st.sampled_from(["ENOENT", "EEXIST"]).map(lambda name: {"errno": name}),
    st.builds(lambda sort, number: {"sort": sort, "id": number}, identifiers, st.integers(0, 9)),
    st.integers(0, 99).map(lambda time: {"time": time}),
    st.just({"signal": "SIGSEGV"}),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.dictionaries(identifiers, inner, max_size=3).map(lambda fields: {"struct": fields}),
        st.lists(inner, max_size=3).map(lambda items: {"seq": items}),
    ),
    max_leaves=4,
)
arguments = st.dictionaries(identifiers, values | names, max_size=3)


@st.composite
def cases(draw):
    count = draw(st.integers(1, 3))
    observe = draw(st.lists(st.builds(Step, identifiers, arguments, st.integers(0, 3)), max_size=2))
    outcome = st.builds(
        ExpectedOutcome,
        st.lists(values, min_size=count, max_size=count).map(tuple),
        st.lists(values, min_size=len(observe), max_size=len(observe)).map(tuple),
    )
    orders = draw(st.permutations([order.order for order in make_test(calls="abc"[:count]).orders]))
    test = TestCase(
        id="",
        level=draw(st.sampled_from(["path", "conflict", "full"])),
        path=draw(st.integers(0, 2**40)),
        equivalence_class=draw(names),
        calls=tuple(
            PlacedCall(draw(identifiers), draw(arguments), draw(st.integers(0, 3)), draw(st.integers(0, 3)), core)
            for core in range(count)
        ),
        setup=tuple(
            draw(st.lists(st.builds(SetupStep, identifiers, arguments, st.integers(0, 3), values), max_size=2))
        ),
        observe=tuple(observe),
        orders=tuple(Order(order, tuple(draw(st.lists(outcome, min_size=1, max_size=2)))) for order in orders),
    )
    return structs.replace(test, id=test.content_id())


@settings(
    max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)
@given(tests=st.lists(cases(), max_size=4, unique_by=lambda test: test.id), without=st.integers(0, 3))
def test_what_is_written_is_read_back(tests, without, tmp_path):
    untested = {"link-rename": (Untested("", without, ""),)} if without else {}
    corpus = Corpus("names", "conflict", "0123abcd", tests, untested)
    path = tmp_path / "corpus.jsonl.gz"
    write_corpus(corpus, path)
    assert read_corpus(path) == corpus
    for line in gzip.decompress(path.read_bytes()).splitlines():
        VALIDATOR.validate(json.loads(line))


def read_in_one_piece(line):
    try:
        return read_test(TestReader().decode(line), line)
    except (ValueError, RecursionError) as error:
        return str(error)


def read_in_parts(reader, line):
    try:
        return reader.read(line)
    except (ValueError, RecursionError) as error:
        return str(error)


def line_of(test):
    return encode(test.to_json()).encode()


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(tests=st.lists(cases(), min_size=1, max_size=2), seed=st.integers(0, 2**32))
def test_parts_of_a_line_give_what_the_line_gives_in_one_piece(tests, seed):
    """Of whole lines, and of lines in which text was moved about with the id made to fit."""
    reader = TestReader()
    generator = random.Random(seed)
    marks = [
        ',"setup":[',
        ',"observe":[',
        ',"orders":[',
        '{"call":',
        '{"order":',
        '{"results":',
        '"observation":',
        "},",
    ]
    for test in tests:
        line = line_of(test)
        assert reader.read(line) == reader.read(line + b"\n") == test
        for _ in range(20):
            text = line.decode()
            start = text.index('"calls":')
            for _ in range(generator.randrange(1, 3)):
                place = generator.choice([text.rfind(mark, start) for mark in marks]) + generator.randrange(9)
                piece = generator.choice([*marks, "", " ", "]", "}", "[]", "[0,1]", "\\", '"', "1.5", "é"])
                text = text[: max(start, place)] + piece + text[max(start, place) + generator.randrange(12) :]
            content = b"{" + text[start:].encode()
            bad = text.replace(test.id, id_of(test.set_name, content)).encode()
            assert read_in_parts(reader, bad) == read_in_one_piece(bad)


def test_what_is_generated_is_read_in_parts(monkeypatch):
    """Reading each line in one piece took 0.2 ms a test."""
    monkeypatch.setattr(reading, "read_test", None)
    reader = TestReader()
    for test in generate(load_interface("posix18"), ["link", "rename"], level="path").tests:
        assert reader.read(line_of(test)) == test
    for count in (1, 2, 3):
        test = make_test(calls="abc"[:count])
        assert reader.read(line_of(test)) == test


def test_what_is_kept_for_other_lines_is_bounded(monkeypatch):
    monkeypatch.setattr(reading, "MAX_KEPT_CHARACTERS", 0)
    reader = TestReader()
    tests = [make_test(number) for number in (1, 2, 1)]
    assert [reader.read(line_of(test)) for test in tests] == tests


def test_equal_corpora_give_equal_bytes(tmp_path):
    for name in ("one", "other"):
        write_corpus(make_corpus(5), tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "other"]


def test_packed_by_set_or_by_test_a_corpus_is_the_same_file(tmp_path):
    """What `generate` packs in its workers is what packing its tests one by one gives."""
    corpus = generate(load_interface("names"), ["link", "stat", "unlink"])
    write_corpus(corpus, tmp_path / "packed")
    write_corpus(dataclasses.replace(corpus, tests=list(corpus.tests)), tmp_path / "listed")
    assert (tmp_path / "packed").read_bytes() == (tmp_path / "listed").read_bytes()
    assert (tmp_path / "packed").read_bytes().count(b"\x1f\x8b\x08\0\0\0\0\0") == 1 + len(corpus.tests.per_set)


def test_what_was_read_is_copied_as_it_stands_and_what_was_selected_is_not(tmp_path):
    path = write_lines(tmp_path / "corpus", with_header(tests=2), *[make_test(number).to_json() for number in range(2)])
    corpus = read_corpus(path)
    write_corpus(corpus, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == path.read_bytes()
    other = dataclasses.replace(corpus, level="full")
    write_corpus(other, tmp_path / "other")
    assert read_corpus(tmp_path / "other") == other
    selected = dataclasses.replace(corpus, tests=select_tests(corpus.tests, ["link", "rename"])[:1])
    write_corpus(selected, tmp_path / "selected")
    assert read_corpus(tmp_path / "selected") == selected != corpus


def write_lines(path, *lines):
    with gzip.open(path, "wb") as file:
        for line in lines:
            file.write(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n")
    return path


HEADER = {"schema_version": 1, "kind": "corpus", "interface": "names", "level": "conflict", "model": "ab", "tests": 1}
TEST = json.loads(encode(make_test(1).to_json()))


def refused(path):
    with pytest.raises(UsageError) as caught:
        read_corpus(path)
    message = str(caught.value)
    assert "\n" not in message and len(message) < 400
    assert message.startswith(str(path))
    return message


def with_header(**changes):
    header = {**HEADER, **changes}
    return {key: value for key, value in header.items() if value is not ...}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], "line 1: empty file"),
        ([b"\n"], "line 1: not JSON"),
        ([[]], "line 1: expected the header"),
        ([with_header(kind="run")], "line 1: expected the header"),
        ([with_header(schema_version=2)], "line 1: schema_version: this version of commutant reads 1, got 2"),
        ([with_header(schema_version=True)], "line 1: schema_version"),
        ([with_header(model=...)], "the key 'model' is missing"),
        ([with_header(extra=1)], "the key 'extra' is not known"),
        ([with_header(level="all")], "level: expected one of path, cover, conflict, full, got 'all'"),
        ([with_header(interface="")], "interface: expected the name"),
        ([with_header(interface="a\nb")], "interface: expected a printable text"),
        ([with_header(tests=10**9)], "tests: expected an integer from 0 to 1000000"),
        ([with_header(tests=-1)], "tests: expected an integer"),
        ([HEADER], "the file ends after 0 of the 1 test"),
        ([HEADER, TEST, make_test(2).to_json()], "line 3: more tests than the 1"),
        ([with_header(tests=2), TEST, TEST], "line 3: the test link-rename-"),
        ([HEADER, b'{"id": 1.5}\n'], "line 2: not JSON (numbers are integers, got 1.5)"),
        ([HEADER, b'{"id": NaN}\n'], "line 2: not JSON (numbers are integers, got NaN)"),
        ([HEADER, b'{"id": ' + b"9" * 10_000 + b"}\n"], "line 2: not JSON"),
        ([HEADER, b"[" * 100_000 + b"\n"], "line 2: not JSON"),
        ([HEADER, b'{"id": "\xff"}\n'], "line 2: not JSON"),
        ([HEADER, b"a" * 2_000_000], "line 2: a line longer than 1048576 bytes"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else None,
)
def test_a_bad_file_is_refused_with_the_line(tmp_path, lines, expected):
    assert expected in refused(write_lines(tmp_path / "c.jsonl.gz", *lines))


def change(raw, path, value):
    """A copy of a JSON value with the item at `path` replaced, or removed by `...`."""
    raw = copy.deepcopy(raw)
    place = raw
    for key in path[:-1]:
        place = place[key]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return raw


def deep(depth):
    return {"seq": [deep(depth - 1)]} if depth else 0


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (["id"], "link-rename-000000000000", "id: the content gives link-rename-"),
        (["id"], ..., "the key 'id' is missing"),
        (["extra"], 1, "the key 'extra' is not known"),
        (["level"], ["path"], "level: expected one of"),
        (["path"], "3", "path: expected an integer"),
        (["class"], "a\x1b[2J", "class: expected a printable text"),
        (["class"], "x" * 5000, "class: expected a printable text"),
        (["calls"], [], "line 2: calls: expected a list of 1 to 6 items, got 0 items"),
        (["calls", 1, "core"], 0, "calls[1].core: call 1 runs on core 1, got 0"),
        (["calls", 1, "core"], True, "calls[1].core: call 1 runs on core 1, got True"),
        (["calls", 0, "process"], 16, "calls[0].process: expected an integer from 0 to 15, got 16"),
        (["calls", 0, "thread"], None, "calls[0].thread"),
        (["calls", 0, "call"], "rm -rf", "calls[0].call: expected a name of letters"),
        (["calls", 0, "args"], [], "calls[0].args: expected an object"),
        (["calls", 0, "args", "name"], "a/b", "calls[0].args.name: expected a name of 1 to 255 printable bytes"),
        (["calls", 0, "args", "name"], "..", "calls[0].args.name"),
        (["calls", 0, "args", "name"], "", "calls[0].args.name"),
        (["calls", 0, "args", "name"], "a\0b", "calls[0].args.name"),
        (["calls", 0, "args", "name"], "a\nb", "calls[0].args.name"),
        (["calls", 0, "args", "name"], "\ud800", "calls[0].args.name"),
        (["calls", 0, "args", "name"], "é" * 128, "calls[0].args.name"),
        (["calls", 0, "args", "name"], "x" * 10_000, "calls[0].args.name"),
        (["calls", 0, "args", "name"], 2**64, "calls[0].args.name: expected an integer of 64 bits"),
        (["calls", 0, "args", "name"], {"seq": [{"time": "x"}]}, "calls[0].args.name.time: expected an integer"),
        (["calls", 0, "args", "name"], {"what": 1}, "expected an errno, signal, sort, time, struct or seq"),
        (["calls", 0, "args", "name"], {}, "expected an errno, signal, sort, time, struct or seq"),
        (["calls", 0, "args", "name"], deep(9), "calls[0].args.name: expected a value"),
        (["setup", 0, "result"], "a/b", "setup[0]: expected a name of 1 to"),
        (["setup", 0, "result"], {"errno": "oops"}, "setup[0].errno: expected the name of an error"),
        (["setup", 0, "result"], {"signal": "KILL"}, "setup[0].signal: expected the name of a signal"),
        (["setup"], [TEST["setup"][0]] * 257, "setup: expected a list of 0 to 256 items, got 257 items"),
        (["observe", 0, "result"], 0, "observe[0]: the key 'result' is not known"),
        (["orders", 1], ..., "orders: expected a list of 2 items, got 1 items"),
        (["orders", 1, "order"], [0, 1], "orders[1].order: expected each of the 2 orders once"),
        (["orders", 1, "order"], [0, 0], "orders[1].order: expected each of the 2 orders once"),
        (["orders", 1, "order"], [0, 2], "orders[1].order: expected an integer from 0 to 1, got 2"),
        (["orders", 0, "outcomes"], [], "orders[0].outcomes: expected a list of 1 to 1024 items"),
        (["orders", 0, "outcomes", 0, "results"], [0], "orders[0].results: expected a list of 2 items, got 1 items"),
        (
            ["orders", 0, "outcomes", 0, "observation"],
            [],
            "orders[0].observation: expected a list of 1 items, got 0 items",
        ),
        (["orders", 0, "outcomes", 0, "results", 0], "..", "orders[0]: expected a name of 1 to"),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_a_bad_test_is_refused_with_the_place(tmp_path, path, value, expected):
    message = refused(write_lines(tmp_path / "c.jsonl.gz", HEADER, change(TEST, path, value)))
    assert ", line 2: " in message
    assert expected in message


def test_a_bad_test_written_as_generate_writes_is_refused_too(tmp_path):
    """Parts of such a line are read apart; a first order without outcomes was taken for one that had been read."""
    bad = change(TEST, ["orders", 0, "outcomes"], [])
    path = tmp_path / "c.jsonl.gz"
    path.write_bytes(gzip.compress(f"{encode(HEADER)}\n{encode(bad)}\n".encode()))
    assert "line 2: orders[0].outcomes: expected a list of 1 to 1024 items" in refused(path)


def test_the_published_schema_refuses_what_the_reader_refuses():
    """Changes of a test that a schema can see at all (ids and permutations it cannot) are refused by both."""
    for path, value in (
        (["calls", 0, "process"], 16),
        (["calls", 0, "call"], "rm -rf"),
        (["calls", 0, "args", "name"], "a/b"),
        (["calls", 0, "args", "name"], {"what": 1}),
        (["observe", 0, "result"], 0),
        (["orders", 0, "outcomes"], []),
        (["extra"], 1),
        (["level"], "all"),
    ):
        bad = change(TEST, path, value)
        with pytest.raises(jsonschema.ValidationError):
            VALIDATOR.validate(bad)
        with pytest.raises(Malformed):
            read_test(bad)
    VALIDATOR.validate(TEST)
    VALIDATOR.validate(HEADER)


def test_limits_hold_for_files_that_unpack_to_much(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus_module, "MAX_TOTAL_BYTES", 10_000)
    path = tmp_path / "bomb.jsonl.gz"
    write_corpus(make_corpus(100), path)
    assert "more than 10000 bytes when unpacked" in refused(path)


def test_a_file_that_is_too_large_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus_module, "MAX_FILE_BYTES", 100)
    path = tmp_path / "large.jsonl.gz"
    write_corpus(make_corpus(100), path)
    with pytest.raises(UsageError, match=f"cannot read the corpus {path}: expected at most 100 bytes"):
        read_corpus(path)


def test_a_line_of_a_gigabyte_of_zeros_is_not_unpacked(tmp_path):
    path = tmp_path / "bomb.jsonl.gz"
    block = gzip.compress(b"\0" * (1 << 20))
    path.write_bytes(block * 1024)
    assert path.stat().st_size < 2 << 20
    assert "line 1: a line longer than" in refused(path)


def test_files_that_are_no_corpus(tmp_path):
    plain = tmp_path / "plain.jsonl"
    plain.write_text("{}\n")
    assert "line 1: not a gzip file" in refused(plain)
    with pytest.raises(UsageError, match=r"cannot read the corpus .*missing"):
        read_corpus(tmp_path / "missing")
    with pytest.raises(UsageError, match=r"cannot read the corpus|damaged"):
        read_corpus(tmp_path)


def test_what_is_no_regular_file_is_not_waited_for(tmp_path):
    """Opening a named pipe that no one writes to waits forever, and a device never ends."""
    pipe = tmp_path / "pipe.jsonl.gz"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        with pytest.raises(UsageError, match=f"cannot read the corpus {path}: not a regular file"):
            read_corpus(path)
    other = tmp_path / "pipe"
    os.mkfifo(other)
    assert not looks_like_corpus(other)


def test_a_corpus_of_another_version_is_called_so(tmp_path):
    """Its ids may have been made otherwise."""
    bad = change(TEST, ["id"], "link-rename-000000000000")
    assert "or another version of commutant made it; make it again" in refused(write_lines(tmp_path / "c", HEADER, bad))
    assert "make the corpus again" in refused(write_lines(tmp_path / "d", with_header(schema_version=0)))


def test_a_truncated_corpus_is_refused_at_every_length(tmp_path):
    whole = tmp_path / "whole"
    write_corpus(make_corpus(3), whole)
    content = whole.read_bytes()
    path = tmp_path / "cut.jsonl.gz"
    for length in range(len(content)):
        path.write_bytes(content[:length])
        refused(path)


def test_random_damage_is_refused_or_harmless(tmp_path):
    whole = tmp_path / "whole"
    corpus = make_corpus(3)
    write_corpus(corpus, whole)
    generator = random.Random(20)
    path = tmp_path / "damaged.jsonl.gz"
    refusals = 0
    for _ in range(300):
        content = bytearray(whole.read_bytes())
        for _ in range(generator.randrange(1, 4)):
            content[generator.randrange(len(content))] = generator.randrange(256)
        path.write_bytes(content)
        try:
            assert read_corpus(path) == corpus  # only gzip's own header (time, system) may differ without harm
        except UsageError as error:
            assert "\n" not in str(error)
            refusals += 1
    assert refusals > 200


def test_random_damage_inside_the_lines_is_refused_or_read(tmp_path):
    whole = tmp_path / "whole"
    write_corpus(make_corpus(2), whole)
    text = gzip.decompress(whole.read_bytes())
    generator = random.Random(21)
    path = tmp_path / "damaged.jsonl.gz"
    for _ in range(400):
        content = bytearray(text)
        place = generator.randrange(len(content))
        content[place : place + generator.randrange(3)] = generator.randbytes(generator.randrange(3))
        path.write_bytes(gzip.compress(bytes(content), 1))
        try:
            read_corpus(path)
        except UsageError as error:
            assert "\n" not in str(error)


def test_a_corpus_that_cannot_be_written_leaves_nothing(tmp_path):
    with pytest.raises(RunError, match=r"cannot write the corpus"):
        write_corpus(make_corpus(1), tmp_path / "missing" / "corpus.jsonl.gz")
    broken = make_corpus(1)
    broken.tests.append(None)
    with pytest.raises(AttributeError):
        write_corpus(broken, tmp_path / "corpus.jsonl.gz")
    assert list(tmp_path.iterdir()) == []


def test_what_looks_like_a_corpus(tmp_path):
    corpus = tmp_path / "anything"
    write_corpus(make_corpus(1), corpus)
    assert looks_like_corpus(corpus)
    assert looks_like_corpus(Path("missing.jsonl.gz"))
    assert not looks_like_corpus(Path("names"))
    assert not looks_like_corpus(tmp_path)
    assert not looks_like_corpus(Path("a\0b"))


def test_selecting_calls():
    tests = [make_test(0, calls) for calls in (("a", "b"), ("b", "a"), ("a", "a"), ("a", "c"), ("a", "b", "c"))]
    ids = [[test.set_name for test in select_tests(tests, calls)] for calls in (["a", "b"], ["a", "b", "c"], ["a"])]
    assert ids == [["a-b", "b-a"], ["a-b", "b-a", "a-a", "a-c", "a-b-c"], ["a-a"]]


def test_reading_leaves_the_garbage_collector_as_it_was(tmp_path):
    import gc

    path = tmp_path / "c"
    write_corpus(make_corpus(1), path)
    read_corpus(path)
    assert gc.isenabled()
    refused(write_lines(tmp_path / "bad", []))
    assert gc.isenabled()


def test_equal_objects_of_a_corpus_are_one_in_memory(tmp_path):
    """Else 100,000 tests take a gigabyte."""
    path = tmp_path / "corpus.jsonl.gz"
    write_corpus(make_corpus(6), path)
    corpus = read_corpus(path)
    assert corpus == make_corpus(6)
    observed = [
        item for test in corpus.tests for order in test.orders for o in order.outcomes for item in o.observation
    ]
    assert len(observed) == 12
    assert len(set(map(id, observed))) == 1


def test_equal_parts_of_tests_are_one_object(tmp_path):
    """Who makes something of a set-up, or of all orders, does it once for each (`commutant.support.identity_cache`)."""
    path = tmp_path / "corpus.jsonl.gz"
    tests = generate(load_interface("posix18"), ["link", "rename"], level="path").tests
    write_corpus(Corpus("posix18", "path", "0123abcd", tests), path)
    read = read_corpus(path).tests
    for part in ("calls", "setup", "observe", "orders"):
        parts = [getattr(test, part) for test in read]
        assert len(set(map(id, parts))) == len(set(map(repr, parts))) < len(parts)


def test_equal_numbers_of_different_types_stay_different():
    equal = EqualObjects()
    one, true = equal.one([("errno", 1)]), equal.one([("errno", True)])
    assert type(one["errno"]) is int and type(true["errno"]) is bool
    inner, other = equal.one([("a", one)]), equal.one([("a", true)])
    assert inner is equal.one([("a", one)]) and inner is not other
    lists = [equal.one([("seq", items)]) for items in ([one, 1], [one, 1], [true, 1], [one, True], [], [[1]])]
    assert lists[0] is lists[1] and len(set(map(id, lists))) == 5
    assert equal.one([("orders", [one])]) is not equal.one([("orders", [one])])


@pytest.mark.parametrize("as_written", [True, False], ids=["as generate writes", "with spaces"])
def test_tests_that_have_nothing_in_common_are_refused_before_they_fill_the_memory(tmp_path, monkeypatch, as_written):
    """A file of 8 MB, each of its tests with a thousand outcomes of its own, took 1.8 GB."""
    lines = []
    for number in range(20):
        test = make_test(1)
        outcomes = tuple(ExpectedOutcome((0, 0), ({"time": 1000 * number + other},)) for other in range(50))
        orders = tuple(structs.replace(order, outcomes=outcomes) for order in test.orders)
        raw = structs.replace(test, orders=orders).to_json()
        content = encode({key: raw[key] for key in ("calls", "setup", "observe", "orders")})
        raw["id"] = id_of(test.set_name, content.encode())
        lines.append((encode(raw) if as_written else json.dumps(raw)).encode() + b"\n")
    path = write_lines(tmp_path / "c.jsonl.gz", with_header(tests=20), *lines)
    assert len(read_corpus(path).tests) == 20
    monkeypatch.setattr(reading, "MAX_NEW_CHARACTERS", 12_000)
    assert "more than 12,000 characters that no test before it has" in refused(path)
    alike = write_lines(tmp_path / "alike.jsonl.gz", HEADER, lines[0])
    assert len(read_corpus(alike).tests) == 1
