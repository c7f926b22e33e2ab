"""Finds a model by the interface argument of the command line: a shipped name, `FILE.py[:Class]`, or `module:Class`.

A model is a program and runs with the rights of its user; docs and SECURITY.md say so.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import importlib
import importlib.util
import os
import posix
import sys
import sysconfig
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from commutant.lang.alike import AlikeClasses, value_classes
from commutant.lang.interface import Interface
from commutant.support import UsageError, did_you_mean, text_of

SHIPPED = {
    "allocator": "commutant.interfaces.libraries.allocator:Allocator",
    "counter": "commutant.interfaces.libraries.counter:Counter",
    "events": "commutant.interfaces.weaker:Events",
    "events-any": "commutant.interfaces.weaker:AnyEvents",
    "figure4": "commutant.interfaces.figure4:Figure4",
    "interner": "commutant.interfaces.libraries.interner:Interner",
    "kv": "commutant.interfaces.libraries.kv:KeyValueStore",
    "lists": "commutant.interfaces.libraries.lists:Lists",
    "lists-ends": "commutant.interfaces.libraries.lists_ends:ListEnds",
    "map": "commutant.interfaces.libraries.map:MapOfValues",
    "map-len": "commutant.interfaces.libraries.map:CountedMap",
    "map-len-relaxed": "commutant.interfaces.libraries.map:RoughlyCountedMap",
    "map-relaxed": "commutant.interfaces.libraries.map:RelaxedMap",
    "metrics": "commutant.interfaces.libraries.counter:Metrics",
    "names": "commutant.interfaces.names:Names",
    "ordered-map": "commutant.interfaces.libraries.ordered_map:OrderedMap",
    "pool": "commutant.interfaces.libraries.pool:Pool",
    "posix": "commutant.interfaces.posix.posix:Posix",
    "posix18": "commutant.interfaces.posix.posix18:Posix18",
    "posix-close-to-open": "commutant.interfaces.posix.close_to_open:PosixCloseToOpen",
    "posix-commutative": "commutant.interfaces.posix.commutative:PosixCommutative",
    "processes": "commutant.interfaces.processes:Processes",
    "put-max": "commutant.interfaces.libraries.put_max:PutMax",
    "queue": "commutant.interfaces.libraries.queue:Queue",
    "queue-unordered": "commutant.interfaces.libraries.queue:UnorderedQueue",
    "refcount": "commutant.interfaces.libraries.refcount:ReferenceCount",
    "refcount-exact": "commutant.interfaces.libraries.refcount:ExactReferenceCount",
    "release": "commutant.interfaces.weaker:Release",
    "release-later": "commutant.interfaces.weaker:LaterRelease",
    "sockets": "commutant.interfaces.sockets:Sockets",
    "sockets-unordered": "commutant.interfaces.sockets:UnorderedSockets",
    "stack": "commutant.interfaces.libraries.queue:Stack",
}
"""The interfaces that ship, by the name that the command line knows them by."""


ESCAPES = (Exception, SystemExit, GeneratorExit)
"""What may come out of a model's code that is the model's fault; an interrupt is not, nor a defect of the engine's."""


def load_interface(argument: str, beside: type[Interface] | None = None) -> type[Interface]:
    """The model that `argument` names; UsageError if there is none or it cannot be loaded.

    With another model `beside` it, what a file declares as that one's file does is one class (`alike`).
    """
    if argument in SHIPPED:
        module_name, _, class_name = SHIPPED[argument].partition(":")
        return _pick(importlib.import_module(module_name), class_name, argument)
    path_text, _, class_name = argument.partition(":")
    if path_text.endswith(".py"):
        return _pick(_module_from_file(Path(path_text), beside), class_name, argument)
    if class_name:
        return _pick(_module_by_name(path_text), class_name, argument)
    raise UsageError(f"unknown interface {argument!r}: {_known_to(argument)}")


def _known_to(argument: str) -> str:
    """What was expected in place of an unknown name: of a call, the shortest interface that has it."""
    names = [name for name in SHIPPED if argument in load_interface(name).call_names()]
    if names:
        best = min(names, key=lambda name: (name != "posix18", name))
        return f"it is a call of {best}: `commutant check {best} --calls {argument},{argument}`"
    guess = did_you_mean(argument, SHIPPED)
    return f"expected one of {', '.join(SHIPPED)}, or FILE.py[:Class], or module:Class{guess}"


def model_hash(interface: type[Interface]) -> str:
    """A hash of the sources that the model is made of: the same hash means the same model.

    These are the modules of the class and its bases, and those that they import, as far as they are neither installed
    packages nor part of the engine. What a model reads from elsewhere is not seen.
    """
    digest = hashlib.sha256(interface.__qualname__.encode())
    names = [base.__module__ for base in interface.__mro__ if base is not Interface]
    seen: set[str] = set()
    while names:
        name = names.pop(0)
        if name in seen or name not in sys.modules:
            continue
        seen.add(name)
        source = _model_source(sys.modules[name])
        if source is not None:
            digest.update(b"\0" + source)
            names += _imported(source, sys.modules[name])
    return digest.hexdigest()


