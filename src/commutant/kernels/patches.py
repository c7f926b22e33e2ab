"""Patches of a source tree: read, checked, and applied to a tree whose files may be shared with another one."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from commutant.support import RunError, UsageError, read_regular

_LIMIT_BYTES = 1 << 20
_FILE_LINE = re.compile(r"^(?:---|\+\+\+) (\S+)", re.MULTILINE)
_NO_SUBJECT_PART = re.compile(r"^(?:Subject:\s*)?(?:\[[^]]*\]\s*)?")
_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Patch:
    """A unified diff with the message before it. `files` are the paths that it changes, from the tree's root."""

    path: Path
    text: str
    files: tuple[str, ...]

    @property
    def title(self) -> str:
        """The first line of the message that says what it does, else the name of the file."""
        lines = self.text.partition("\n--- ")[0].splitlines()
        subjects = [line for line in lines if line.startswith("Subject:")]
        others = [line for line in lines if line.strip() and not re.match(r"(From|Date|diff|index|commit)\b", line)]
        for line in (*subjects, *others):
            if not line.startswith(("--- ", "+++ ")):
                return _NO_SUBJECT_PART.sub("", line).strip()
        return self.path.stem

    @property
    def sha256(self) -> str:
        """Of its text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def read_patch(path: Path) -> Patch:
    """A patch; raises UsageError if it is none, or changes files outside the tree."""
    try:
        data = read_regular(path, _LIMIT_BYTES)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; expected a patch (unified diff)") from None
    if len(data) > _LIMIT_BYTES:
        raise UsageError(f"{path}: larger than {_LIMIT_BYTES >> 20} MiB; expected a patch (unified diff)")
    text = data.decode(errors="surrogateescape")
    names = [name for name in _FILE_LINE.findall(text) if name != "/dev/null"]
    files = [str(PurePosixPath(*PurePosixPath(name).parts[1:])) for name in names]
    if not files or "\n@@ " not in text:
        raise UsageError(f"{path}: no lines `--- a/FILE`, `+++ b/FILE`, `@@`; expected a patch (unified diff)")
    for name, file in zip(names, files, strict=True):
        if name.startswith("/") or ".." in PurePosixPath(file).parts or file == ".":
            raise UsageError(f"{path}: changes {name!r:.100}, outside the tree; expected a/PATH and b/PATH")
    return Patch(path, text, tuple(dict.fromkeys(files)))


def apply(patches: Iterable[Patch], tree: Path) -> None:
    """Applies patches one after the other; the files that they change become the tree's own first.

    Raises UsageError if one does not apply.
    """
    for patch in patches:
        for file in patch.files:
            path = tree / file
            if path.is_symlink():
                raise UsageError(f"{patch.path}: {file} is a link in the tree; expected a patch of files")
            if path.is_file():
                own = path.with_name(f"{path.name}.own")
                shutil.copy2(path, own)
                own.replace(path)
        said = _patch_program(patch, tree)
        if said is not None:
            raise UsageError(f"{patch.path} does not apply to these sources: {said}")


def _patch_program(patch: Patch, tree: Path) -> str | None:
    """None if the program could apply it, else what it said."""
    # A unified diff and nothing else: other forms are scripts for an editor.
    command = ["patch", "-p1", "--unified", "--batch", "--forward", "--no-backup-if-mismatch", "--reject-file=-"]
    try:
        answer = subprocess.run(
            command,
            cwd=tree,
            input=patch.text.encode(errors="surrogateescape"),
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise RunError("patch is not there; `apt-get install patch` brings it") from None
    except (OSError, subprocess.SubprocessError) as error:
        raise RunError(f"patch: {error}") from None
    if answer.returncode == 0:
        return None
    lines = (answer.stdout + answer.stderr).decode(errors="replace").splitlines()
    wanted = [line for line in lines if "FAILED" in line or "can't find file" in line or "malformed" in line]
    files = [line.removeprefix("patching file ") for line in lines if line.startswith("patching file ")]
    return " ".join([*files[-1:], *(wanted or lines)[:1]])[-300:] or f"exit code {answer.returncode}"
