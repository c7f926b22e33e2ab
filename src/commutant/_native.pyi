"""The native module: what is done once per window, per access, or many times per path. Built from crate `native`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, NoReturn, Self, TypeVar, final

__all__ = [
    "MAX_DECISIONS_PER_PATH",
    "NOT_DETERMINISTIC",
    "OF_ANOTHER_RUN",
    "RULES",
    "BoolValue",
    "Cell",
    "Context",
    "Cubes",
    "Decision",
    "Entry",
    "FactTable",
    "Infeasible",
    "IntValue",
    "KernelNames",
    "KernelTypes",
    "LazyRecord",
    "Literal",
    "LoadedNames",
    "MapContent",
    "Mark",
    "ProgramFile",
    "ProgramNames",
    "RelocatableFile",
    "Sequences",
    "SortValue",
    "SymbolicMap",
    "TestBook",
    "TraceError",
    "TraceReader",
    "add",
    "changed",
    "clone",
    "course_transfers",
    "current",
    "independent",
    "install",
    "kernel_layout",
    "len",
    "scale",
    "solve",
    "solver_statistics",
    "transfer",
    "value_of",
]

RULES: tuple[str, ...]
"""Names of the ignoring rules, in the order of a window's counts."""

class TraceError(Exception):
    """A trace that is damaged or ends too early; one line says where."""

@final
class TestBook:
    """Test cases by number, so that each is read once however often it is run.

    They are made of parts, likewise by number, that are read and kept once however many cases share them.
    """

    def __new__(cls) -> Self: ...
    def add_calls(self, text: str) -> int:
        """Reads calls from their JSON text and returns their number. ValueError says what is wrong with them."""

    def add_steps(self, member: str, text: str) -> int:
        """Reads the steps of a set-up or an observation likewise; `member` says of which."""

    def add_orders(self, text: str) -> int:
        """Reads orders likewise."""

    def add_case(self, calls: int, setup: int, observe: int, orders: int) -> int:
        """Adds the test case of these parts and returns its number. ValueError says why they do not go together."""

    def encode(self, windows: Sequence[tuple[int, int]]) -> bytes:
        """The binary batch for windows, each a pair of a test's number and the index of one of its orders."""

    def judge(
        self, windows: Sequence[tuple[int, int]], bytes: bytes
    ) -> list[tuple[str | None, str | None, str | None, list[int]] | None]:
        """Judges a batch's results: per window None if there is nothing to say, or four things.

        They are what was wrong, what the target does not offer, how the set-up led elsewhere by a choice that is
        allowed (one of these, or none), and the calls whose transactions were aborted. ValueError if the bytes are not
        the results of these windows.
        """

@final
class Sequences:
    """Sequences of calls for one batch: test cases without calls under test, whose steps have expected results."""

    def __new__(cls, texts: Sequence[str]) -> Self:
        """Reads sequences from their JSON texts. ValueError says which one is wrong, and how."""

    def encode(self) -> bytes:
        """The binary batch that runs each sequence once."""

    def read(self, bytes: bytes) -> list[str | None]:
        """Reads the batch's results: per sequence None if all came as expected, else the JSON text of what came.

        That is `{"results": [...], "observation": [...]}` or `{"refused": "why"}`. ValueError if the bytes are not the
        results of these sequences.
        """

def kernel_layout(kallsyms: bytes, btf: bytes, modules: Sequence[bytes] = ...) -> str:
    """The text of the tracer's layout file for a kernel, from its `/proc/kallsyms` and its BTF (raw, or a `vmlinux`).

    `modules` is the BTF of the modules that it has loaded, by default none. ValueError says which of them is not what
    it should be.
    """

@final
class KernelTypes:
    """A kernel's types, to be looked up by name."""

    def __new__(cls, btf: bytes, modules: Sequence[bytes] = ...) -> Self:
        """From BTF, raw or in a `vmlinux`, and that of modules; ValueError says what is wrong with it."""

    def structure(self, name: str) -> tuple[int, list[tuple[str, int, int, bool, bool]]] | None:
        """Size in bytes of the structure or union of that name, and all its members with those embedded in it; None if
        there is none.

        A member is (path, offset in bits, size in bits, is a bit field, lies in a union).
        """

    def embedders(self, name: str) -> list[str]:
        """The names of the structures and unions that hold one of that name as a part."""

