"""What a test's set-up leaves behind, as far as a call that is repeated must bring it back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from commutant.corpus import SetupStep, Value

_SHARED_DIRECTORY = ""
"""Where names lie as long as no process entered a directory."""


@dataclass(slots=True)
class StateAfter:
    """Names with their files, each process's directory, pages that hold data, descriptors of pipes, and mapped pages.

    `mapped` has, for a process and a page, whether one may write there, and the step's arguments if it is anonymous
    memory (None: a file's).
    """

    names: dict[tuple[str, str], object] = field(default_factory=dict)
    directories: dict[int, str] = field(default_factory=dict)
    filled: set[object] = field(default_factory=set)
    pipes: set[tuple[int, object]] = field(default_factory=set)
    mapped: dict[tuple[int, object], tuple[bool, Mapping[str, Value] | None]] = field(default_factory=dict)

    def place(self, process: int, name: object) -> tuple[str, str]:
        """The directory in which a process finds a name, and the name."""
        return self.directories.get(process, _SHARED_DIRECTORY), str(name)

    def file(self, process: int, name: object) -> object:
        """What a name stands for; None if there is no file of that name."""
        return self.names.get(self.place(process, name))


def state_after(setup: Iterable[SetupStep]) -> StateAfter:
    """The state that set-up steps build; steps that change nothing of it are passed over."""
    state = StateAfter()
    for number, step in enumerate(setup):
        args, process = step.args, step.process
        match step.call:
            case "make_file" if args.get("length"):
                state.filled.add(args["file"])
            case "fill_page":
                state.filled.add(args["file"])
            case "name_file":
                state.names[str(args["directory"]), str(args["name"])] = args["file"]
            case "enter_directory":
                state.directories[process] = str(args["directory"])
            case "open" if args.get("creat"):
                state.names.setdefault(state.place(process, args["name"]), ("opened", number))
            case "link" if step.result == 0:
                state.names[state.place(process, args["new"])] = state.file(process, args["old"])
            case "open_pipe":
                state.pipes.add((process, args["fd"]))
            case "mmap" if args.get("fixed"):
                state.mapped[process, args["address"]] = (bool(args["writable"]), args if args["anonymous"] else None)
            case "map_file":
                state.mapped[process, args["address"]] = (bool(args["writable"]), None)
            case "mprotect" if (process, args["address"]) in state.mapped:
                state.mapped[process, args["address"]] = (
                    bool(args["writable"]),
                    state.mapped[process, args["address"]][1],
                )
    return state
