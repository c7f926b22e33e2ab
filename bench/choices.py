"""The tests of a run on Linux with what `bench.linux_counts` asks of them, and choices among them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from commutant.campaign import Outcome
from commutant.corpus import PlacedCall, Value, processes
from commutant.report import JudgedTest

CHANGED = {"name", "new", "src", "dst"}
"""The arguments that name what a call changes in its directory."""


class Seen:
    """A judged test, with what the rows ask of it."""

    def __init__(self, judged: JudgedTest) -> None:
        self.id, self.calls, self.setup = judged.test.id, judged.test.calls, judged.test.setup
        self.pair, self.outcome, self.findings = judged.calls, judged.outcome, judged.findings
        self.kinds = set(self.pair)
        self.conflicts = self.outcome in (Outcome.CONFLICTING, Outcome.UNSTABLE)
        self.variables = {finding.name for finding in self.findings}
        self.processes = processes(self.calls)
        self._outcomes = [outcome for order in judged.test.orders for outcome in order.outcomes]

    def ends(self, call: PlacedCall, way: str) -> list[bool]:
        """Whether a call ends with an `errno`, or a `signal`: in each order and outcome."""
        results = [outcome.results[call.core] for outcome in self._outcomes]
        return [isinstance(result, dict) and way in result for result in results]

    def opened(self, call: PlacedCall) -> object:
        """The file or pipe behind the descriptor that a call names; None if it is not open."""
        for step in self.setup:
            place = step.process, step.args.get("fd")
            if step.call in ("open_file", "open_pipe") and place == (call.process, call.args["fd"]):
                return step.call, step.args.get("file", step.args.get("pipe"))
        return None

    @property
    def on_one_file(self) -> bool:
        """Whether both calls name open descriptors of one file or pipe."""
        first, second = map(self.opened, self.calls)
        return first == second is not None

    @property
    def directories(self) -> set[Value]:
        """The working directories of the calls' processes."""
        entered = (step for step in self.setup if step.call == "enter_directory" and step.process in self.processes)
        return {step.args["directory"] for step in entered}

    def alike(self, argument: str) -> bool:
        """Whether both calls have the same value for an argument."""
        return self.calls[0].args.get(argument) == self.calls[1].args.get(argument)

    @property
    def changes_other_names(self) -> bool:
        """Whether each call succeeds, and makes, links, renames or removes names that the other one does not."""
        first, second = ({call.args[key] for key in CHANGED & call.args.keys()} for call in self.calls)
        return not first & second and all(map(self._changes, self.calls))

    def _changes(self, call: PlacedCall) -> bool:
        if any(self.ends(call, "errno")):
            return False
        if call.call == "open":
            there = {step.args["name"] for step in self.setup if step.call == "name_file"}
            return bool(call.args["creat"]) and call.args["name"] not in there
        return call.call in ("link", "unlink") or (call.call == "rename" and self._renames(call))

    def _renames(self, call: PlacedCall) -> bool:
        """Whether a name goes: POSIX `rename` does nothing where both names are of one file."""
        files = {step.args["name"]: step.args.get("file") for step in self.setup if step.call == "name_file"}
        old, new = (files.get(call.args[name]) for name in ("src", "dst"))
        return call.args["src"] != call.args["dst"] and (old is None or old != new)


Choice = Callable[[Seen], bool]


def conflicts(test: Seen) -> bool:
    """Whether a test is not conflict-free."""
    return test.conflicts


def shares(*variables: str) -> Choice:
    """Whether a test shares each of the variables."""
    return lambda test: all(any(name.startswith(variable) for name in test.variables) for variable in variables)


def only(variable: str) -> Choice:
    """Whether a test shares the variable, and nothing else."""
    return lambda test: bool(test.variables) and all(name.startswith(variable) for name in test.variables)


def falsely(test: Seen) -> bool:
    """Whether a test shares lines, and no bytes."""
    return test.conflicts and all(finding.sharing == "false" for finding in test.findings)


def placed(tests: Iterable[Seen], count: int) -> list[Seen]:
    """The tests whose calls are in this many processes."""
    return [test for test in tests if len(test.processes) == count]