@final
class KernelNames:
    """A kernel's symbols and types; read once, used by the readers of any number of traces."""

    def __new__(cls, kallsyms: bytes, btf: bytes, modules: Sequence[bytes] = ...) -> Self:
        """From `/proc/kallsyms`, BTF (raw, or a `vmlinux`) and that of modules; ValueError says what is wrong."""

@final
class ProgramNames:
    """A program's symbols."""

    def __new__(cls, symbols: Sequence[tuple[int, int, str]]) -> Self:
        """From (first address, first address after, name), in any order."""

@final
class LoadedNames:
    """Names of a program that loads libraries, from the list that it makes of what is loaded."""

    def __new__(cls, listing: str) -> Self:
        """From the path of the file that the program lists in; it may be empty so far."""

_Access = tuple[int, int, int, int, str, list[str]]
_ByteRanges = list[tuple[int, int]]
_Fields = list[tuple[int, int, str]]
_TouchedParts = list[tuple[int, _ByteRanges, _ByteRanges]]
_Line = tuple[int, _Fields, _TouchedParts]
_Course = tuple[list[int], list[tuple[int, list[bytes]]]]
_Window = tuple[int, list[tuple[int, int]], list[int], list[int], int, _Course]
_Part = tuple[int, int, int, int]

def course_transfers(
    meetings: Sequence[tuple[Sequence[int], Sequence[bytes]]],
    layouts: Sequence[Sequence[Sequence[_Part]]],
    cores: int,
) -> list[list[tuple[float, float]]]:
    """For each of several objects with lines alike the expected transfers in each of several layouts: for caches that
    share a modified line on a read, and for those that take it over.

    An object is the accesses of each core's call, and the course of each line. A layout is a list of new lines, each of
    them parts: (line, core, bytes whose reads come along, bytes whose writes do), the bytes as a mask. ValueError if a
    course is damaged.
    """

@final
class TraceReader:
    """Reads one trace, batch by batch."""

    def __new__(cls, fd: int, names: KernelNames | ProgramNames | LoadedNames) -> Self:
        """Reads from a descriptor of a file or the read end of a pipe, which stays the caller's. OSError if neither."""

    def read_batch(self) -> list[_Window] | None:
        """The windows up to the end of the next batch, or None past the end of the trace; blocks without the GIL.

        A window is (sequence, numbers of findings and of the pictures that show them, ignored lines per rule, counted
        accesses per core, lost accesses, (logged accesses per core, for each object that shows a finding the number of
        its picture and the course of each line)).
        TraceError if the trace is damaged or ends too early.
        """

    def finding(self, number: int) -> tuple[str, str, str, tuple[str, str, str, int], _Access, _Access, _Line]:
        """A finding by its number: (object, field, "true", "false" or "neighbour", (lock, file or directory), first
        access, second access, line).

        An access is (core, write, offset, size in bytes, function, stack). The line, where the finding was met first,
        is (address, fields as (offset, size in bytes, name), per core (core, ranges read, ranges written)).
        """

    def picture(self, number: int) -> tuple[str, list[tuple[int, int, _TouchedParts]]]:
        """A picture by its number: (object, lines), a line being (offset in the object, number of its fields, per core
        (core, ranges read, ranges written)). Of a program the offset is the address of the line."""

    def fields(self, number: int) -> _Fields:
        """What the bytes of a line are called, by the number in a picture: (offset, size in bytes, name) each."""

