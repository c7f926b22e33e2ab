"""Bad models: one clear line each, with file and line where there is one, and nothing left behind."""

from __future__ import annotations

import re
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from commutant.analyzer import CallSet, analyze
from commutant.guard import faults
from commutant.lang import load_interface
from commutant.support.errors import UsageError
from commutant.testgen import generate
from commutant.testgen.classes import classes

PREAMBLE = """\
from __future__ import annotations
import os
import random
import subprocess
import time
from os import kill
from random import randint
from threading import Thread
from typing import Annotated
from commutant.lang import (
    Capacity, Errno, Interface, Map, Range, Seq, Sort, Struct, call, choose, invoke, unused, well_formed
)

class Name(Sort):
    pass

class Inum(Sort, opaque=True):
    pass

class Inode(Struct):
    nlink: int

"""
FIRST = PREAMBLE.count("\n") + 1
"""The line on which the model's own text begins."""

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_model(body: str) -> Path:
        path = tmp_path / "model.py"
        path.write_text(PREAMBLE + textwrap.dedent(body).lstrip("\n"))
        return path

    return write_model


def fault(path: Path, work: Callable[..., object] = analyze) -> str:
    """The one line that the model ends in, without the folder's name."""
    with pytest.raises(UsageError) as caught:
        work(load_interface(str(path)))
    text = str(caught.value)
    assert "\n" not in text
    return text.replace(f"{path.parent}/", "")


IN_A_CALL = {
    "raises": ('raise ValueError("too\\n late")', r"raised ValueError: too late"),
    "raises nothing to say": ("raise LookupError", r"raised LookupError: no message"),
    "exits": ("raise SystemExit(3)", r"raised SystemExit: 3"),
    "ends the process": ("getattr(os, '_exit')(0)", r"raised SystemExit: os\._exit\(0\): expected a model that leaves"),
    "ends as generators do": ("raise GeneratorExit", r"raised GeneratorExit: no message"),
    "raises what cannot be told": (
        "raise type('Mute', (ValueError,), {'__str__': lambda self: 1 // 0})",
        r"raised Mute: \(its text cannot be made\)",
    ),
    "fails an assertion": ("assert name != name", r"raised AssertionError: no message"),
    "attribute missing": ("return self.inodes", r"raised AttributeError: .*'inodes'.* \(annotate every attribute"),
    "key missing in a new map": (
        "del self.names[name]; return self.names[name]",
        r"raised KeyError: .*names has no such key.* \(test with `in`",
    ),
    "undeclared attribute": ("self.last = name", r"self.last was assigned and is no part of the state: annotate"),
    "attribute deleted": ("del self.names", r"self.names was deleted: expected every attribute of the state to stay"),
    "attribute of another type": ("self.count = name", r"self.count has type int, and was assigned <Name \d+>"),
    "new map for a map": ("self.names = Map()", r"self.names has type Map\[Name, Inum\], and was assigned .*clear\(\)"),
    "value of another type": ("self.names[name] = 5", r"names has values of type Inum, got 5"),
    "value of another sort": ("self.names[name] = name", r"names has values of type Inum, got <Name \d+>"),
    "key of another sort": (
        "return self.names[name] in self.names",
        r"names has keys of type Name, got <Inum",
    ),
    "key that is a string": ("return 'etc' in self.names", r"names has keys of type Name, got 'etc'"),
    "sorts compared": (
        "return self.names[name] == name",
        r"a Inum was compared with a Name: values of different sorts never meet",
    ),
    "sort as truth": ("return 0 if name else 1", r"a Name was used as a truth value: compare it instead"),
    "key of a dict": ("return 0 if {name: 1} else 1", r"an unknown value was used as a key of a Python dict or set"),
    "member of a set": ("return len({self.count})", r"an unknown value was used as a key of a Python dict or set"),
    "iterates over a map": ("for other in self.names: pass", r"names: a map of unknown size was iterated over"),
    "values of a map": ("return list(self.names.values())", r"names: a map of unknown size was iterated over"),
    "product of unknowns": ("return self.count * self.count", r"two unknown integers were multiplied"),
    "range of an unknown": (
        "return len(range(self.count))",
        r"an unknown integer was used where Python needs a number",
    ),
    "order with a string": ("return self.count < 'x'", r"an unknown integer was compared with 'x'"),
    "impossible result": ("return 'done'", r"returned str 'done': expected an Errno, a number, a bool, a value"),
    "float result": ("return 1.5", r"returned float 1\.5: expected"),
    "map as result": ("return self.names", r"returned a map of the state: expected"),
    "mixed sequence": ("return [1, True]", r"returned a sequence of several kinds: expected"),
    "generator": ("yield 1", r"returned generator .*: expected"),
    "two kinds": ("return 0 if name in self.names else True", r"returns an int on one path and a bool on another"),
    "struct or int": ("return Inode() if name in self.names else 0", r"returns a Inode on one path and an int on"),
    "nothing or int": ("return self.names.pop(name, None)", r"returns a Inum on one path and nothing on another"),
    "recursion": ("return self.touch_it(name)", r"recurses without bound: expected calls that end"),
    "loop that decides": (
        "while self.count != 0: self.count -= 1",
        r"more than \d+ decisions on one path.*loop without",
    ),
    "is": ("return 0 if name is self.other else 1", r"`is` compares identities, .*: expected == or !="),
    "is not": ("return 0 if self.flag is not True else 1", r"`is` compares identities"),
    "random module": (
        "return random.randint(0, 1)",
        r"random\.randint comes from random, so the model is not",
    ),
    "random function": ("return randint(0, 1)", r"randint comes from random, so the model is not deterministic"),
    "clock": ("return int(time.time())", r"time\.time comes from time, so the model is not deterministic"),
    # As would os._exit, which ended the command without a line.
    "signal": ("os.kill(0, 0)", r"os\.kill acts outside of the model: expected calls that only work out their result"),
    "signal by name": ("kill(0, 0)", r"kill acts outside of the model: expected calls that only work out their result"),
    # Its traceback stood between the lines of the result.
    "thread": ("Thread(target=self.fail).start()", r"Thread acts outside of the model"),
    "process": ("subprocess.run(['true'])", r"subprocess\.run acts outside of the model"),
    "struct field unknown": ("self.count = Inode(links=1).nlink", r"raised TypeError: Inode has no field 'links'"),
    "choice of a map": ("return choose(Map[Name, Inum])", r"choose\(\) cannot choose a map"),
    "unused number": ("return unused(int)", r"raised AssertionError: unused\(\) takes a Sort"),
}


