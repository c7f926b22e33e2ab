"""Named steps for the scripts behind the Makefile: quiet while all is well, precise when a step fails.

A step prints its name and how long it took. The output of its commands is kept back and shown only when one fails,
together with the command itself, so that the end of a failing build is the reason for it. A step whose inputs did not
change since it last succeeded is not run again: a stamp holds the hash of the inputs' content, never their times.
"""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMPS = VENV / "stamps"

NAME_WIDTH = 24


class StepFailed(Exception):
    """A step cannot succeed; the message is what the user reads."""


def say(name: str, text: str) -> None:
    """Prints one line of a step: its name, aligned, and what happened."""
    print(f"{name:<{NAME_WIDTH}} {text}", flush=True)


@contextmanager
def timed(name: str, doing: str) -> Iterator[None]:
    """Announces on a terminal what the step does, and prints how long it took once it has succeeded."""
    started = time.monotonic()
    if sys.stdout.isatty():
        print(f"{name:<{NAME_WIDTH}} {doing} ...", end="\r", flush=True)
    yield
    say(name, f"{doing}: {time.monotonic() - started:.1f} s")


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of every command: the caller's, with the project's virtual environment first."""
    env = dict(os.environ)
    env.pop("PYTHONHOME", None)
    env.pop("PYTHONPATH", None)
    env["VIRTUAL_ENV"] = str(VENV)
    env["PATH"] = f"{VENV / 'bin'}{os.pathsep}{env.get('PATH', os.defpath)}"
    # One interpreter for every crate that asks for Python's headers: another one would rebuild them.
    env["PYO3_PYTHON"] = str(VENV / "bin" / "python")
    env.update(extra or {})
    return env


def run(argv: Sequence[str | Path], *, env: Mapping[str, str] | None = None, folder: Path = ROOT) -> str:
    """Runs a command in the repository's root, or another folder, and returns its standard output.

    Raises StepFailed with the command and everything it printed if it cannot be started or does not return 0.
    """
    command = [str(part) for part in argv]
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
    except OSError as error:
        raise StepFailed(f"cannot start `{' '.join(command)}`: {error.strerror}") from None
    try:
        output, messages = process.communicate()
    except BaseException:
        process.terminate()
        process.wait()
        raise
    if process.returncode != 0:
        raise StepFailed(f"{output}{messages}\n`{' '.join(command)}` {ending(process.returncode)}")
    return output


def install_locked(lock: str, *modules: str) -> None:
    """Installs what a lock file lists in addition to the packages of `make setup`, unless these modules can be
    imported.

    Raises StepFailed if it cannot be had.
    """
    python = VENV / "bin" / "python"
    imported = subprocess.run([python, "-c", f"import {', '.join(modules)}"], capture_output=True, check=False)
    if imported.returncode != 0:
        pip: list[str | Path] = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
        run([*pip, "--require-hashes", "--only-binary", ":all:", "-r", ROOT / lock])


def stream(argv: Sequence[str | Path], *, without: str | None = None) -> None:
    """Like `run`, for long commands: what they print is shown as it comes, but for output lines that match `without`.

    Without a pattern the command has the caller's output itself, which may be a terminal.
    """
    command = [str(part) for part in argv]
    output = None if without is None else subprocess.PIPE
    with subprocess.Popen(
        command, cwd=ROOT, env=environment(), stdin=subprocess.DEVNULL, stdout=output, text=True, errors="replace"
    ) as process:
        try:
            for line in process.stdout or ():
                if without is None or re.match(without, line) is None:
                    print(line, end="", flush=True)
            status = process.wait()
        except KeyboardInterrupt:
            process.wait()  # the terminal has sent the signal to the command as well: it ends by itself
            raise
    if status != 0:
        raise StepFailed(f"`{' '.join(command)}` {ending(status)}")


def ending(status: int) -> str:
    """How a command ended, by its exit status, or by the negative number of a signal."""
    if status < 0:
        return f"was ended by signal {signal.Signals(-status).name}"
    return f"returned {status}"


def files_below(*folders_or_files: str) -> list[Path]:
    """The files below the given paths of the repository, sorted, without caches."""
    found: list[Path] = []
    for name in folders_or_files:
        path = ROOT / name
        if path.is_dir():
            found += [file for file in path.rglob("*") if file.is_file() and "__pycache__" not in file.parts]
        elif path.is_file():
            found.append(path)
    return sorted(found)


def content_hash(files: Iterable[Path], *texts: str) -> str:
    """The SHA-256 of names and contents of the files, and of the texts, as hexadecimal digits."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(f"{len(text)}:{text}".encode())
    for file in files:
        content = file.read_bytes()
        digest.update(f"{file.relative_to(ROOT)}:{len(content)}:".encode())
        digest.update(content)
    return digest.hexdigest()


def is_current(stamp: str, key: str, products: Iterable[Path] = ()) -> bool:
    """Whether the stamp holds this key and every product is still there."""
    try:
        recorded = (STAMPS / stamp).read_text()
    except OSError:
        return False
    return recorded == key and all(product.exists() for product in products)


def record(stamp: str, key: str) -> None:
    """Records that the step has succeeded with inputs of this key."""
    STAMPS.mkdir(parents=True, exist_ok=True)
    (STAMPS / stamp).write_text(key)
