"""What kind of thing a shared line is, and which technique to look at: a hint from names and access patterns, no proof.

The techniques are those of docs/guides/patterns.md, which follow section 6.3 of the paper; the table at its head and
`_technique` say the same. A kind is judged by the field's name, by the type of lock or count that the accessing
functions are made for, and by who writes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, StrEnum

from commutant.mtrace import Access, Finding


class HintKind(StrEnum):
    """What the shared bytes are used for."""

    REFERENCE_COUNT = "reference count"
    LOCK = "lock word"
    STATISTICS = "statistics counter"
    TIME = "time stamp"
    LIST_HEAD = "list head"
    DATA = "data"


class Technique(Enum):
    """A section of docs/guides/patterns.md: its heading, and what it proposes in one sentence."""

    SEPARATE = (
        "Separate the fields",
        "No byte is used by both cores: give what is written often a cache line of its own.",
    )
    PAIRS = (
        "Keep lines apart",
        "No line is used by both cores, but a pair that is fetched together: align what is written often to 128 bytes.",
    )
    LAYER = (
        "Layer scalable structures",
        "Put different elements on different lines: an array, a radix tree, a hash table with a lock per bucket.",
    )
    DEFER = (
        "Defer work",
        "Let every core count for itself and add up later, or clean up later where that need not happen at once.",
    )
    PER_CORE = (
        "Divide per core",
        "Give every core a part of its own; a reader of the whole reads all parts.",
    )
    CHECK_FIRST = (
        "Check first",
        "Find out by reading alone whether anything must change; take the lock only then.",
    )
    DO_NOT_READ = (
        "Do not read",
        "One side only reads: give it an interface that tells less, so that it need not touch the line.",
    )

    def __init__(self, title: str, advice: str) -> None:
        self.title = title
        self.advice = advice

    @property
    def anchor(self) -> str:
        """The section's anchor, as in `docs/guides/patterns.md#defer-work`."""
        return self.title.lower().replace(" ", "-")


@dataclass(frozen=True, slots=True)
class Hint:
    """What a finding looks like and what to look at first."""

    kind: HintKind
    technique: Technique

    @property
    def sentence(self) -> str:
        """The advice with its place in the documentation."""
        return f"{self.technique.title}: {self.technique.advice} (docs/guides/patterns.md#{self.technique.anchor})"


_LONGEST_NAME = 200  # characters that are looked at: the patterns take far longer for far longer names

# Of a path such as `d_lockref.count` each component is looked at, so words end at a dot, an underscore or a bracket.
_START, _END = r"(?:^|[._\s])(?:\w+_)?", r"(?=$|[._\s\[])"
_REFERENCE_COUNT = re.compile(
    rf"{_START}(?:_M_use_count|_M_weak_count|lockref|refcount|refcnt|refs?|kref|usage|users|f_count|i_count|b_count|d_count|mm_count|mnt_count|_count"
    rf"|ns\.count|non_rcu|writecount|active_refs|i_nlink){_END}"
)
_LOCK = re.compile(
    rf"{_START}(?:\w*lock|r?w?sem|mutex|osq|seq|seqcount|wait_lock|owner|rw_sem|spinlock|qspinlock){_END}"
)
_STATISTICS = re.compile(
    rf"(?:^|[._\s])(?:nr_\w+|n_\w+|total_\w+|\w*stat|\w*stats|\w*_cnt|\w*counter|\w*counters|i_version|hits|misses){_END}"
    # As members of classes are called, by libstdc++ as well.
    rf"|(?:^|[._\s])(?:\w+_)?(?:count_|counts_|size_|_M_element_count|_M_size){_END}"
    rf"|{_START}(?:free_inodes|free_blocks|used_blocks|next_\w+|t_handle_count|t_updates|t_outstanding_credits|last_ino|cookie|map_count|nonresident_age|rlimit"
    rf"|pipe_bufs|vm_stat|s_remove_count){_END}"
)
_TIME = re.compile(
    r"(?:^|[._\s])(?:__)?(?:\w+_)?(?:[acm]time|crtime|btime|dirtied_when|dirtied_time_when)(?=$|[._\s\[])"
)
_LIST_HEAD = re.compile(
    rf"{_START}(?:list|lists|lru|next|prev|pprev|subdirs|child|children|siblings?|hlist|hash|hashtable|alias|inodes|head"
    rf"|tail|first|queue|llist|rb|rb_root|rb_node|rb_leftmost|rb_subtree_last|anon_vma_chain){_END}|free list link$"
)
# A page's own `lru` is no list of all pages but its link in one: what is shared by it is the page.
_ALL_OBJECTS = re.compile(
    rf"{_START}(?:s_inodes|sb_list|inode_list_lock|lru|lru_lock){_END}(?<!struct page\.lru)|free list link$"
)
_LOCK_FUNCTION = re.compile(
    r"(?:^|_)(?:spin_(?:try)?(?:un)?lock|(?:read|write)_(?:try)?(?:un)?lock|mutex_(?:try)?(?:un)?lock|down|up)(?:_|$)"
    r"|queued_spin|rwsem_"
)
_LOCK_METHOD = re.compile(
    r"(?:^|::)(?:\w*(?:Mutex|RwLock|Lock|mutex|spinlock|_lock)(?:Guard)?)::"
    r"(?:(?:try_)?(?:un)?lock\w*|(?:try_)?(?:read|write)\w*|Lock|Unlock|drop)(?=$|[ +(])"
)
"""Of Rust's and C++'s locks, whose code is mostly a part of who takes them."""
_COUNT_FUNCTION = re.compile(r"lockref_|refcount_|(?:^|_)kref_|atomic_dec_and_|percpu_ref_")


