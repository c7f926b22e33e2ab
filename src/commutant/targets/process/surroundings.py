"""What surrounds the calls of tests and no model knows of: options of the targets `scalefs` and `plain`.

`names=long` makes each name of a test 255 bytes long, `depth=N` puts it N - 1 directories further down, and `users=N`
lets as many users make the calls, of whom each may do everything and owns what he has made. The runner does it
(crates/file-system/scalefs-runner/src/surroundings.rs): neither the test nor its results change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from commutant.support import MAX_CALLS_PER_SET
from commutant.targets.options import Option, number, one_of

OPTIONS: Mapping[str, Option] = {
    "names": one_of("long"),
    "depth": number(2, 64),
    "users": number(2, MAX_CALLS_PER_SET),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a target argument asks for; None is what tests say themselves."""

    names: str | None = None
    depth: int | None = None
    users: int | None = None

    def described(self) -> dict[str, object]:
        """What differs from the usual, for a run's description."""
        told: dict[str, object] = {"names": self.names, "depth": self.depth, "users": self.users}
        return {key: value for key, value in told.items() if value is not None}

    def runner_arguments(self) -> tuple[str, ...]:
        """The same for the runner."""
        return tuple(word for key, value in self.described().items() for word in (f"--{key}", str(value)))


NO_SURROUNDINGS = Surroundings()
"""All is as tests say."""
