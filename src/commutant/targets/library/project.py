"""A new adapter as a project that builds: source from a model's calls, a build file, and what it is built against.

Each call of the project answers as an empty object of the model does, and writes one planted counter. So it runs before
a line of it is written, and finds its planted line; then calls are written one after the other, and tests turn right.
"""

from __future__ import annotations

import errno
import os
import shutil
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from commutant.lang import ESCAPES, BoolType, Errno, Interface, IntType, OpaqueValue, SortType, describe_type
from commutant.support import UsageError
from commutant.targets.library.target import INCLUDE, RUST_CRATE

LANGUAGES = ("c", "cpp", "rust")
"""The languages that adapters are written in, as the command line names them."""

_IGNORED = {
    "c": "/build/\n/runs/\n",
    "cpp": "/build/\n/runs/\n",
    "rust": "/target/\n/runs/\n",
}
"""What of a project is made again: what is built, and runs."""
_TEMPLATES = "templates"
_SUFFIX = ".j2"


@dataclass(frozen=True, slots=True)
class ProjectCall:
    """A call as templates use it: what its functions are called, and the statement that answers for an empty object."""

    name: str
    parameters: tuple[str, ...]
    answer: str
    rust_type: str
    success: str
    """What answers where the empty object fails; empty if it does not fail, or the model leaves it open."""

    @property
    def signature(self) -> str:
        """As the model and the adapter write it."""
        return f"{self.name}({', '.join(self.parameters)})"


@dataclass(frozen=True, slots=True)
class Project:
    """A project that was written: what to say of it from within its folder."""

    built: Path
    """Where its build leaves the adapter."""
    argument: str
    """The interface as `commutant check` takes it there."""


def new_project(interface: type[Interface], argument: str, language: str, folder: Path) -> Project:
    """Writes a project for an adapter into a new folder.

    `argument` is the interface as `commutant check` takes it here. Raises UsageError if the folder exists.
    """
    if folder.exists():
        raise UsageError(f"{folder} exists already; -o takes a new directory")
    calls = [
        ProjectCall(
            signature.name,
            tuple(name for name in signature.parameters if name != signature.process_parameter),
            *_answer(interface, signature.name, language),
            _success(interface, signature.name, language),
        )
        for signature in interface.signatures()
    ]
    name = "".join(letter if letter.isalnum() else "_" for letter in interface.interface_name)
    argument = _from_within(argument, folder)
    facts = {"interface": argument, "name": name, "calls": calls}
    for path, text in [*_rendered(language, facts), (Path(".gitignore"), _IGNORED[language])]:
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    if language == "rust":
        shutil.copytree(RUST_CRATE, folder / "commutant-adapter", ignore=shutil.ignore_patterns("target", "Cargo.lock"))
        return Project(folder / "target" / "release" / f"lib{name}_adapter.so", argument)
    shutil.copytree(INCLUDE, folder / "commutant")
    return Project(folder / "build" / "adapter.so", argument)


def _from_within(argument: str, folder: Path) -> str:
    """An interface's argument as it is written in a folder: a model's file is then at another path."""
    path, colon, name = argument.partition(":")
    return os.path.relpath(path, folder) + colon + name if path.endswith(".py") else argument


def _rendered(language: str, facts: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    """The files of a language's project, below its folder, with their texts."""
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=True)
    with resources.as_file(resources.files("commutant.targets.library") / _TEMPLATES / language) as root:
        for file in sorted(root.rglob(f"*{_SUFFIX}")):
            path = file.relative_to(root).with_suffix("")
            yield path, environment.from_string(file.read_text(encoding="utf-8")).render(facts)


def _answer(interface: type[Interface], name: str, language: str) -> tuple[str, str]:
    """The statement that answers as the model's empty object does, and in Rust the type of the answer."""
    signature = interface.signature(name)
    try:
        arguments = {parameter: type_.zero() for parameter, type_ in signature.parameters.items()}
        result: Any = getattr(interface(), name)(**arguments)
    except ESCAPES:
        result = NotImplemented  # of an empty object this call cannot be made
    if language != "rust":
        return _c(result), ""
    answer, type_ = _rust(result)
    declared, may_fail = _declared(getattr(interface, name))
    if declared and may_fail:
        is_error = isinstance(result, Errno) or result is NotImplemented
        return answer if is_error else f"Ok({answer or '()'})", f" -> Result<{declared}, Errno>"
    return answer, type_


_SUCCESSES = {
    "c": {
        "Member": "commutant_member(result, number)",
        "Handle": 'commutant_handle(result, number, "{sort}")',
        "bool": "commutant_truth(result, is_so)",
        "i64": "commutant_number(result, number)",
    },
    "rust": {
        "Member": "Ok(Member(number))",
        "Handle": 'Ok(Handle {{ sort: "{sort}", number }})',
        "bool": "Ok(is_so)",
        "i64": "Ok(number)",
    },
}


def _success(interface: type[Interface], name: str, language: str) -> str:
    """How a call answers that may fail and does not: a member of a sort is no number to the test, though it has one."""
    function = getattr(interface, name)
    declared, may_fail = _declared(function)
    if not may_fail or declared not in _SUCCESSES["c"]:
        return ""
    hint = typing.get_type_hints(function, include_extras=True)["return"]
    sort = next((part.__name__ for part in typing.get_args(hint) if part is not Errno and isinstance(part, type)), "")
    return _SUCCESSES["rust" if language == "rust" else "c"][declared].format(sort=sort)


def _declared(function: Any) -> tuple[str, bool]:
    """The Rust type of what the model's call is annotated to return besides errors, empty where it is none with a name;
    and whether it may return an error."""
    hint = typing.get_type_hints(function, include_extras=True).get("return")
    parts = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    others = [part for part in parts if part is not Errno]
    may_fail = len(others) < len(parts)
    if len(others) != 1:
        return "", may_fail
    if others[0] in (None, type(None)):
        return "()", may_fail
    try:
        type_ = describe_type(others[0], "the result")
    except UsageError:
        return "", may_fail
    if isinstance(type_, SortType):
        return ("Handle" if type_.sort.opaque else "Member"), may_fail
    return {BoolType: "bool", IntType: "i64"}.get(type(type_), ""), may_fail


def _c(result: Any) -> str:
    match result:
        case None:
            return "(void)result;"
        case bool():
            return f"commutant_truth(result, {int(result)});"
        case int():
            return f"commutant_number(result, {result});"
        case Errno():
            return f"commutant_error(result, {result.name});"
        case list() if not result:
            return "commutant_sequence(result);"
        case OpaqueValue():
            return f'commutant_handle(result, (int64_t)(intptr_t)object, "{result.sort}");'
    return 'commutant_failed(result, "this call is not written yet");'


def _rust(result: Any) -> tuple[str, str]:
    match result:
        case None:
            return "", ""
        case bool():
            return str(result).lower(), " -> bool"
        case int():
            return str(result), " -> i64"
        case Errno():
            return f"Err(Errno({getattr(errno, result.name)})) // {result.name}", " -> Result<Member, Errno>"
        case list() if not result:
            return "Sequence(|_: &mut Items| {})", " -> impl Answer"
        case OpaqueValue():
            return f'Handle {{ sort: "{result.sort}", number: &raw const *object as i64 }}', " -> Handle"
    return 'panic!("this call is not written yet")', ""
