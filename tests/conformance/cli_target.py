"""`model[:unknown=CALL][,slow=yes]`: the interface `names` as a target of the command line.

Run as a program, this is `commutant` with that target in its table; `slow` says on standard error when two chunks of
sequences are done, and stops there until it is closed: the moment to send a signal.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping, Sequence

from commutant.interfaces.names import Names
from commutant.support.errors import RunError
from commutant.targets import registry
from commutant.targets.base import SequenceRecord
from tests.conformance.model_target import ModelSession, ModelTarget


class SlowSession(ModelSession):
    """Runs two chunks and then waits to be closed."""

    chunks = 0
    closing = threading.Event()

    def run_sequences(self, texts: Sequence[str]) -> Iterator[SequenceRecord]:
        if self.chunks == 2:
            print("a chunk is done", file=sys.stderr, flush=True)
            self.closing.wait(60)
            raise RunError("the session was closed")
        self.chunks += 1
        yield from super().run_sequences(texts)

    def close(self) -> None:
        super().close()
        self.closing.set()


def create(argument: str, options: Mapping[str, str]) -> ModelTarget:
    """The factory that the table of targets names."""
    unknown = [options["unknown"]] if "unknown" in options else []
    target = ModelTarget(Names, unknown=unknown, session=SlowSession if "slow" in options else ModelSession)
    return target


if __name__ == "__main__":
    from commutant.cli import main

    registry.TARGETS["model"] = "tests.conformance.cli_target:create"
    sys.exit(main())