@final
class ProgramFile:
    """An ELF program or library with its symbols and debug information. Belongs to the thread that made it."""

    def __new__(cls, path: str | PathLike[str], *, with_debug_file: bool = True) -> Self:
        """Reads a file, `with_debug_file` also what a debug package or server has of a stripped one; ValueError says in
        one line what is wrong with it."""

    def passed_over(self) -> str | None:
        """What there was for the file, but was not used, and why; None if there was nothing."""

    def address_at(self, offset: int) -> int | None:
        """The file's own address of what stands at an offset; None if nothing there is mapped."""

    def code(self, address: int) -> list[tuple[str, tuple[str, int] | None]]:
        """The functions that an instruction belongs to, the innermost first: name, and file and line if known."""

    def variable(self, address: int) -> tuple[str, int] | None:
        """The variable that an address lies in, and how many bytes after its start."""

@final
class RelocatableFile:
    """A kernel's module, or another relocatable file, as it was loaded. Belongs to the thread that made it."""

    def __new__(cls, path: str | PathLike[str], functions: Mapping[str, int]) -> Self:
        """Reads a file whose functions were loaded at these addresses; ValueError says in one line what is wrong with
        it."""

    def code(self, address: int) -> list[tuple[str, tuple[str, int] | None]]:
        """The functions that an instruction belongs to, the innermost first: name, and file and line if known."""

_T = TypeVar("_T")
_Term = tuple[Any, ...]
_Linear = tuple[tuple[tuple[int, int], ...], int]

NOT_DETERMINISTIC: str
"""What is said of a model that asks something else when it is run again."""

OF_ANOTHER_RUN: str
"""What is said of a model that uses a value that it kept from another run."""

MAX_DECISIONS_PER_PATH: int
"""A model that decides more on one path is taken to loop."""

class Infeasible(Exception):
    """The path contradicts a restriction that the model puts on its states: it says nothing about commutativity."""

