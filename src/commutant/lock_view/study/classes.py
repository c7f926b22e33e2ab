"""Locks of one kind together: all instances that lie in one variable, or that one function used first."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from commutant.documents import Count, Part, Percent
from commutant.lock_view.record import FieldRecord, LockFamily, LockRecord, Recording
from commutant.lock_view.study.kernel_names import KernelAddressNames
from commutant.lock_view.study.names import PLUMBING, AddressNames, Frame
from commutant.lock_view.study.simulation import HAND_OVERS

Names = AddressNames | KernelAddressNames

SHORT_INSTRUCTIONS = 1000
"""A section of this many costs less than what its lock's word costs that comes from another core."""

MOSTLY_READERS_PERCENT = 90


@dataclass(frozen=True, slots=True)
class ConflictField:
    """A datum on which sections conflict, named; `pairs_on_it_alone` would be independent without it."""

    name: str
    pairs: int
    pairs_on_it_alone: int
    sides: tuple[tuple[bool, list[Frame]], tuple[bool, list[Frame]]]


@dataclass(frozen=True, slots=True)
class FieldGroup:
    """Data on which pairs of sections conflict together: `pairs` conflict on these and on nothing else."""

    names: tuple[str, ...]
    pairs: int

    def __str__(self) -> str:
        """As `stats (3 fields)` where all lie in one variable, else all names."""
        bases = {name.partition("+0x")[0] for name in self.names}
        if len(bases) == 1:
            return f"{bases.pop()} ({len(self.names)} fields)"
        return f"{', '.join(self.names[:-1])} and {self.names[-1]}"


class Caller(Part, frozen=True):
    """A function that holds the lock; of the pairs with one of its sections, `independence_percent` touch disjoint
    data."""

    name: str
    sections: Count
    hold_instructions: Count
    independence_percent: Percent | None


