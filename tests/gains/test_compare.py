"""`compare`: situations gained and lost, over two versions of a model and over the interfaces that ship."""

from __future__ import annotations

from itertools import permutations, product
from pathlib import Path

import pytest

from commutant.analyzer import JointCallSets
from commutant.cli.main import run
from commutant.documents import read
from commutant.gains import CompareDocument, compare_interfaces, comparison_lines, comparison_page
from commutant.gains.correspondence import SameCode
from commutant.lang import Interface, load_interface
from commutant.support import UsageError
from commutant.symbolic import explore

HEAD = """
from typing import Annotated
from commutant.lang import Errno, Interface, Map, Range, Sort, Struct, call, choose, invoke

class Key(Sort):
    \"\"\"A key.\"\"\"

class Entry(Struct):
    \"\"\"What is stored.\"\"\"
    value: int
"""

BEFORE = (
    HEAD
    + """
class Store(Interface):
    entries: Map[Key, Entry]

    @call
    def put(self, key: Key, value: int) -> int:
        before = self.entries[key].value if key in self.entries else 0
        self.entries[key] = Entry(value=value)
        return before

    @call
    def get(self, key: Key) -> Errno | int:
        return self.entries[key].value if key in self.entries else Errno.ENOENT

    @call
    def count(self) -> int:
        return len(self.entries)

    def setup(self):
        for key, entry in self.entries.items():
            yield invoke("put", key=key, value=entry.value)

    def observe(self, values):
        for key in values[Key]:
            yield invoke("get", key=key)
        yield invoke("count")
"""
)

QUIET = BEFORE.replace(
    """    def put(self, key: Key, value: int) -> int:
        before = self.entries[key].value if key in self.entries else 0
        self.entries[key] = Entry(value=value)
        return before
""",
    """    def put(self, key: Key, value: int, quiet: bool) -> int:
        before = self.entries[key].value if key in self.entries and not quiet else 0
        self.entries[key] = Entry(value=value)
        return before
""",
)


def versions(folder: Path, before: str = BEFORE, after: str = QUIET) -> tuple[type[Interface], type[Interface]]:
    (folder / "before.py").write_text(before)
    (folder / "after.py").write_text(after)
    first = load_interface(str(folder / "before.py"))
    return first, load_interface(str(folder / "after.py"), beside=first)


def test_two_versions_of_a_model_gain_where_a_parameter_hides_what_a_call_told(tmp_path: Path) -> None:
    first, second = versions(tmp_path)
    assert first.state_types() == second.state_types(), "classes that are declared alike are one"
    document = compare_interfaces(first, second).document
    sets = {one.calls: one for one in document.sets}
    assert [calls for calls, one in sets.items() if one.gained or one.lost] == [("put", "put")]
    assert {calls for calls, one in sets.items() if one.same} == {("get", "get"), ("get", "count"), ("count", "count")}
    gained = sets["put", "put"].gained
    assert gained is not None
    assert gained.parameters == ("quiet",)
    assert gained.confirmed == gained.situations > 0
    assert "not quiet" not in gained.example.second
    assert "quiet" in gained.example.second
    assert document.unconfirmed == 0


def test_the_reverse_loses_what_was_asked_for_in_silence(tmp_path: Path) -> None:
    first, second = versions(tmp_path, QUIET, BEFORE)
    document = compare_interfaces(first, second).document
    lost = next(one.lost for one in document.sets if one.calls == ("put", "put"))
    assert lost is not None
    assert document.gained == 0
    assert lost.confirmed == lost.situations
    assert lost.in_part == lost.situations, "two puts may happen to tell the same"


def _outcome(model: type[Interface], entries: dict[str, int], calls: list[tuple[str, dict[str, object]]]) -> bool:
    """Whether calls commute from a state, by running every order of them."""
    seen = []
    for order in permutations(range(len(calls))):
        state = model()
        entry = model.state_types()["entries"].value.struct  # type: ignore[attr-defined]
        for key, value in entries.items():
            state.entries[key] = entry(value=value)  # type: ignore[attr-defined]
        results = {index: getattr(state, calls[index][0])(**calls[index][1]) for index in order}
        held = {key: one.value for key, one in state.entries.items()}  # type: ignore[attr-defined]
        seen.append((sorted(results.items()), held))
    return all(one == seen[0] for one in seen)


