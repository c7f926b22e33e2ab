"""Files that are either whole or not there: written beside their place and renamed."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from commutant.support.errors import RunError


def replace_file(path: Path, data: bytes) -> None:
    """Writes `data` to `path`, all or nothing; makes the folder. Raises RunError (full disk, no permission)."""
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
        temporary = None
    except OSError as error:
        raise RunError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
