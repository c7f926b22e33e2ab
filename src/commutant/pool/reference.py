"""Models as pieces of work carry them from process to process."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commutant.lang import Interface, load_interface


@dataclass(frozen=True, slots=True)
class ModelReference:
    """A model as a piece of work carries it: another process loads it again from where it came from."""

    model: type[Interface]

    def __str__(self) -> str:
        """The interface argument that names the model."""
        module = sys.modules[self.model.__module__]
        file = getattr(module, "__file__", None)
        from_file = file is not None and module.__name__.startswith("commutant_model_")
        return f"{Path(str(file)) if from_file else module.__name__}:{self.model.__name__}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _reference, (str(self),)


def name_of_set(work: tuple[ModelReference, tuple[str, ...], object]) -> str:
    """What a piece of work on a set of calls is called."""
    reference, calls, _ = work
    return f"{', '.join(calls)} of {reference}"


def _reference(argument: str) -> ModelReference:
    return ModelReference(load_interface(argument))