def test_what_is_gained_is_what_trying_all_small_states_finds(tmp_path: Path) -> None:
    first, second = versions(tmp_path)
    gained = False
    for present, value, one, other, same_key in product((False, True), range(2), range(2), range(2), (False, True)):
        entries = {"k0": value} if present else {}
        calls = [("put", {"key": "k0", "value": one}), ("put", {"key": "k0" if same_key else "k1", "value": other})]
        before = _outcome(first, entries, calls)
        after = [
            _outcome(
                second, entries, [(name, {**given, "quiet": q}) for (name, given), q in zip(calls, quiet, strict=True)]
            )
            for quiet in product((False, True), repeat=2)
        ]
        gained |= any(after) and not before
        assert not (before and not any(after)), "nothing is lost"
    document = compare_interfaces(first, second, ["put", "put"]).document
    assert (document.gained > 0) == gained
    assert document.lost == 0


def test_a_gain_in_part_of_a_situation_is_told_apart(tmp_path: Path) -> None:
    before = HEAD + (
        "class Model(Interface):\n"
        "    level: Annotated[int, Range(0, 3)]\n"
        "    @call\n"
        "    def add(self) -> int:\n"
        "        self.level += 1\n"
        "        return self.level\n"
    )
    after = before.replace("return self.level\n", "return self.level if self.level < 3 else 3\n")
    first, second = versions(tmp_path, before, after)
    gained = compare_interfaces(first, second).document.sets[0].gained
    assert gained is not None
    assert (gained.situations, gained.wholly, gained.in_part) == (1, 0, 1)
    assert gained.parameters == ()


TICK = (
    HEAD
    + """
class Model(Interface):
    flag: bool
    spare: bool
    wide: bool
    deep: bool
    level: Annotated[int, Range(0, 5)]
    value: int
    @call
    def tick(self) -> None:
        pass
"""
)


def ticking(body: str) -> str:
    """A version of which `tick` returns where it commutes, and else says how often it ran."""
    signature = "    def tick(self, quick: bool) -> int:\n"
    lines = [*body.splitlines(), "self.value = self.value + 1", "return self.value"]
    return TICK[: TICK.index("    def tick")] + signature + "".join(f"        {line}\n" for line in lines)


@pytest.mark.parametrize(
    ("body", "lost"),
    [
        (
            "if quick:\n    if self.flag:\n        return self.value\nelif not self.flag:\n    return self.value",
            [],
        ),
        (
            (
                "either = self.flag or self.spare\n"
                "if quick:\n    if either:\n        return self.value\nelif not either:\n    return self.value"
            ),
            [],
        ),
        (
            (
                "if quick:\n    if self.level < 3:\n        return self.value\n"
                "elif self.level == 3 or self.level == 4 or self.level == 5:\n    return self.value"
            ),
            [],
        ),
        ("if self.flag:\n    if not quick:\n        return self.value\nelif quick:\n    pass", ["flag false"]),
        ("if not self.flag:\n    if quick:\n        pass\nelif quick:\n    return self.value", ["flag false"]),
        ("if quick:\n    if self.flag:\n        return self.value\nelse:\n    pass", ["flag false"]),
        (
            "if quick:\n    if self.flag:\n        return self.value\nelif self.spare:\n    return self.value",
            ["flag false", "spare false"],
        ),
        (
            "if quick:\n    if not self.flag:\n        return self.value\nelif not self.spare:\n    return self.value",
            ["flag true", "spare true"],
        ),
    ],
)
def test_lost_is_what_no_value_of_an_own_parameter_serves(tmp_path: Path, body: str, lost: list[str]) -> None:
    """Regression: a parameter that was decided before the state had to serve every state alone."""
    first, second = versions(tmp_path, TICK, ticking(body))
    document = compare_interfaces(first, second).document
    entry = document.sets[0].lost
    assert (entry is not None) == bool(lost) == bool(document.lost)
    if entry is not None:
        assert (entry.situations, entry.in_part, entry.confirmed) == (1, 1, 1)
        assert entry.parameters == ()
        assert [text for text in lost if text not in entry.example.first] == [], "the example is one that is lost"
        assert document.unconfirmed == 0