@pytest.mark.parametrize("statement, expected", IN_A_CALL.values(), ids=IN_A_CALL.keys())
def test_a_call_that_cannot_be_analysed(write: Write, statement: str, expected: str) -> None:
    path = write(
        f"""
        class Model(Interface):
            names: Map[Name, Inum]
            other: Name
            count: int
            flag: bool

            @call
            def touch_it(self, name: Name):
                {statement}
        """
    )
    message = fault(path)
    match = re.match(r"model\.py:(\d+): (?:Model\.touch_it:? )?(.*)", message)
    assert match, message
    assert int(match[1]) in (FIRST + 6, FIRST + 8), message
    assert re.search(expected, match[2]), message


LOADING = {
    "unannotated parameter": (
        "@call\n    def f(self, x): pass",
        r"model\.py:\d+: Model\.f, parameter 'x': expected a type annotation, got none",
    ),
    "star arguments": (
        "@call\n    def f(self, *x: int): pass",
        r"model\.py:\d+: Model\.f, parameter 'x': .*not \*args",
    ),
    "unknown annotation": (
        "@call\n    def f(self, x: str): pass",
        r"model\.py:\d+: Model\.f, parameter 'x': expected bool, int, .* got the annotation str",
    ),
    "name that is not defined": ("@call\n    def f(self, x: Nme): pass", r"an annotation cannot be resolved: .*'Nme'"),
    "map as argument": ("@call\n    def f(self, x: Map[Name, Inum]): pass", r"parameter 'x': a call takes no Map"),
    "float in the state": (
        "x: float\n    @call\n    def f(self): pass",
        r"Model\.x: expected bool, .*annotation float",
    ),
    "list in the state": (
        "x: list[int]\n    @call\n    def f(self): pass",
        r"Model\.x: expected bool, .*got the annota",
    ),
    "struct as a key": (
        "x: Map[Inode, int]\n    @call\n    def f(self): pass",
        r"Model\.x: a map's key is a sort, an int, a bool or a tuple of these",
    ),
    "name of the base class": ("@call\n    def setup(self): pass", r"model\.py:\d+: Model\.setup: this name is taken"),
    "static call": (
        "@call\n    @staticmethod\n    def f(x: int): pass",
        r"Model\.f: expected a plain method marked with @call",
    ),
    "no calls": ("def f(self): pass", r"model\.py: Model has no method marked with @call"),
}


@pytest.mark.parametrize("body, expected", LOADING.values(), ids=LOADING.keys())
def test_a_class_that_cannot_be_loaded(write: Write, body: str, expected: str) -> None:
    path = write(f"class Model(Interface):\n    {body}\n")
    message = fault(path)
    assert re.search(expected, message), message


