"""Does the implementation return what the model says? See `commutant.conformance`."""

from __future__ import annotations

from collections.abc import Sequence

from commutant.conformance import Conform, Conformance
from commutant.lang import Interface, load_interface
from commutant.targets import Target, load_target

SEQUENCES = 500


def check_model(
    interface: str | type[Interface],
    target: str | Target,
    *,
    sequences: int = SEQUENCES,
    length: int = 20,
    seed: int = 0,
    calls: Sequence[str] | None = None,
    differences: int = 1,
    jobs: int = 1,
) -> Conformance:
    """Runs random sequences of calls on model and target, as `commutant conform` does, and fails if they differ.

    `interface` is a model or an interface argument, `target` a target argument or a target that is not started, which
    is closed at the end. The other parameters are the verb's flags. Returns what was run.

    Raises AssertionError with the shrunk sequences; UsageError for calls that the target does not know or a model that
    fails; RunError if the target does not start or cannot go on.
    """
    __tracebackhide__ = True
    model = load_interface(interface) if isinstance(interface, str) else interface
    with Conform(
        model,
        load_target(target) if isinstance(target, str) else target,
        argument=interface if isinstance(interface, str) else None,
        calls=calls,
        sequences=sequences,
        length=length,
        seed=seed,
        max_differences=differences,
        jobs=jobs,
    ) as conform:
        conform.start()
        found = conform.run()
    if found.ended is not None:
        raise found.ended
    if found.differences:
        raise AssertionError(found.text())
    return found
