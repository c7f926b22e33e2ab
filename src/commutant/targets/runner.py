"""What a runner says of itself when it is asked on the host: above all, which calls it knows.

A call is known by its name and the names of its parameters, since interfaces have calls of one name with others.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from commutant.support import RunError, build_advice

_ANSWER_SECONDS = 20.0
_SIGNATURE = re.compile(r"(\w+)\((|\w+(?:, \w+)*)\)")

LACKS: Mapping[str, str] = {
    **dict.fromkeys(("kill", "sigpending", "sigtimedwait"), "a library has no signals: they are the system's"),
    **dict.fromkeys(("futex_wake", "futex_wait", "futex_requeue"), "a library has no futexes: they are the system's"),
    **dict.fromkeys(("epoll_add", "epoll_del", "epoll_wait"), "ScaleFS has no epoll; poll is there"),
    **dict.fromkeys(("fork", "exit", "wait"), "a process of a library has no children of its own"),
}
"""By call: why no file system in a library has it."""

Signature = tuple[str, frozenset[str]]
"""A call's name and those of its parameters, without the process that makes it."""


def signature(call: str, parameters: Iterable[str]) -> Signature:
    """The signature of a call with these parameters, in whatever order."""
    return call, frozenset(parameters)


def read_calls(path: Path) -> frozenset[Signature]:
    """The calls that a runner says it knows (`--calls`); raises RunError if it does not."""
    return parse_calls(ask(path, "--calls"), path)


def parse_calls(listing: str, path: Path) -> frozenset[Signature]:
    """The calls of such an answer; raises RunError if it is none."""
    calls = set()
    for line in listing.splitlines():
        found = _SIGNATURE.fullmatch(line)
        if found is None:
            raise RunError(f"{path}: expected calls such as `link(old, new)`, got {line!r:.80}; {build_advice()}")
        calls.add(signature(found[1], filter(None, found[2].split(", "))))
    return frozenset(calls)


def ask(path: Path, *arguments: str) -> str:
    """What a program prints for its arguments, without an emulator; raises RunError if it does not start."""
    command: Sequence[str] = [str(path), *arguments]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_ANSWER_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise RunError(f"{path}: the runner does not start: {error}; {build_advice()}") from None
    return answer.stdout