FILES = {
    "syntax error": ("class Model(Interface)\n    pass\n", r"model\.py:\d+: the model cannot be loaded: SyntaxError"),
    "raises on import": ("raise OSError('no')", rf"model\.py:{FIRST}: the model cannot be loaded: OSError: no"),
    "exits on import": ("raise SystemExit", rf"model\.py:{FIRST}: the model cannot be loaded: SystemExit"),
    "ends the process on import": ("os._exit(0)", r"the model cannot be loaded: SystemExit: os\._exit\(0\): expected"),
    "no class": ("x = 1", r"model\.py: expected one model in the file, or :Class after it; found none"),
    "two classes": (
        "class One(Interface):\n    pass\nclass Two(Interface):\n    pass\n",
        r"model\.py: expected one model in the file, or :Class after it; found One, Two",
    ),
    "struct in itself": (
        "class Node(Struct):\n    next: Node\nclass Model(Interface):\n    node: Node\n    @call\n    def f(self): 0\n",
        r"Node\.next: Node contains itself: expected a type that does not",
    ),
    "field with a default": (
        "class S(Struct):\n    x: int = 3\nclass Model(Interface):\n    s: S\n    @call\n    def f(self): pass\n",
        r"S\.x: a field has no default: expected the annotation alone",
    ),
}


@pytest.mark.parametrize("body, expected", FILES.values(), ids=FILES.keys())
def test_a_file_that_cannot_be_loaded(write: Write, body: str, expected: str) -> None:
    path = write(body)
    message = fault(path)
    assert re.search(expected, message), message


def test_what_is_not_there(tmp_path: Path, write: Write) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.py: expected a Python file with a model, found no such file"):
        load_interface(str(tmp_path / "nowhere.py"))
    path = write("class Model(Interface):\n    @call\n    def f(self): pass\n")
    with pytest.raises(UsageError, match=r"expected a class 'Other' derived from Interface; found Model"):
        load_interface(f"{path}:Other")
    with pytest.raises(UsageError, match=r"expected a class 'Name' derived from Interface"):
        load_interface(f"{path}:Name")
    with pytest.raises(UsageError, match=r"unknown interface 'nmes': expected one of .*names.*FILE\.py"):
        load_interface("nmes")
    with pytest.raises(UsageError, match=r"module 'no\.such' cannot be imported"):
        load_interface("no.such:Model")
    with pytest.raises(UsageError, match=r"names has no call 'opn'; it has open, link"):
        analyze(load_interface("names"), ["opn"])
    with pytest.raises(UsageError, match=r"expected a set size of at least 1, got 0"):
        analyze(load_interface("names"), size=0)


def test_a_loop_that_decides_nothing(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "SECONDS_PER_PATH", 0.2)
    path = write("class Model(Interface):\n    @call\n    def f(self):\n        while True: pass\n")
    assert re.match(rf"model\.py:{FIRST + 3}: Model\.f: f, f ran for 0\.2 s without returning: expected", fault(path))


def test_who_does_not_get_the_processor_has_more_time(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "SECONDS_PER_PATH", 0.05)
    monkeypatch.setattr(faults, "_PATIENCE", 8)
    monkeypatch.setattr(faults.time, "process_time", lambda: 1.0)
    path = write("class Model(Interface):\n    @call\n    def f(self):\n        while True: pass\n")
    begun = time.monotonic()
    assert "without returning" in fault(path)
    assert time.monotonic() - begun > 7 * 0.05


def test_each_class_of_a_path_has_the_time_of_a_path() -> None:
    model = load_interface("names")
    before = faults._begun.paths
    count = sum(1 for _ in classes(CallSet(model, ("rename", "rename")), "cover"))
    explored = faults._begun.paths - before
    generate(model, ["rename"], level="cover")
    assert faults._begun.paths - before >= 2 * explored + count


def test_a_condition_that_nothing_satisfies(write: Write) -> None:
    path = write(
        """
        class Model(Interface):
            names: Map[Name, Inum]

            @well_formed("names")
            def never(self, name: Name, inum: Inum):
                return name != name

            @call
            def f(self, name: Name):
                return self.names[name]
        """
    )
    expected = "Model.never: no initial state is well-formed for f, f: expected @well_formed conditions that some state"
    assert re.search(rf"model\.py:\d+: {re.escape(expected)}", fault(path))
    assert fault(path, generate) == fault(path)