@dataclass(slots=True)
class LockClass:
    """Locks of one kind. Every share is in percent and None where there is nothing to take it of."""

    name: str
    family: LockFamily
    locks: list[LockRecord] = field(default_factory=list)
    fields: list[ConflictField] = field(default_factory=list)
    together: FieldGroup | None = None
    """What would have to go together for most pairs; None where one field alone does as much."""
    callers: list[Caller] = field(default_factory=list)

    def total(self, of: Callable[[LockRecord], int]) -> int:
        """The sum over all instances."""
        return sum(of(lock) for lock in self.locks)

    @property
    def instances(self) -> int:
        """Locks, by address."""
        return self.total(lambda lock: lock.instances)

    @property
    def acquired(self) -> int:
        """Acquires."""
        return self.total(lambda lock: lock.acquires)

    @property
    def contended(self) -> int:
        """Acquires that had to wait."""
        return self.total(lambda lock: lock.contended)

    @property
    def hold_instructions(self) -> int:
        """Instructions executed while the lock was held."""
        return self.total(lambda lock: lock.hold.total.instructions)

    @property
    def ranked_hold(self) -> int:
        """The same, and nothing where half of the sections or more never ended: how long those are is not known, and
        what began them may have been no lock."""
        return 0 if 2 * self.total(lambda lock: lock.never_released) >= self.acquired else self.hold_instructions

    @property
    def is_nameless(self) -> bool:
        """Whether its name is a place in a file without symbols."""
        return "+0x" in self.name and self.name.startswith("lock of ")

    @property
    def reader_writes(self) -> int:
        """How often readers wrote the lock's own word, where nearly all acquires are of several threads' readers and
        sections are short, so that they meet there; else 0. Each writes it when it comes and when it goes."""
        of_readers = [lock for lock in self.locks if len(lock.threads) > 1]
        shared = sum(lock.shared_acquires for lock in of_readers)
        kinds = [kind for lock in of_readers for kind in lock.kinds]
        held = sum(kind.hold.total.instructions for kind in kinds)
        by_readers = sum(kind.hold.total.instructions for kind in kinds if kind.shared)
        if 100 * by_readers < MOSTLY_READERS_PERCENT * held:
            return 0  # few long sections of writers do keep the others out
        is_short = self.hold_instructions < SHORT_INSTRUCTIONS * max(1, self.acquired)
        return 2 * shared if is_short and 100 * shared >= MOSTLY_READERS_PERCENT * self.acquired else 0

    @property
    def hold_nanoseconds(self) -> int:
        """Time from acquires to releases."""
        return self.total(lambda lock: lock.hold.total.nanoseconds)

    @property
    def wait_nanoseconds(self) -> int:
        """Time from attempts to acquires, of those that waited."""
        return self.total(lambda lock: lock.wait.total.nanoseconds)

    def independence_percent(self, granularity: int = 0) -> float | None:
        """Pairs of sections of different threads that share no written datum (of 1, 8, 64 bytes by granularity)."""
        compared = self.total(lambda lock: lock.pairs.compared)
        return _percent(compared - self.total(lambda lock: lock.pairs.conflicting[granularity]), compared)

    def independence_without_per_cpu_percent(self, granularity: int = 0) -> float | None:
        """The same without data that both sections reached as those of the processor that they ran on."""
        compared = self.total(lambda lock: lock.pairs.compared)
        conflicting = self.total(lambda lock: lock.pairs.conflicting_without_per_cpu[granularity])
        return _percent(compared - conflicting, compared)

    def window_independence_percent(self, window_sections: int) -> float | None:
        """Pairs without conflict had the window been smaller; None for a size that was not counted."""
        sizes = [window for lock in self.locks for window in lock.windows if window.window_sections == window_sections]
        pairs = sum(window.pairs for window in sizes)
        return _percent(pairs - sum(window.conflicting_pairs for window in sizes), pairs)

    @property
    def conflicting_acquires_percent(self) -> float | None:
        """Sections that conflict with at least one of those that they were compared with (the paper's Table 3)."""
        compared = self.total(lambda lock: lock.compared_sections)
        return _percent(self.total(lambda lock: lock.conflicting_sections[0]), compared)

    @property
    def contended_conflicts_percent(self) -> float | None:
        """Sections that conflict with one that they waited for (the paper's Table 2)."""
        compared = self.total(lambda lock: lock.contended_compared)
        return _percent(self.total(lambda lock: lock.contended_conflicts), compared)

    @property
    def mean_set_bytes(self) -> float | None:
        """Bytes in an address set."""
        sections = self.total(lambda lock: lock.sections)
        return self.total(lambda lock: lock.set_bytes) / sections if sections else None

    @property
    def mean_conflicting_bytes(self) -> float | None:
        """Bytes on which a conflicting pair conflicts."""
        pairs = self.total(lambda lock: lock.pairs.conflicting[0])
        return self.total(lambda lock: lock.pairs.conflicting_bytes) / pairs if pairs else None

    @property
    def conflicting_bytes_percent(self) -> float | None:
        """Conflicting bytes of those in the address sets of sections that conflict."""
        total = self.total(lambda lock: lock.pairs.set_bytes)
        return _percent(self.total(lambda lock: lock.pairs.conflicting_bytes), total)

    def speed_up(self, crowd: int) -> float | None:
        """Processors that the sections could keep busy, by the index of the crowd; weighted by time held."""
        known = [(lock, lock.speed_ups[crowd]) for lock in self.locks]
        weights = [(max(1, lock.hold.total.instructions), value) for lock, value in known if value is not None]
        total = sum(weight for weight, _ in weights)
        return sum(weight * value for weight, value in weights) / total if total else None


