"""Runs Debian's package tools, which check the signatures of what they download."""

from __future__ import annotations

import subprocess
from pathlib import Path

from commutant.support import RunError

_DOWNLOAD_SECONDS = 900.0


def apt(command: list[str], folder: Path | None = None, *, otherwise: str = "") -> str:
    """What a tool of apt prints, run in a folder; `otherwise` says what helps where there is none. Raises RunError."""
    try:
        answer = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=_DOWNLOAD_SECONDS, check=False
        )
    except FileNotFoundError:
        raise RunError(f"{command[0]} is not there: expected a Debian system{otherwise}") from None
    except (OSError, subprocess.SubprocessError) as error:
        raise RunError(f"{command[0]}: {error}") from None
    if answer.returncode != 0:
        reason = " ".join(answer.stderr.split())[-300:]
        raise RunError(f"{command[0]} ... {command[-1]} failed: {reason or f'exit code {answer.returncode}'}")
    return answer.stdout
