"""`posix-commutative`: the calls of `posix18`, three of them changed along section 4 of the paper.

- open and pipe take O_ANYFD (section 7.2) and return any free descriptor instead of the lowest ("embrace specification
  non-determinism"). What they return is a `Handle`: no call under test can name it, and no lowest number depends on it,
  since an implementation may take it from a range of its own.
- fstatx replaces fstat and tells only the fields that its caller chooses ("decompose compound operations").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from commutant.interfaces.posix.data import DataCalls
from commutant.interfaces.posix.descriptors import DescriptorCalls
from commutant.interfaces.posix.memory import MemoryCalls
from commutant.interfaces.posix.names import NameCalls
from commutant.interfaces.posix.observation import Observation, place_in_order
from commutant.interfaces.posix.opening import Opening
from commutant.interfaces.posix.operations import Operations, Stat
from commutant.interfaces.posix.setup.state import StateSetup
from commutant.interfaces.posix.state import Descriptor, Flag, Name, Number
from commutant.lang import Errno, Map, Process, Range, Sort, Struct, call, unused

Always = Annotated[int, Range(1, 1)]
"""A flag that every test sets: it tells a target which variant of a call is meant."""


class Handle(Sort, opaque=True):
    """A descriptor that was asked for with O_ANYFD."""


class AnyEnds(Struct):
    """The two descriptors of a new pipe."""

    read_end: Handle
    write_end: Handle


class Handles(Operations):
    """Descriptors in addition to those that calls name by number."""

    handles: Map[tuple[Process, Handle], Descriptor]

    def touched_descriptions(self) -> list[Descriptor]:
        """All of them."""
        return [*super().touched_descriptions(), *(descriptor for _, descriptor in self.handles.touched())]

    def take_any(self, process: Process, description: Descriptor) -> Handle:
        """Gives the description a number that nothing has."""
        handle = unused(Handle)
        self.handles[process, handle] = description
        return handle


class OpenAny(Opening, Handles):
    """open with O_ANYFD."""

    @call
    def open(
        self,
        process: Process,
        name: Name,
        creat: bool,
        excl: bool,
        trunc: bool,
        readable: Flag,
        writable: Flag,
        anyfd: Always,
    ) -> Errno | Handle:
        """open(2); see `open_name`. Returns any free descriptor."""
        opened = self.open_name(process, name, creat, excl, trunc, readable, writable)
        return opened if isinstance(opened, Errno) else self.take_any(process, opened)


class OpenAnyPipe(Opening, Handles):
    """pipe with O_ANYFD."""

    @call
    def pipe(self, process: Process, anyfd: Always) -> AnyEnds:
        """pipe2(2) with O_NONBLOCK; takes any two free descriptors."""
        read_end, write_end = self.new_pipe()
        return AnyEnds(read_end=self.take_any(process, read_end), write_end=self.take_any(process, write_end))


class Fstatx(Operations):
    """fstat with a choice of fields."""

    @call
    def fstatx(self, process: Process, fd: Number, nlink: bool, size: bool, times: bool) -> Errno | Stat:
        """fstatx (section 7.2): like fstat, with those of link count, size and times that are asked for.

        What was not asked for is None. Which file it is never changes, so that it is returned in any case.
        """
        descriptor = self.descriptor(process, fd)
        if descriptor is None:
            return Errno.EBADF
        stat = self.stat_of_pipe(descriptor.inum) if descriptor.pipe else self.stat_of_file(descriptor.inum)
        left_out: Any = None
        if not nlink:
            stat.nlink = left_out
        if not size:
            stat.size = left_out
        if not times:
            stat.mtime = stat.ctime = left_out
        return stat


class AnyObservation(Observation, Handles):
    """Observation with the descriptors of O_ANYFD."""

    def numbered(self, process: Process) -> list[tuple[Any, Descriptor]]:
        """Those that were asked for with O_ANYFD come after the others, by call."""
        chosen = [(handle, descriptor) for (owner, handle), descriptor in self.handles.items() if owner == process]
        return [*super().numbered(process), *sorted(chosen, key=lambda entry: place_in_order(entry[0]))]


class PosixCommutative(
    MemoryCalls, DataCalls, OpenAnyPipe, DescriptorCalls, Fstatx, NameCalls, OpenAny, AnyObservation, StateSetup
):
    """The calls of posix18 with the changes above."""

    interface_name = "posix-commutative"
    stands_for: ClassVar[Mapping[str, str]] = {"fstatx": "fstat"}
