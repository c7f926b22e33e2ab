"""`posix`: what the areas of POSIX have beyond the paper, with nested directories, rights, and shared descriptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from commutant.interfaces.posix.advice import AdviceCalls
from commutant.interfaces.posix.children import ChildCalls
from commutant.interfaces.posix.descriptors import Fstat, Seek
from commutant.interfaces.posix.epolls import EpollCalls
from commutant.interfaces.posix.futexes import FutexCalls
from commutant.interfaces.posix.memory import MemoryCalls
from commutant.interfaces.posix.opening import OpenPipe
from commutant.interfaces.posix.signals import SignalCalls, SignalNumber
from commutant.interfaces.posix.slots import DescriptionCalls, SlotCalls
from commutant.interfaces.posix.tree_calls import NamedCalls
from commutant.interfaces.posix.tree_files import OpenPath, RightCalls, Truncate
from commutant.interfaces.posix.tree_setup import TreeObservation
from commutant.interfaces.posix.trees import Directory
from commutant.interfaces.posix.vectors import VectorCalls
from commutant.lang import Invocation, Process, invoke, unused


class Posix(
    AdviceCalls,
    FutexCalls,
    MemoryCalls,
    EpollCalls,
    DescriptionCalls,
    SlotCalls,
    VectorCalls,
    OpenPipe,
    Seek,
    Fstat,
    RightCalls,
    Truncate,
    OpenPath,
    NamedCalls,
    SignalCalls,
    ChildCalls,
    TreeObservation,
):
    """All of it."""

    interface_name = "posix"

    def __init__(self) -> None:
        """An empty root."""
        super().__init__()
        self.root = unused(Directory)
        nameless: Any = None
        self.directories[self.root] = self.new_directory(nameless)

    def begin(self, values: Mapping[type, Sequence[Any]]) -> Iterator[Invocation]:
        """All processes are the superuser's."""
        for process in values[Process]:
            yield invoke("become", process=process, user=0)

    def setup(self) -> Iterator[Invocation]:
        """Builds this state: what watches descriptors, children and signals come last."""
        yield from super().setup()
        yield from self.watch_all()
        yield from self.bear_children()
        for process, signal in self.pending:
            yield invoke("kill", process=process, signal=signal)

    def observe(self, values: Mapping[type, Sequence[Any]]) -> Iterator[Invocation]:
        """Looks at all of it."""
        yield from self.observe_epolls(values)
        yield from self.observe_children(values)
        for process in values[Process]:
            for signal in values[SignalNumber]:
                yield invoke("sigpending", process=process, signal=signal)
        yield from super().observe(values)
