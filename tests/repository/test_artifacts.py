"""The compiled files next to the package: found where set-up puts them, and missed with advice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from commutant.support import artifacts
from commutant.support.errors import RunError


@pytest.mark.parametrize("path_of", [artifacts.plugin_path, artifacts.runner_path])
def test_compiled_files_are_programs_of_this_machine(path_of: Callable[[], Path]) -> None:
    assert path_of().read_bytes().startswith(b"\x7fELF\x02\x01")


@pytest.mark.parametrize("path_of", [artifacts.plugin_path, artifacts.runner_path])
def test_a_missing_file_is_named_with_what_to_do(
    path_of: Callable[[], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "_FOLDER", tmp_path)
    with pytest.raises(RunError, match=r"is missing: expected .*; run `make setup`") as failure:
        path_of()
    assert str(tmp_path) in str(failure.value)
    assert "\n" not in str(failure.value)