@dataclass(frozen=True, slots=True)
class LockStudy:
    """All classes of a record, and what holds over all of them."""

    record: Recording
    classes: tuple[LockClass, ...]
    unreadable: dict[str, str]
    hand_overs: tuple[float, float] = HAND_OVERS
    """What a hand-over of a lock costs, in instructions: at least and at most."""

    @property
    def waiting_instructions(self) -> int:
        """Instructions that threads executed while they waited for a lock: what spins is not work."""
        waited = sum(one.total(lambda lock: lock.wait.total.instructions) for one in self.classes)
        return min(waited, self.record.instructions)

    @property
    def work_instructions(self) -> int:
        """All instructions but those of waiting."""
        return self.record.instructions - self.waiting_instructions

    @property
    def held_percent(self) -> float | None:
        """Of all work, what is executed with a lock held; with several held at once it counts for each."""
        return _percent(sum(one.hold_instructions for one in self.classes), self.work_instructions)

    def fullest_percent(self, one: LockClass) -> float:
        """Of all work, what is executed with the one lock of a class held that is held most."""
        longest = max(lock.hold.total.instructions / lock.instances for lock in one.locks)
        return 100.0 * longest / self.work_instructions if self.work_instructions else 0.0

    @property
    def independence_percent(self) -> float | None:
        """Pairs without conflict, averaged over all locks, weighted by time held (the paper: 24.1 %)."""
        return self._weighted(lambda lock: lock.independence_percent())

    @property
    def independence_without_per_cpu_percent(self) -> float | None:
        """The same without data of the processor that a section ran on."""
        return self._weighted(lambda lock: lock.independence_without_per_cpu_percent())

    def speed_up(self, crowd: int) -> float | None:
        """Processors kept busy, averaged over all locks, weighted by time held."""
        return self._weighted(lambda lock: lock.speed_up(crowd))

    def of_family(self, family: str) -> LockStudy:
        """The classes of one family of locks ("spinlock", "mutex", ...)."""
        chosen = tuple(one for one in self.classes if one.family == family)
        return replace(self, classes=chosen)

    @property
    def named_percent(self) -> float | None:
        """Acquires of locks that are known as a variable or a type's field."""
        known = sum(one.total(lambda lock: lock.acquires * _is_named(lock)) for one in self.classes)
        return _percent(known, sum(one.acquired for one in self.classes))

    def _weighted(self, of: Callable[[LockClass], float | None]) -> float | None:
        known = [(max(1, one.hold_instructions), value) for one in self.classes if (value := of(one)) is not None]
        total = sum(weight for weight, _ in known)
        return sum(weight * value for weight, value in known) / total if total else None


def study(
    record: Recording, names: Names | None = None, *, by: str = "class", hand_overs: tuple[float, float] = HAND_OVERS
) -> LockStudy:
    """Names the locks of a record and puts those of one kind together, or, `by` "instance", tells each apart.

    `hand_overs` are the least and the most that a hand-over of a lock costs, for predictions. `names` are the kernel's
    for its record; a program's are found in the files that it had mapped.
    """
    names = names or AddressNames(record.mappings, record.stacks)
    classes: dict[tuple[str, LockFamily], LockClass] = {}
    called = _class_name if by == "class" else _InstanceNames()
    for lock in record.locks:
        name, family = called(lock, names), _family(lock)
        classes.setdefault((name, family), LockClass(name, family)).locks.append(lock)
    for one in classes.values():
        one.fields = _fields(one.locks, names)
        one.together = _together(one.locks, one.fields, names)
        one.callers = _callers(one.locks, names)
    ordered = sorted(classes.values(), key=lambda one: (-one.ranked_hold, one.name))
    return LockStudy(record, tuple(ordered), names.unreadable, hand_overs)


def _family(lock: LockRecord) -> LockFamily:
    return lock.klass.family if lock.klass else "lock"


def _is_named(lock: LockRecord) -> bool:
    return lock.klass is None or lock.klass.known


def _class_name(lock: LockRecord, names: Names) -> str:
    if lock.klass is not None:
        return lock.klass.name
    variable = names.variable(lock.address)
    if variable is not None:
        # The fields of a system library's variable, and its functions without name, mean nothing to a program's author.
        return variable.partition("+0x")[0] if variable.startswith(PLUMBING) else variable
    user = names.owner(lock.first_stack) if lock.inlined else names.user(lock.first_stack)
    if user and user.file.startswith(PLUMBING) and (lock.inlined or user.function.startswith(f"{user.file}+")):
        return f"locks inside {user.file}"
    return f"lock of {user.function}" if user else "lock of unknown code"