@pytest.mark.parametrize(
    ("quick", "slow", "shown"),
    [
        ("self.flag", "self.spare", ["flag false", "spare false"]),
        ("not self.flag or self.spare", "not self.wide or self.deep", None),
    ],
)
def test_an_example_of_a_loss_is_one_that_no_other_value_serves(
    tmp_path: Path, quick: str, slow: str, shown: list[str] | None
) -> None:
    """No one path is lost in all its states; where two attributes that are open have to differ, none is shown."""
    look = "    @call\n    def look(self) -> int:\n        return self.value\n"
    body = f"if quick:\n    if {quick}:\n        return 0\nelif {slow}:\n    return 0"
    first, second = versions(tmp_path, TICK + look, ticking(body).replace("return self.value", "return 0") + look)
    document = compare_interfaces(first, second).document
    entry = next(one.lost for one in document.sets if one.calls == ("tick", "look"))
    assert entry is not None
    assert (entry.situations, entry.in_part, entry.confirmed) == (1, 1, shown is not None)
    assert [text for text in shown or () if text not in entry.example.first] == []


def test_nothing_is_lost_in_a_state_that_is_not_well_formed(tmp_path: Path) -> None:
    condition = (
        "    @well_formed('entries')\n    def positive(self, key: Key, entry: Entry) -> bool:\n"
        "        return entry.value > 0\n    @call\n    def tick(self, key: Key, "
    )
    body = "if not quick and (key not in self.entries or self.entries[key].value > 0):\n    return self.value"
    first, second = versions(
        tmp_path,
        *(
            text.replace("flag: bool", "entries: Map[Key, Entry]")
            .replace("choose,", "choose, well_formed,")
            .replace("    @call\n    def tick(self, ", condition)
            for text in (TICK.replace("(self)", "(self, )"), ticking(body))
        ),
    )
    assert compare_interfaces(first, second).document.lost == 0


def test_a_gain_by_different_values_in_different_states_is_whole(tmp_path: Path) -> None:
    before = ticking("").replace(", quick: bool", "")
    after = ticking(
        "if quick:\n    if self.flag:\n        return self.value\nelif not self.flag:\n    return self.value"
    )
    first, second = versions(tmp_path, before, after)
    gained = compare_interfaces(first, second).document.sets[0].gained
    assert gained is not None
    assert (gained.situations, gained.wholly, gained.confirmed) == (1, 1, 1)


def test_a_loss_that_too_many_values_would_have_to_show_is_not_confirmed(tmp_path: Path) -> None:
    first, second = versions(tmp_path, TICK, ticking("").replace("quick: bool", "speed: Annotated[int, Range(0, 40)]"))
    document = compare_interfaces(first, second).document
    entry = document.sets[0].lost
    assert entry is not None
    assert (entry.situations, entry.wholly, entry.confirmed, document.unconfirmed) == (1, 1, 0, 1)
    assert "    concrete runs of the two models do not show it" in comparison_lines(document)
    assert "(not confirmed)" in comparison_page(document, {})


def test_an_unlucky_choice_is_no_situation(tmp_path: Path) -> None:
    before = HEAD + (
        "class Model(Interface):\n"
        "    marked: bool\n"
        "    @call\n"
        "    def write(self) -> None:\n"
        "        if choose(bool):\n"
        "            self.marked = True\n"
        "    @call\n"
        "    def look(self) -> bool:\n"
        "        return self.marked\n"
    )
    after = before.replace("return self.marked", "return self.marked or self.marked")
    first, second = versions(tmp_path, before, after)
    document = compare_interfaces(first, second).document
    assert (document.gained, document.lost) == (0, 0)
    assert sum(one.refused for one in document.sets) == 0


def test_conditions_of_both_versions_hold_of_the_state(tmp_path: Path) -> None:
    condition = (
        "    @well_formed('entries')\n    def empty(self, key: Key, entry: Entry) -> bool:\n        return False\n"
    )
    after = QUIET.replace("choose,", "choose, well_formed,")
    after = after.replace("    @call\n    def put", f"{condition}    @call\n    def put")
    first, second = versions(tmp_path, BEFORE, after)
    (one,) = compare_interfaces(first, second, ["get", "put"]).document.sets
    assert one.refused == 1, "the key is absent: no state of the second version has any"


