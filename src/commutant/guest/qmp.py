"""Talks to QEMU's monitor (QMP: one JSON object per line) over a socket that only the two ends have.

Source: docs/interop/qmp-spec.txt of QEMU 7.2.
"""

from __future__ import annotations

import array
import json
import socket
from collections.abc import Mapping
from typing import cast

from commutant.support import RunError

_LINE_LIMIT_BYTES = 1 << 20


class Monitor:
    """One end of the monitor's socket; every method raises RunError if QEMU does not answer as expected."""

    def __init__(self, connection: socket.socket, timeout_seconds: float) -> None:
        """Greets QEMU; waits for each answer at most `timeout_seconds`."""
        self._socket = connection
        self._socket.settimeout(timeout_seconds)
        self._pending = b""
        if "QMP" not in self._receive():
            raise RunError("QEMU's monitor: expected its greeting, got something else")
        self.execute("qmp_capabilities")

    def execute(self, command: str, arguments: Mapping[str, object] | None = None, descriptor: int = -1) -> object:
        """Runs a command and returns its result; `descriptor` is sent along if given (`getfd`)."""
        message: dict[str, object] = {"execute": command}
        if arguments:
            message["arguments"] = arguments
        ancillary = []
        if descriptor >= 0:
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))]
        try:
            self._socket.sendmsg([json.dumps(message).encode() + b"\n"], ancillary)
        except OSError as error:
            raise RunError(f"QEMU's monitor: {command}: {error.strerror or error}") from None
        while True:
            answer = self._receive()
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                error_member = answer["error"]
                reason = error_member.get("desc") if isinstance(error_member, dict) else error_member
                raise RunError(f"QEMU's monitor: {command}: {reason}")

    def wait_for_event(self, name: str) -> dict[str, object]:
        """Waits for an event, and returns its data."""
        while True:
            answer = self._receive()
            if answer.get("event") == name:
                data = answer.get("data")
                return cast(dict[str, object], data) if isinstance(data, dict) else {}

    def wait_for_migration(self) -> None:
        """Waits until the state that `migrate` writes is complete; needs the capability `events`."""
        while True:
            status = self.wait_for_event("MIGRATION").get("status")
            if status == "completed":
                return
            if status in ("failed", "cancelled"):
                detail = self.execute("query-migrate")
                reason = detail.get("error-desc", status) if isinstance(detail, dict) else status
                raise RunError(f"QEMU's monitor: saving the machine's state: {reason}")

    def _receive(self) -> dict[str, object]:
        while b"\n" not in self._pending:
            try:
                received = self._socket.recv(1 << 16)
            except TimeoutError:
                raise RunError("QEMU's monitor does not answer") from None
            except OSError as error:
                raise RunError(f"QEMU's monitor: {error.strerror or error}") from None
            if not received or len(self._pending) > _LINE_LIMIT_BYTES:
                raise RunError("QEMU's monitor: closed before it answered")
            self._pending += received
        line, _, self._pending = self._pending.partition(b"\n")
        try:
            answer = json.loads(line)
        except ValueError:
            raise RunError(f"QEMU's monitor: expected JSON, got {line[:80]!r}") from None
        if not isinstance(answer, dict):
            raise RunError(f"QEMU's monitor: expected a JSON object, got {line[:80]!r}")
        return cast(dict[str, object], answer)