@final
class Literal:
    """An atomic statement: kind `bool` (an unknown), `same` (two values of a sort) or `<=`, `==` (a linear expression
    against 0). Operands are indices of unknowns, or a `Linear`."""

    def __new__(cls, kind: str, left: Any, right: int | None = None) -> Self: ...
    def __hash__(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def left(self) -> Any: ...
    @property
    def right(self) -> Any: ...

@final
class Decision:
    """A literal and the side taken; unpacks into both."""

    def __new__(cls, literal: Literal, holds: bool) -> Self: ...
    def __hash__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    @property
    def literal(self) -> Literal: ...
    @property
    def holds(self) -> bool: ...

@final
class Mark:
    """A point on a path to go back to."""

@final
class Context:
    """The unknowns, decisions and consequences of one path; `prefix` prescribes its first decisions.

    While `in_restriction`, branches ask what the model demands of its states. `may_share` is set where a record that a
    state holds was stored again.
    """

    in_restriction: bool
    may_share: bool
    def __new__(cls, prefix: Sequence[Decision] = ...) -> Self: ...
    def step(self, function: Callable[[], _T]) -> _T:
        """What a part of the program returns: it runs unless a path before has gone through it in the same way.

        All that has come into being or was changed in it stands as if it had run. So it changes what it did not make
        itself by way of `put` and `undo_with` alone, unknowns come into being in steps or after the last one, and the
        program asks for the same steps again where it has decided the same. No step is part of another.
        """

    def first_of(self, functions: list[Callable[[], _T | None]]) -> _T | None:
        """What the first of several steps returns that does not return None; those after it are not made."""

    def put(self, mapping: dict[Any, Any], key: Any, value: Any) -> None:
        """Sets a key of a mapping that outlives the step."""

    def undo_pop(self, mapping: dict[Any, Any], key: Any) -> None:
        """Says that a key, which the step is about to set, was not in a mapping."""

    def undo_with(self, function: Callable[..., object], *arguments: Any) -> None:
        """Says what takes a change back that the step is about to make."""

    def end_path(self) -> int:
        """How many decisions the path has taken that ends here; UsageError if they are fewer than its prefix has."""

    def next_path(self, decided: int) -> bool:
        """Begins the next path in the order of a depth-first search, after one that has taken this many decisions.

        Keeps the steps in which none but decisions of both were taken. False if there is no other path.
        """

    def mark(self) -> Mark:
        """The point that the path has reached."""

    def take_back(self, mark: Mark) -> None:
        """Takes back all that was decided and changed after a point."""

    def new_bool(self, term: _Term) -> int:
        """The index of a new boolean unknown."""

    def new_int(self, term: _Term, low: int | None, high: int | None) -> int:
        """The index of a new integer unknown with inclusive bounds (None: unbounded)."""

    def new_sort_value(self, sort: str, term: _Term, *, fresh: bool = False) -> int:
        """The index of a new value of a sort; a fresh one differs from every value that is not fresh."""

    def decide(self, literal: Literal) -> bool:
        """Whether the literal holds on this path."""

    def restrict(self, literal: Literal, holds: bool = True) -> None:
        """Excludes states in which the literal is not as said; Infeasible if this path needs such a state."""

    def assume(self, literal: Literal, holds: bool) -> None:
        """Decides an open literal without asking the prefix."""

    def implied(self, literal: Literal) -> bool | None:
        """The truth of the literal if what was decided settles it, else None."""

    def find(self, index: int) -> int:
        """The representative of the values that are known to equal this one."""

    def is_fresh(self, index: int) -> bool:
        """Whether a value was made as one that differs from all that are not fresh."""

    def bool_value(self, index: int) -> bool | None:
        """The truth of a boolean unknown, None where it is open."""

    def int_solution(self) -> dict[int, int]:
        """Small values for all integer unknowns that satisfy every decision."""

    def int_values_apart(self, held: Sequence[int]) -> dict[int, int]:
        """Values for all integer unknowns that satisfy every decision and differ where those leave it open; `held` ones
        are as small as in `int_solution`."""

    def constrained_ints(self) -> set[int]:
        """The integer unknowns that some decision or restriction (bounds apart) mentions."""

    def decided(self, start: int = 0, end: int | None = None) -> tuple[Decision, ...]:
        """The branches taken, from one position to before another."""

    @property
    def trail(self) -> list[Decision]:
        """The branches taken."""

    @property
    def trail_length(self) -> int:
        """How many branches were taken."""

    @property
    def restrictions(self) -> list[Decision]:
        """What was taken for granted without a branch."""

    @property
    def restricted(self) -> set[int]:
        """The positions in the trail of decisions about presence and flags that the model demanded of its states, which
        a reader need not know."""

    @property
    def bool_terms(self) -> list[_Term]: ...
    @property
    def int_terms(self) -> list[_Term]: ...
    @property
    def sort_terms(self) -> list[_Term]: ...
    @property
    def sort_names(self) -> list[str]: ...
    @property
    def bool_usual(self) -> dict[int, bool]: ...
    @property
    def content_sorts(self) -> set[str]: ...
    @property
    def constants(self) -> dict[int, int]: ...

def current() -> Context:
    """The context of the run under way."""

def install(context: Context | None) -> Context | None:
    """Makes a context the current one and returns the one before."""

def add(left: _Linear, right: _Linear, factor: int = ...) -> _Linear:
    """`left + factor * right`; the factor is 1 by default."""

def scale(linear: _Linear, factor: int) -> _Linear:
    """`factor * linear`."""

def value_of(linear: _Linear, values: dict[int, int]) -> int:
    """The value of a linear expression; every variable must have one."""

def solve(constraints: Iterable[tuple[str, _Linear]]) -> Mapping[int, int] | None:
    """Values for all variables of the constraints that satisfy them, or None if there are none.

    Values are small: as near to the tightest lower bound, or to zero, as the constraints allow.
    """

def solver_statistics() -> tuple[int, int]:
    """How often this thread has asked for a solution, and how many of the questions had not been asked before."""

@final
class FactTable:
    """Terms and what facts are about, by number. An atom's number is positive; the opposite fact is its negative."""

    def __new__(cls) -> Self: ...
    def new_term(self, symbol: int, arguments: list[int], low: int | None = None, high: int | None = None) -> int:
        """The number of a new term: a function's value, within bounds if it is a number."""

    def new_truth(self, term: int) -> int:
        """The number of the atom that a term is true."""

    def new_same(self, left: int, right: int) -> int:
        """The number of the atom that two terms are the same."""

    def new_comparison(self, is_equal: bool, terms: list[tuple[int, int]], constant: int) -> int:
        """The number of the atom that a sum is 0 (`is_equal`), or at most 0."""

    def contradictory(self, facts: Sequence[int]) -> bool:
        """Whether the facts cannot hold together; False may also mean that this was not found out."""

    def cubes(self, cubes: Sequence[Sequence[int]]) -> Cubes:
        """Conjunctions that others are compared with."""

    def first_compatible(self, facts: Sequence[int], cubes: Cubes, first: Sequence[int]) -> int | None:
        """The place of a conjunction that can hold together with these facts; those at `first` are asked first."""

    def implied(self, facts: Sequence[int], cubes: Cubes) -> list[int]:
        """The places of the conjunctions that the facts imply."""

@final
class Cubes:
    """Conjunctions of facts of one table."""

@final
class SortValue:
    """A value of an uninterpreted sort; only `==` and `!=` make sense."""

    def __new__(cls, index: int, sort: str) -> Self: ...
    @property
    def index(self) -> int: ...
    @property
    def sort(self) -> str: ...

@final
class BoolValue:
    """An unknown truth value."""

    def __new__(cls, index: int) -> Self: ...
    def __bool__(self) -> bool: ...
    @property
    def index(self) -> int: ...

@final
class IntValue:
    """A linear expression over unknown integers."""

    def __new__(cls, linear: _Linear) -> Self: ...
    @staticmethod
    def variable(index: int) -> IntValue:
        """The unknown of this index."""

    @property
    def linear(self) -> _Linear: ...
    def __add__(self, other: Any, /) -> Any: ...
    def __radd__(self, other: Any, /) -> Any: ...
    def __sub__(self, other: Any, /) -> Any: ...
    def __rsub__(self, other: Any, /) -> Any: ...
    def __mul__(self, other: Any, /) -> Any: ...
    def __rmul__(self, other: Any, /) -> Any: ...
    def __neg__(self) -> Any: ...
    def __pos__(self) -> IntValue: ...
    def __le__(self, other: Any, /) -> bool: ...
    def __lt__(self, other: Any, /) -> bool: ...
    def __ge__(self, other: Any, /) -> bool: ...
    def __gt__(self, other: Any, /) -> bool: ...
    def __bool__(self) -> bool: ...
    def __index__(self) -> int: ...

@final
class Entry:
    """A touched key of a map's initial content. Its value comes into being when first asked for."""

    @property
    def key(self) -> Any: ...
    @property
    def presence(self) -> BoolValue | bool:
        """What its presence depends on; False where it is absent in every initial state."""

    @property
    def known(self) -> bool:
        """Whether its value has been asked for."""

    @property
    def arguments(self) -> tuple[_Term, ...]:
        """The keys that lead to this entry's value, outermost map first."""

    @property
    def value(self) -> Any:
        """The initial value; meaningful where the entry is present."""

@final
class MapContent:
    """The initial content of a map, as far as it has been touched; shared by all views. `empty`: there is none."""

    def __new__(
        cls,
        type_: Any,
        name: str,
        place: Entry | None,
        hook: Callable[[Any, Any], Any] | None,
        *,
        empty: bool = False,
    ) -> Self: ...

    hook: Callable[[Any, Any], Any] | None

    @property
    def type(self) -> Any: ...
    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int | None:
        """The unknown that says how many entries there are, once somebody has asked."""

    @property
    def entries(self) -> list[Entry]:
        """The touched keys, in the order in which they were."""

def len(value: Any) -> Any:
    """`len` as models see it: of a map of unknown content, too."""

@final
class Cell:
    """What a view holds under a key by itself: a value that was `assigned`, or a copy of one, which may have been
    changed since."""

    @property
    def present(self) -> bool: ...
    @property
    def value(self) -> Any: ...
    @property
    def assigned(self) -> bool: ...

@final
class SymbolicMap:
    """One order's view of a map: the view that it is a copy of (`source`; none for the initial content), and what was
    looked at and written since."""

    def __new__(cls, content: MapContent) -> Self: ...
    @property
    def content(self) -> MapContent: ...
    @property
    def source(self) -> SymbolicMap | None: ...
    @property
    def cells(self) -> list[tuple[int, Cell]]:
        """What the view holds by itself, with the number of the entry."""

    @property
    def cleared(self) -> bool:
        """Whether it ever was cleared."""

    def initial(self) -> SymbolicMap:
        """A view of the initial content."""

    def copy(self) -> SymbolicMap:
        """A map of its own that holds what this one does now, whatever either becomes."""

    def _view(self) -> SymbolicMap:
        """A view that starts from this one and changes alone; this one must not change any more."""

    def length(self) -> Any:
        """How many entries there are."""

    def add(self, key: Any) -> None:
        """Adds a key to a set, which is a map to nothing."""

    def remove(self, key: Any) -> None:
        """Removes a key that is there."""

    def discard(self, key: Any) -> None:
        """Removes a key if it is there."""

    def clear(self) -> None:
        """Removes every entry, touched or not."""

    def held(self, number: int) -> Cell | None:
        """What this view or one before it holds under the key of this entry; None if that is what the initial content
        holds."""

    def value(self, number: int) -> Any:
        """The value of an entry, ready to be changed in this view; meaningful where it is present."""

    def assign(self, number: int, present: bool, value: Any) -> None:
        """Puts a value in the place of an entry's, or (`present` is false) removes it."""

    def lowest_absent(self, *prefix: Any) -> Any:
        """The smallest number from 0 that is no key; with a prefix, no last part of a key `(*prefix, number)`."""

    def touched(self) -> list[tuple[Any, Any]]:
        """The entries that calls have touched and that are present."""

    def equal_where(
        self,
        other: SymbolicMap,
        relevant: Callable[[Any], Any],
        default: Any = None,
        same: Callable[[Any, Any], Any] | None = None,
    ) -> bool:
        """Whether both hold the same under every relevant key, an absent key holding `default`; `same` compares values
        (None: by `==`)."""

    def __contains__(self, key: Any, /) -> bool: ...
    def __getitem__(self, key: Any, /) -> Any: ...
    def __setitem__(self, key: Any, value: Any, /) -> None: ...
    def __delitem__(self, key: Any, /) -> None: ...
    def get(self, key: Any, default: Any = None) -> Any:
        """The value, or the default where the key is absent."""

    def pop(self, key: Any, *default: Any) -> Any:
        """Removes the key and returns its value."""

    def keys(self) -> NoReturn:
        """UsageError: no model may ask for all keys; likewise `values` and `items`."""

    def values(self) -> NoReturn: ...
    def items(self) -> NoReturn: ...

class LazyRecord:
    """A record whose values come into being when they are first asked for; what it holds itself is in `__dict__`, which
    a subclass has."""

    _held: bool
    def __new__(cls, *_: Any, **__: Any) -> Self:
        """A record without an origin, whatever its author's `__init__` takes."""

    @classmethod
    def from_origin(cls, origin: Callable[[Self, str], Any], eager: tuple[str, ...] | None = None) -> Self:
        """A record whose values are `origin(record, name)`, those in `eager` at once."""

    def __getattribute__(self, name: str, /) -> Any: ...
    @property
    def _source(self) -> Self | None:
        """The record that this one is a copy of, if any."""

    def _equals_in(self, other: Self, names: tuple[str, ...]) -> bool:
        """Whether two records hold equal values under all of these names. What both have from one record is not looked
        at."""

    def _seen(self, name: str) -> Any:
        """A value as it is, without a copy of it."""

def clone(value: _T) -> _T:
    """A copy of a part of a state that can change without the original, which must not change any more; unknown scalars
    are shared."""

def changed(copy: object, original: object) -> bool:
    """Whether a copy of a part of a state has been changed since. Decides nothing; what was replaced by its equal
    counts, too."""

def independent(left: LazyRecord, right: LazyRecord) -> bool:
    """Whether neither of two runs, which left these states, changed what the other looked at. Decides nothing; False
    may also mean that this is not known."""

def transfer(run: LazyRecord, state: LazyRecord) -> None:
    """Changes a state as a run changed the copy that it left: one that is independent of what led to the state."""