@pytest.mark.parametrize("method", ["equivalent(self, other)", "touch(self, arguments)"])
def test_other_methods_of_a_model_that_raise(write: Write, method: str) -> None:
    path = write(
        f"""
        class Model(Interface):
            count: int

            @call
            def f(self, name: Name):
                self.count += 1

            def {method}:
                raise ValueError("no")
        """
    )
    name = method.partition("(")[0]
    assert fault(path) == f"model.py:{FIRST + 8}: Model.{name} raised ValueError: no"


def test_well_formedness_of_what_is_no_map(write: Write) -> None:
    path = write(
        """
        class Model(Interface):
            count: int

            @well_formed("count")
            def positive(self, key, value):
                return value > 0

            @call
            def f(self):
                self.count += 1
        """
    )
    assert fault(path) == (
        "Model: @well_formed('count') expects the name of a Map attribute, or of a Map that is a field of its values, "
        "such as 'inodes.pages'"
    )


@pytest.mark.parametrize("name", ["boxes.count", "boxes.missing", "missing", "boxes.items.more"])
def test_well_formedness_of_what_is_no_map_in_a_record(write: Write, name: str) -> None:
    path = write(
        f"""
        class Box(Struct):
            count: int
            items: Map[int, int]

        class Model(Interface):
            boxes: Map[int, Box]

            @well_formed("{name}")
            def positive(self, key, value):
                return True

            @call
            def f(self):
                pass
        """
    )
    assert fault(path).startswith(f"Model: @well_formed('{name}') expects the name of a Map attribute")


def test_chance_that_only_shows_when_run_again(write: Write) -> None:
    path = write(
        """
        draws = iter(range(1000))

        class Model(Interface):
            @call
            def f(self):
                return next(draws)
        """
    )
    assert re.search(r"Model: f, f: the model is not deterministic: .*use choose\(\)", fault(path))


@pytest.mark.parametrize("calls", [["f", "f"], ["f", "g"]])
def test_chance_between_a_number_and_an_error(write: Write, calls: list[str]) -> None:
    """An unknown number was subtracted from the error: a TypeError, and no word of the model."""
    path = write(
        """
        draws = iter(range(1000))

        class Model(Interface):
            number: int
            other: int

            @call
            def f(self):
                number = self.number
                return number if next(draws) % 2 else Errno.ENOENT

            @call
            def g(self):
                return self.other
        """
    )
    with pytest.raises(UsageError, match=f"{', '.join(calls)}: the model is not deterministic"):
        analyze(load_interface(str(path)), calls)


def test_chance_between_two_values_of_a_sort(write: Write) -> None:
    """It shows where a call runs after another that it has nothing to do with, and what it returned is known."""
    path = write(
        """
        draws = iter(range(1000))

        class Model(Interface):
            number: int

            @call
            def f(self, name: Name, other: Name):
                return other if next(draws) == 2 else name

            @call
            def g(self):
                self.number = 1
        """
    )
    with pytest.raises(UsageError, match="f, g: the model is not deterministic"):
        analyze(load_interface(str(path)), ["f", "g"])


def test_branches_by_chance(write: Write) -> None:
    path = write(
        """
        draws = iter(range(1000))

        class Model(Interface):
            flags: Map[Name, bool]

            @call
            def f(self, name: Name, other: Name):
                return (name if next(draws) % 2 else other) in self.flags
        """
    )
    assert "the model is not deterministic" in fault(path)


def test_what_may_be_compared_by_identity(write: Write) -> None:
    path = write(
        """
        class Model(Interface):
            names: Map[Name, Inum]

            @call
            def f(self, name: Name):
                inum = self.names.get(name)
                if inum is None or type(inum) is int:
                    return Errno.ENOENT
                return 0 if self.f2() is Errno.EIO else 1

            def f2(self):
                return Errno.EIO

            def setup(self):
                return None if self.names is self.names else []
        """
    )
    assert analyze(load_interface(str(path))).sets[0].paths > 1


def test_helpers_outside_of_the_class_are_read_too(write: Write) -> None:
    path = write(
        """
        def helper(left, right):
            return left is right

        class Model(Interface):
            @call
            def f(self, a: Name, b: Name):
                return helper(a, b)
        """
    )
    assert re.match(rf"model\.py:{FIRST + 1}: helper: `is` compares identities", fault(path))


def test_one_call_may_fail_and_return_one_kind(write: Write) -> None:
    path = write(
        """
        class Model(Interface):
            queue: Annotated[Seq[int], Capacity(2)]

            @call
            def f(self, flag: bool):
                if flag:
                    return Errno.EIO
                return self.queue
        """
    )
    assert analyze(load_interface(str(path))).sets[0].commutative_paths