class _InstanceNames:
    """Names for single locks: by the memory that they lie in, and the first one, the second one and so on there."""

    def __init__(self) -> None:
        self._known: Counter[str] = Counter()

    def __call__(self, lock: LockRecord, names: Names) -> str:
        """The name of the next lock of a record."""
        name = _class_name(lock, names)
        if lock.instances > 1:
            return f"{name} (others)"
        if lock.klass is None and names.variable(lock.address) == name:
            return name
        place = f"{name} ({names.memory(lock.address)}"
        self._known[place] += 1
        return f"{place})" if self._known[place] == 1 else f"{place}, {self._known[place]})"


def _fields(locks: Sequence[LockRecord], names: Names) -> list[ConflictField]:
    examples: dict[str, FieldRecord] = {}
    pairs: dict[str, int] = defaultdict(int)
    alone: dict[str, int] = defaultdict(int)
    for lock in locks:
        for recorded in lock.fields:
            name = _field_name(recorded, names)
            examples.setdefault(name, recorded)
            pairs[name] += recorded.pairs
            alone[name] += recorded.pairs_on_it_alone
    ranked = sorted(examples, key=lambda name: (-pairs[name], -alone[name], name))

    def sides(name: str) -> tuple[tuple[bool, list[Frame]], tuple[bool, list[Frame]]]:
        one, other = examples[name].sides
        return (one.write, names.stack(one.addresses)), (other.write, names.stack(other.addresses))

    return [ConflictField(name, pairs[name], alone[name], sides(name)) for name in ranked]


_GROUP_LIMIT = 8
"""Fields that somebody would take out of a lock together."""


def _together(locks: Sequence[LockRecord], fields: Sequence[ConflictField], names: Names) -> FieldGroup | None:
    sets: dict[frozenset[str], int] = defaultdict(int)
    for lock in locks:
        of_places = [_field_name(recorded, names) for recorded in lock.fields]
        for known in lock.field_sets:
            sets[frozenset(of_places[place] for place in known.fields)] += known.pairs
    freed = {group: sum(pairs for known, pairs in sets.items() if known <= group) for group in sets}
    order = {one.name: place for place, one in enumerate(fields)}
    groups = [group for group in freed if 1 < len(group) <= _GROUP_LIMIT]
    best = max(groups, key=lambda group: (freed[group], -len(group), sorted(group)), default=None)
    if best is None or freed[best] <= max(one.pairs_on_it_alone for one in fields):
        return None
    return FieldGroup(tuple(sorted(best, key=lambda name: order[name])), freed[best])


def _field_name(recorded: FieldRecord, names: Names) -> str:
    if recorded.name is not None:
        return recorded.name
    if recorded.kind == "variable":
        return names.variable(recorded.address) or f"data {names.memory(recorded.address)}"
    if recorded.kind == "beside_lock":
        return f"lock+{recorded.offset:#x}"
    places = sorted({str(names.frames(side.addresses[0])[0]) for side in recorded.sides if side.addresses})
    return f"data of {' and '.join(places)}" if places else "data of unknown code"


def _callers(locks: Sequence[LockRecord], names: Names) -> list[Caller]:
    sections: dict[str, int] = defaultdict(int)
    hold: dict[str, int] = defaultdict(int)
    compared: dict[str, int] = defaultdict(int)
    conflicting: dict[str, int] = defaultdict(int)
    for lock in locks:
        of_kinds = [str(names.frames(kind.caller)[0]) for kind in lock.kinds]
        for name, kind in zip(of_kinds, lock.kinds, strict=True):
            sections[name] += kind.sections
            hold[name] += kind.hold.total.instructions
        for pair in lock.kind_pairs:
            for name in {of_kinds[kind] for kind in pair.kinds}:
                compared[name] += pair.compared
                conflicting[name] += pair.conflicting[0]
    return [
        Caller(name, sections[name], hold[name], _percent(compared[name] - conflicting[name], compared[name]))
        for name in sorted(hold, key=lambda name: (-hold[name], name))
    ]


def _percent(part: int, whole: int) -> float | None:
    return 100.0 * part / whole if whole else None
