"""A model to begin with, as a file of its author's own."""

from __future__ import annotations

import keyword
from importlib import resources
from pathlib import Path

from commutant.support import UsageError


def new_model(name: str, file: Path) -> None:
    """Writes a first model of this name into a new file. Raises UsageError if the name is none of a class, or the file
    exists or cannot be written."""
    if not name.isidentifier() or keyword.iskeyword(name) or name in ("Key", "Number") or name.startswith("_"):
        raise UsageError(f"expected a name for a class, such as Store or my_queue, got {name!r}")
    class_name = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
    text = (resources.files("commutant.lang") / "first_model.txt").read_text(encoding="utf-8")
    try:
        with file.open("x", encoding="utf-8") as writer:
            writer.write(text.format(name=class_name, file=file))
    except FileExistsError:
        raise UsageError(f"{file} exists already; -o takes a new file") from None
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}") from None
