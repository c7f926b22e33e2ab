"""Finds a model by the interface argument of the command line: a shipped name, `FILE.py[:Class]`, or `module:Class`.

A model is a program and runs with the rights of its user; docs and SECURITY.md say so.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType

from commutant.errors import UsageError
from commutant.lang.interface import Interface

SHIPPED = {
    "figure4": "commutant.interfaces.figure4:Figure4",
    "names": "commutant.interfaces.names:Names",
    "posix18": "commutant.interfaces.posix.posix18:Posix18",
    "posix-commutative": "commutant.interfaces.posix.commutative:PosixCommutative",
}
"""The interfaces that ship, by the name that the command line knows them by."""


def load_interface(argument: str) -> type[Interface]:
    """The model that `argument` names; UsageError if there is none or it cannot be loaded."""
    if argument in SHIPPED:
        module_name, _, class_name = SHIPPED[argument].partition(":")
        return _pick(importlib.import_module(module_name), class_name, argument)
    path_text, _, class_name = argument.partition(":")
    if path_text.endswith(".py"):
        return _pick(_module_from_file(Path(path_text)), class_name, argument)
    if class_name:
        return _pick(_module_by_name(path_text), class_name, argument)
    raise UsageError(
        f"unknown interface {argument!r}: expected one of {', '.join(SHIPPED)}, or FILE.py[:Class], or module:Class"
    )


def model_hash(interface: type[Interface]) -> str:
    """A hash of the source files that define the model and its bases: the same hash means the same model."""
    digest = hashlib.sha256()
    for base in interface.__mro__:
        if issubclass(base, Interface) and base is not Interface:
            try:
                source = Path(inspect.getfile(base)).read_bytes()
            except (OSError, TypeError):
                source = base.__qualname__.encode()
            digest.update(base.__qualname__.encode() + b"\0" + source + b"\0")
    return digest.hexdigest()


def _module_from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"{path}: expected a Python file with a model, found no such file")
    name = "commutant_model_" + hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path}: cannot be loaded as a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except UsageError:
        del sys.modules[name]
        raise
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise UsageError(f"{path}{_line_of(error, path)}: the model cannot be loaded: {_text(error)}") from None
    return module


def _module_by_name(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(f"module {name!r} cannot be imported: {error}") from None
    except (Exception, SystemExit) as error:
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
        raise UsageError(f"{argument}: expected one model in the file, or :Class behind it; found {_list(models)}")
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
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