def test_a_call_of_another_name_is_declared(tmp_path: Path) -> None:
    after = QUIET.replace("def put(", "def insert(").replace('invoke("put"', 'invoke("insert", quiet=True')
    first, second = versions(tmp_path, BEFORE, after)
    document = compare_interfaces(first, second, ["put", "put"], declared={"insert": "put"}).document
    assert document.sets[0].calls_of_second == ("insert", "insert")
    assert document.gained > 0
    without = compare_interfaces(first, second).document
    assert (without.only_first, without.only_second) == (("put",), ("insert",))
    lines = comparison_lines(document, per_change=True)
    assert any(line.startswith("put (insert) with quiet: gains") for line in lines)
    with pytest.raises(UsageError, match=r"no call 'remove'.*put=remove|no call 'remove', of which insert=remove"):
        compare_interfaces(first, second, declared={"insert": "remove"})


def test_calls_whose_helpers_differ_are_not_the_same(tmp_path: Path) -> None:
    """Regression: helpers were compared by their own code alone, not by what they name."""
    helpers = "\ndef limit():\n    return 3\n\ndef add(one, more=1):\n    return one + more + limit()\n"
    model = (
        "\nclass Model(Interface):\n    level: int\n    @call\n    def step(self) -> int:\n"
        "        self.level = add(self.level)\n        return 0\n"
    )
    for number, change in enumerate([("return 3", "return 4"), ("more=1", "more=2")]):
        folder = tmp_path / str(number)
        folder.mkdir()
        first, second = versions(folder, HEAD + helpers + model, HEAD + helpers.replace(*change) + model)
        assert not SameCode(first, second).of("step", "step")
    (tmp_path / "same").mkdir()
    first, second = versions(tmp_path / "same", HEAD + helpers + model, HEAD + helpers + model + "\nOTHER = 1\n")
    assert SameCode(first, second).of("step", "step")


MIXING = (
    HEAD.replace(
        "    value: int\n",
        "    value: int\n    def mix(self, new: int) -> int:\n        return scaled(self.value) + new\n",
    )
    + """
class Outer(Struct):
    \"\"\"Holds another.\"\"\"
    entry: Entry

class Store(Interface):
    entries: Map[Key, Outer]
    @call
    def put(self, key: Key, new: int) -> None:
        self.entries[key] = Outer(entry=Entry(value=new))

STEP = 1

def scaled(value, times=1):
    return value * STEP * times
"""
)