def is_hashed(interface: type[Interface]) -> bool:
    """Whether `model_hash` sees the model's own source: not that of a class made in a notebook or at a prompt."""
    bases = (base for base in interface.__mro__ if base is not object and not base.__module__.startswith("commutant."))
    files = (getattr(sys.modules.get(base.__module__), "__file__", None) for base in bases)
    return all(file is not None and Path(file).is_file() for file in files)


def source_hash(name: str) -> str | None:
    """A hash of what the text of a module is now; None if it is not loaded, or `model_hash` does not see it."""
    source = _model_source(sys.modules[name]) if name in sys.modules else None
    return None if source is None else hashlib.sha256(source).hexdigest()


def _model_source(module: ModuleType) -> bytes | None:
    """The text of a module that belongs to a model; None if it does not."""
    file = getattr(module, "__file__", None)
    name = module.__name__
    if file is None or (name.startswith("commutant.") and not name.startswith("commutant.interfaces.")):
        return None
    if not name.startswith("commutant.") and not _installed().isdisjoint(Path(file).parents):
        return None
    try:
        return Path(file).read_bytes()
    except OSError:
        return None


@cache
def _installed() -> frozenset[Path]:
    """The folders of Python's own and of installed packages."""
    return frozenset(Path(sysconfig.get_path(kind)) for kind in ("stdlib", "purelib", "platlib"))


def _imported(source: bytes, module: ModuleType) -> list[str]:
    """The names of the modules that a module's text may import."""
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            package = (module.__package__ or "").split(".")
            base = ".".join([*package[: len(package) - node.level + 1], node.module or ""] if node.level else [])
            base = base.rstrip(".") or (node.module or "")
            names += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    return names


def _module_from_file(path: Path, beside: type[Interface] | None = None) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"{path}: expected a Python file with a model, found no such file")
    name = "commutant_model_" + hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]
    known = {} if beside is None or beside.__module__ == name else value_classes(beside)
    if known and beside is not None:
        name += f"_beside_{hashlib.sha256(beside.__module__.encode()).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    _keep_alive()
    _models.add(name)
    while True:
        alike = AlikeClasses(known)
        module = _executed(name, path, alike if known else None)
        mistaken = alike.mistaken()
        if not mistaken:
            return module
        known = {one: value for one, value in known.items() if one not in mistaken}


def _executed(name: str, path: Path, alike: AlikeClasses | None) -> ModuleType:
    """The module of a file, run from its beginning."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path}: cannot be loaded as a Python file")
    module = importlib.util.module_from_spec(spec)
    if alike is not None:
        vars(module)["__builtins__"] = {**vars(builtins), "__build_class__": alike.build}
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except UsageError:
        del sys.modules[name]
        raise
    except ESCAPES as error:
        del sys.modules[name]
        raise UsageError(f"{path}{_line_of(error, path)}: the model cannot be loaded: {_text(error)}") from None
    return module


_models: set[str] = set()
"""Names of the modules that were asked for as models."""

_exit = os._exit


def _keep_alive() -> None:
    """From now on a model that ends its process raises SystemExit instead, which is reported as the fault that it
    is."""

    def refuse(status: int) -> NoReturn:
        if sys._getframe(1).f_globals.get("__name__") in _models:
            raise SystemExit(f"os._exit({status!r}): expected a model that leaves its process alone")
        _exit(status)

    os._exit = posix._exit = refuse


def _module_by_name(name: str) -> ModuleType:
    _keep_alive()
    _models.add(name)
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(f"module {name!r} cannot be imported: {error}") from None
    except ESCAPES as error:
        raise UsageError(f"module {name!r} cannot be loaded: {_text(error)}") from None


def _pick(module: ModuleType, class_name: str, argument: str) -> type[Interface]:
    models = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Interface) and value.__module__ == module.__name__
    }
    if class_name:
        chosen = getattr(module, class_name, None)
        if not (isinstance(chosen, type) and issubclass(chosen, Interface)):
            raise UsageError(
                f"{argument}: expected a class {class_name!r} derived from Interface; found {_list(models)}"
            )
    elif len(models) == 1:
        chosen = next(iter(models.values()))
    else:
        raise UsageError(f"{argument}: expected one model in the file, or :Class after it; found {_list(models)}")
    if not chosen.call_names():
        raise UsageError(f"{argument}: {chosen.__name__} has no method marked with @call")
    for name in chosen.call_names():
        chosen.signature(name)
    chosen.state_types()
    return chosen


def _list(models: dict[str, type[Interface]]) -> str:
    return ", ".join(sorted(models)) or "none"


def _line_of(error: BaseException, path: Path) -> str:
    if isinstance(error, SyntaxError) and error.lineno:
        return f":{error.lineno}"
    traceback, line = error.__traceback__, ""
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == str(path):
            line = f":{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return line


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {text_of(error)}"