def hint(finding: Finding, failing: bool = False) -> Hint:
    """The hint on a finding; `failing` says that one of the calls can only fail, so that it has nothing to write."""
    kind = kind_of(finding)
    return Hint(kind, _technique(finding, kind, failing))


def kind_of(finding: Finding) -> HintKind:
    """What the shared bytes are used for, by their name; where that says nothing, by the functions that touch them."""
    name = (finding.field or finding.object)[-_LONGEST_NAME:]
    kind = kind_by_name(name)
    if kind is not None:
        return kind
    if "per-CPU" in finding.object and name.rsplit(".", 1)[-1] == "count":
        return HintKind.STATISTICS
    functions = (finding.first.function[-_LONGEST_NAME:], finding.second.function[-_LONGEST_NAME:])
    if any(map(_COUNT_FUNCTION.search, functions)):
        return HintKind.REFERENCE_COUNT
    # Of false sharing the side that writes says what is in the way: the other one only has the line in common.
    sides = zip((finding.first, finding.second), functions, strict=True)
    asked = [name for side, name in sides if side.write or finding.sharing == "true"]
    if asked and all(map(_LOCK_FUNCTION.search, asked)):
        return HintKind.LOCK
    # An instruction's frames end with the first that has an offset: those before it were made a part of that function.
    both = (access for access, name in zip((finding.first, finding.second), functions, strict=True) if name in asked)
    return HintKind.LOCK if asked and all(map(_is_in_lock, both)) else HintKind.DATA


def _is_in_lock(access: Access) -> bool:
    for frame in access.stack:
        if _LOCK_METHOD.search(frame[:_LONGEST_NAME]):
            return True
        if "+0x" in frame:
            break
    return False


def kind_by_name(name: str) -> HintKind | None:
    """What bytes of this name are used for; None where the name says nothing."""
    patterns = (
        (HintKind.REFERENCE_COUNT, _REFERENCE_COUNT),
        (HintKind.LOCK, _LOCK),
        (HintKind.STATISTICS, _STATISTICS),
        (HintKind.TIME, _TIME),
        (HintKind.LIST_HEAD, _LIST_HEAD),
    )
    return next((kind for kind, pattern in patterns if pattern.search(name[-_LONGEST_NAME:])), None)


def _technique(finding: Finding, kind: HintKind, failing: bool) -> Technique:
    both_write = finding.first.write and finding.second.write
    if finding.first.prefetch and finding.second.prefetch:
        return Technique.CHECK_FIRST
    if finding.sharing == "false":
        return Technique.SEPARATE
    if finding.sharing == "neighbour":
        return Technique.PAIRS
    if kind is HintKind.REFERENCE_COUNT and both_write:
        return Technique.DEFER
    if kind is HintKind.STATISTICS or _ALL_OBJECTS.search(finding.name[-_LONGEST_NAME:]):
        return Technique.PER_CORE
    if failing and kind is HintKind.LOCK:
        return Technique.CHECK_FIRST
    if not both_write:
        return Technique.DO_NOT_READ
    if kind is HintKind.TIME:
        return Technique.PER_CORE
    return Technique.LAYER