@pytest.mark.parametrize("text", [MIXING, f"from __future__ import annotations\n{MIXING}"])
def test_classes_whose_methods_name_something_else_are_not_alike(tmp_path: Path, text: str) -> None:
    """Regression: methods were compared by their code, and not by what they name and their default values."""
    mixing = "def mix(self, new: int)"
    for number, (change, is_alike) in enumerate(
        [
            (("def scaled", "OTHER = 1\n\ndef scaled"), True),
            (("STEP = 1", "STEP = 2"), False),
            (("times=1", "times=2"), False),
            ((mixing, "def mix(self, new: int = 3)"), False),
        ]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        first, second = versions(folder, text, text.replace(*change))
        assert (first.state_types() == second.state_types()) == is_alike, change
        if not is_alike:
            with pytest.raises(UsageError, match="where a class of that name is declared differently"):
                compare_interfaces(first, second)


def test_enumerations_whose_methods_differ_are_not_alike(tmp_path: Path) -> None:
    kind = (
        "from enum import Enum\nLIMIT = 1\n\nclass Kind(Enum):\n    ONE = 1\n    TWO = 2\n    @property\n"
        "    def last(self):\n        return self.value > LIMIT\n"
    )
    model = "\nclass Model(Interface):\n    kind: Kind\n    @call\n    def look(self) -> bool:\n        return False\n"
    for number, change in enumerate(["LIMIT = 1", "LIMIT = 2"]):
        folder = tmp_path / str(number)
        folder.mkdir()
        first, second = versions(folder, HEAD + kind + model, HEAD + kind.replace("LIMIT = 1", change) + model)
        assert (first.state_types() == second.state_types()) == (number == 0)


def test_a_call_that_hands_itself_on_is_not_the_same(tmp_path: Path) -> None:
    """Regression: what a function does with the interface that it is given was compared by the function's text."""
    text = (
        HEAD + "\ndef helper(_, model, new):\n    model._set(new)\n\nclass Model(Interface):\n    value: int\n"
        "    def _set(self, new):\n        self.value = new\n"
        "    @call\n    def put(self, new: int) -> None:\n        helper(0, self, new)\n"
        "    @call\n    def get(self) -> int:\n        return self.value\n"
    )
    first, second = versions(tmp_path, text, text.replace("self.value = new", "self.value = self.value + new"))
    same = SameCode(first, second)
    assert not same.of("put", "put")
    assert same.of("get", "get")
    gained = next(one.gained for one in compare_interfaces(first, second).document.sets if one.calls == ("put", "put"))
    assert gained is not None


def test_calls_that_call_each_other_are_the_same_only_together(tmp_path: Path) -> None:
    text = (
        HEAD + "\nSTEP = 1\n\nclass Model(Interface):\n    value: int\n"
        "    def _one(self, deep):\n        return self._two(deep) + self._three()\n"
        "    def _three(self):\n        return STEP\n"
        "    def _two(self, deep):\n        return self._one(False) if deep else 0\n"
        "    @call\n    def one(self) -> int:\n        return self._one(True)\n"
        "    @call\n    def two(self) -> int:\n        return self._two(True)\n"
    )
    first, second = versions(tmp_path, text, text.replace("STEP = 1", "STEP = 2"))
    same = SameCode(first, second)
    assert not same.of("one", "one")
    assert not same.of("two", "two"), "it was taken for the same while it was asked of the other"


def test_conditions_that_name_something_else_are_not_the_same(tmp_path: Path) -> None:
    text = (
        HEAD.replace("choose,", "choose, well_formed,") + "\nLEAST = 1\n\nclass Model(Interface):\n    value: int\n"
        "    @well_formed\n    def enough(self) -> bool:\n        return self.value >= LEAST\n"
        "    @call\n    def get(self) -> int:\n        return self.value\n"
    )
    for number, change in enumerate(["LEAST = 1", "LEAST = 2"]):
        folder = tmp_path / str(number)
        folder.mkdir()
        first, second = versions(folder, text, text.replace("LEAST = 1", change) + "\nOTHER = 1\n")
        assert SameCode(first, second).of("get", "get") == (number == 0)


def test_super_finds_what_differs_above(tmp_path: Path) -> None:
    (tmp_path / "models.py").write_text(
        HEAD + "\nclass Low(Interface):\n    value: int\n    def step(self):\n        return 1\n\n"
        "class Other(Low):\n    def step(self):\n        return 2\n\n"
        "class Calls(Low):\n    def step(self):\n        return 0\n"
        "    @call\n    def add(self) -> int:\n        return super().step()\n\n"
        "class First(Calls, Low):\n    pass\n\nclass Alike(Calls):\n    pass\n\n"
        "class Second(Calls, Other):\n    pass\n"
    )
    first, alike, second = (load_interface(f"{tmp_path}/models.py:{name}") for name in ("First", "Alike", "Second"))
    assert SameCode(first, alike).of("add", "add")
    assert not SameCode(first, second).of("add", "add")


@pytest.mark.parametrize(
    ("after", "message"),
    [
        (BEFORE, r"store was given twice: expected two interfaces"),
        (
            QUIET.replace("put", "a").replace("get", "b").replace("count", "c"),
            r"store and store have no call in common \(put, get, count; a, b, c\): expected calls of one name, or",
        ),
        (
            BEFORE.replace("def get(self, key: Key)", "def get(self, key: int)"),
            r"get and get do not correspond: parameter 'key' has type Key in one and int in the other; expected",
        ),
        (
            QUIET.replace("    value: int\n\nclass", "    value: int\n    age: int\n\nclass"),
            r"self\.entries has type Map\[Key, Entry\] in one and Map\[Key, Entry\] in the other, where a class",
        ),
    ],
)
def test_bad_input(tmp_path: Path, after: str, message: str) -> None:
    first, second = versions(tmp_path, BEFORE, after)
    with pytest.raises(UsageError, match=message):
        compare_interfaces(first, second)


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    versions(tmp_path)
    both = [str(tmp_path / "before.py"), str(tmp_path / "after.py")]
    assert run(["compare", *both, "--format", "json", "--jobs", "1"]) == 0
    document = read(CompareDocument, capsys.readouterr().out.encode())
    assert document.gained > 0
    assert run(["compare", *both, "--jobs", "1"]) == 0
    out = capsys.readouterr().out
    assert f"store gains {document.gained} of the" in out
    page = tmp_path / "both.html"
    assert run(["compare", *both, "--format", "html", "-o", str(page), "--jobs", "1"]) == 0
    content = page.read_text()
    assert content.count('<table class="map">') == 2
    assert content.count('class="changed"') == 2, "put and put, once for each interface"
    assert f'title="{next(one.refused for one in document.sets if one.gained)} of' in content
    assert run(["compare", *both, "--format", "html"]) == 2
    assert run(["compare", both[0], both[0]]) == 2
    assert run(["compare", *both, "--call", "a=put", "--call", "a=get"]) == 2
    err = capsys.readouterr().err
    assert "a stands for one call" in err
    assert "needs -o FILE" in err
    assert "was given twice" in err
    assert run(["compare", *both, "--call", "insert"]) == 2
    assert "expected NEW=OLD" in capsys.readouterr().err


def test_fstatx_and_any_descriptor_gain_what_section_4_says() -> None:
    first = load_interface("posix18")
    second = load_interface("posix-commutative", beside=first)
    document = compare_interfaces(first, second, ["fstat", "pipe", "write"], with_self=True).document
    gained = {one.calls: one.gained.situations for one in document.sets if one.gained}
    assert gained == {
        ("fstat", "pipe"): 2,
        ("fstat", "write"): 11,
        ("pipe", "pipe"): 2,
        ("pipe", "write"): 1,
    }
    assert (document.lost, document.unconfirmed) == (0, 0)
    assert next(one.refused for one in document.sets if one.calls == ("pipe", "pipe")) == 2, "new numbers are no matter"
    fstat = next(one.gained for one in document.sets if one.calls == ("fstat", "write"))
    assert fstat is not None
    assert fstat.parameters == ("nlink", "not size", "not times")


@pytest.mark.parametrize(
    "name, weaker, expected",
    [
        (
            "release",
            "release-later",
            {("munmap", "memread"): (1, 1), ("munmap", "memwrite"): (1, 1), ("close", "write"): (1, 1)},
        ),
        ("events", "events-any", {("arrive", "select"): (2, 5), ("take", "select"): (2, 5)}),
    ],
)
def test_what_comes_later_and_what_tells_one_of_several_gain(
    name: str, weaker: str, expected: dict[tuple[str, ...], tuple[int, int]]
) -> None:
    first = load_interface(name)
    document = compare_interfaces(first, load_interface(weaker, beside=first), with_self=True).document
    gained = {one.calls: (one.gained.situations, one.refused) for one in document.sets if one.gained}
    assert gained == expected
    assert (document.lost, document.unconfirmed) == (0, 0)


def test_new_numbers_of_the_two_interfaces_are_not_compared() -> None:
    first = load_interface("posix18")
    sets = JointCallSets(first, load_interface("posix-commutative", beside=first), ("pipe", "pipe"), ("pipe", "pipe"))
    found = [path.result for path in explore(sets.run)]
    assert len(found) == 32


@pytest.mark.long
def test_all_pairs_of_posix18_against_posix_commutative() -> None:
    first = load_interface("posix18")
    second = load_interface("posix-commutative", beside=first)
    document = compare_interfaces(first, second).document
    assert (document.gained, document.lost, document.unconfirmed) == (255, 0, 0)


def test_no_one_implementation_serves_put_and_max() -> None:
    """The two ways of section 3.6: puts commute whatever the state, put and max where the sample is not the largest."""
    from commutant.analyzer import analyze

    model = load_interface("put-max")
    conditions = {one.calls: one.conditions for one in analyze(model).sets}
    assert conditions["put", "put"] == ["always"]
    assert conditions["put", "max"] == ["largest ≥ value.0"]
    (triple,) = analyze(model, ["put", "put", "max"], 3).sets
    assert triple.conditions == ["largest ≥ value.0; largest ≥ value.1"]
