"""Documents: what is declared is read back, and whatever else comes is refused in one line that says where."""

from __future__ import annotations

from typing import Annotated, Literal

import jsonschema
import pytest
from msgspec import Meta

from commutant.documents import Count, Document, DocumentError, Measure, Part, builtins, encode, read, schema, text


class Leaf(Part, frozen=True):
    """An inner object."""

    low: Count
    high: Count

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("low is above high")


class Tree(Document, frozen=True, tag=3):
    """A document."""

    leaves: Annotated[tuple[Leaf, ...], Meta(max_length=2)]
    weight: Measure
    note: str = ""
    kind: Literal["tree"] = "tree"


TREE = Tree((Leaf(0, 2**64 - 1),), 1.5, "\u00e9\n")
HEAD = '{"schema_version": 3, "kind": "tree", '


def test_what_is_written_is_read_and_fits_its_schema() -> None:
    for content in (encode(TREE), text(TREE).encode()):
        assert read(Tree, content) == TREE and content.isascii()
    assert next(iter(builtins(TREE))) == "schema_version"
    validator = jsonschema.Draft202012Validator(schema("A tree", Tree))
    validator.check_schema(validator.schema)
    good = {"schema_version": 3, "kind": "tree", "leaves": [], "weight": 1}
    validator.validate(good)
    for bad in ({**good, "schema_version": 4}, {**good, "more": 1}, {key: good[key] for key in good if key != "kind"}):
        assert not validator.is_valid(bad)


def test_members_of_another_version_are_skipped_and_defaults_fill_in() -> None:
    assert read(Tree, (HEAD + '"leaves": [], "weight": 0, "later": [1, {}]}').encode()) == Tree((), 0.0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "Input data was truncated"),
        ("[]", "Expected `object`, got `array`"),
        ('{"leaves": []}', "expected schema_version 3, got None"),
        ('{"schema_version": 2}', "expected schema_version 3, got 2"),
        ('{"schema_version": true}', "expected schema_version 3, got True"),
        ('{"schema_version": 3, "kind": "bush"}', "expected a document of kind 'tree', got 'bush'"),
        (HEAD + '"leaves": []}', "Object missing required field `weight`"),
        (HEAD + '"weight": 1, "leaves": [{"low": 2, "high": 1}]}', "low is above high - at `$.leaves[0]`"),
        (HEAD + '"weight": 1, "leaves": [{"low": true, "high": 1}]}', "got `bool` - at `$.leaves[0].low`"),
        (HEAD + '"weight": 1, "leaves": [{"low": -1, "high": 1}]}', "Expected `int` >= 0 - at `$.leaves[0].low`"),
        (HEAD + '"weight": 1, "leaves": [{"low": 1.5, "high": 1}]}', "got `float` - at `$.leaves[0].low`"),
        (
            HEAD + f'"weight": 1, "leaves": [{{"low": 1, "high": {2**64}}}]}}',
            "Expected `int` below 2^64 - at `$.leaves[0].high`",
        ),
        (HEAD + f'"weight": 1, "leaves": [{{"low": 1, "high": {"9" * 5000}}}]}}', "out of range"),
        (HEAD + '"weight": -0.5, "leaves": []}', "Expected `float` >= 0.0 - at `$.weight`"),
        (HEAD + '"weight": NaN, "leaves": []}', "malformed"),
        (HEAD + '"weight": 1e999, "leaves": []}', "out of range"),
        (HEAD + '"weight": 1, "leaves": [], "note": "\\ud800"}', "half of a surrogate pair"),
        (HEAD + '"weight": 1, "leaves": [], "later": ' + "[" * 2_000_000 + "]" * 2_000_000 + "}", "nested too deeply"),
        ('{"later":' * 2_000_000, "nested too deeply"),
    ],
)
def test_what_is_no_such_document_is_refused_in_one_line(content: str, message: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read(Tree, content.encode())
    assert message in str(caught.value) and "\n" not in str(caught.value)
