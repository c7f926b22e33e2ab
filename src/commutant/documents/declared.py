"""JSON documents, each declared once: reader, writer and the schema in docs/schemas come from the declaration.

    class Summary(Document, schema_version=1):
        target: str
        seconds: Measure

    summary = read(Summary, content)      # DocumentError: Expected `str`, got `int` - at `$.target`
    encode(summary)                       # b'{"schema_version":1,"target":"linux","seconds":2.5}'

A declaration is a msgspec struct. What a type cannot say (sums, order of numbers) a struct checks in
`__post_init__`, whose ValueError is reported with its path. Members that a declaration does not have are skipped:
another version may have written them. Beyond msgspec, `read` refuses integers of 2^64 and more, and deep nesting.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from inspect import cleandoc
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

_LIMIT = 1 << 64
_LONG = re.compile(rb"[0-9]{20,}")
_LARGEST = str(_LIMIT - 1).encode()

Count = Annotated[int, Meta(ge=0, extra_json_schema={"maximum": _LIMIT - 1})]
"""An integer from 0 below 2^64."""

Measure = Annotated[float, Meta(ge=0)]
"""A finite number from 0."""


Percent = Annotated[float, Meta(ge=0, le=100)]
"""A share in per cent."""


class Part(msgspec.Struct, frozen=True, gc=False):
    """An object within documents; values compare by content and cannot be changed."""


class Document(msgspec.Struct, frozen=True, gc=False, tag_field="schema_version", tag=1):
    """A whole document of a version. Subclasses of another version say `tag=VERSION`."""


S = TypeVar("S", bound=type[msgspec.Struct])

_KEYWORDS: dict[str, dict[str, Any]] = {}


def schema_keywords(**keywords: Any) -> Callable[[S], S]:
    """Adds keywords of JSON schema to what is said of a declaration, as which of its members stand together."""

    def added(declaration: S) -> S:
        _KEYWORDS[declaration.__name__] = keywords
        return declaration

    return added


class DocumentError(ValueError):
    """A document that is not what its declaration says, in one line with the path to the place."""


T = TypeVar("T")


_decoder: Callable[[Any], msgspec.json.Decoder[Any]] = cache(msgspec.json.Decoder)


def read(declaration: type[T], content: bytes) -> T:
    """The document in `content`; raises DocumentError."""
    try:
        _refuse_others(declaration, content)
        document: T = _decoder(declaration).decode(content)
        if _LONG.search(content):
            _refuse_large_integers(content)
    except RecursionError:
        raise DocumentError("nested too deeply") from None
    except (msgspec.MsgspecError, ValueError) as error:
        raise DocumentError(f"{error}{_explained(content)}") from None
    return document


def _explained(content: bytes) -> str:
    """What msgspec does not say of a text that ends within an escaped character."""
    return " (or half of a surrogate pair)" if b"\\ud" in content.lower() else ""


class _Header(msgspec.Struct):
    """What a document says of itself."""

    schema_version: Any = None
    format: Any = None
    kind: Any = None


def _refuse_others(declaration: Any, content: bytes) -> None:
    """Raises ValueError for a document of another version or kind, before anything else is said of it."""
    config = getattr(declaration, "__struct_config__", None)
    if config is None or config.tag is None:
        return  # no whole document, so it has no version
    header = _decoder(_Header).decode(content)
    version = getattr(header, config.tag_field)
    if type(version) is not int or version != config.tag:
        raise ValueError(f"expected {config.tag_field} {config.tag}, got {version!r:.40}")
    kind = next((field.default for field in msgspec.structs.fields(declaration) if field.name == "kind"), header.kind)
    if header.kind != kind:
        raise ValueError(f"expected a document of kind {kind!r}, got {header.kind!r:.40}")


def _refuse_large_integers(content: bytes) -> None:
    """Raises ValueError for integers of 2^64 and more, and says where the first one is."""
    if all(len(digits) == 20 and digits <= _LARGEST for digits in _LONG.findall(content)):
        return
    pending: list[tuple[str, Any]] = [("$", msgspec.json.decode(content))]
    while pending:
        path, value = pending.pop()
        if type(value) is int and not -_LIMIT < value < _LIMIT:
            raise ValueError(f"Expected `int` below 2^64 - at `{path}`")
        if type(value) is dict:
            pending += [(f"{path}.{key:.40}", member) for key, member in value.items()]
        elif type(value) is list:
            pending += [(f"{path}[{index}]", item) for index, item in enumerate(value)]


def builtins(document: object) -> Any:
    """The document as dictionaries, lists and plain values."""
    return msgspec.to_builtins(document, enc_hook=_plain)


def _plain(value: object) -> object:
    """The integer that a value of a subclass is; raises TypeError for anything else that is no JSON."""
    if isinstance(value, int):
        return int(value)
    raise TypeError(f"{type(value).__name__} is no value of a document")


_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode


def encode(document: object) -> bytes:
    """The document on one line, in ASCII, whatever its texts hold."""
    return _encode(builtins(document)).encode()


def text(document: object) -> str:
    """The document for people and files: a member a line, in ASCII, with a line feed at the end."""
    return json.dumps(builtins(document), indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def schema(title: str, *declarations: Any) -> dict[str, Any]:
    """The JSON schema of documents that are as one of the declarations says.

    Written documents have every member that has no default, and nothing that is not declared.
    """
    references, definitions = msgspec.json.schema_components(declarations, ref_template="#/$defs/{name}")
    for name, definition in definitions.items():
        _close(definition)
        definition |= _KEYWORDS.get(name, {})
    head: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
    }
    body = references[0] if len(references) == 1 else {"anyOf": list(references)}
    return {**head, **body, "$defs": definitions}


def _close(definition: dict[str, Any]) -> None:
    """Forbids other members and requires those that are always the same; makes lines of a docstring paragraphs."""
    definition.pop("title", None)
    if "description" in definition:
        definition["description"] = re.sub(r"(?<!\n)\n(?!\n)", " ", cleandoc(definition["description"]))
    if "properties" not in definition:
        return
    definition["additionalProperties"] = False
    for name, property_ in definition["properties"].items():
        constant = property_.get("enum", ())
        if len(constant) == 1 and property_.pop("default", None) == constant[0]:
            definition.setdefault("required", []).append(name)
