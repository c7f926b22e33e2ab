//! Types of objects that have no cache of their own, found by following pointers from what is known.
//!
//! ```text
//! for each root (running tasks, variables, all tasks), in order:
//!     append its objects to the queue
//!     for each object in the queue that has not been followed, in order:
//!         if it holds the wanted address: done
//!         append what its pointers lead to, unless it is in the queue already
//! ```
//! The queue is a table of fixed size, which stays for the next question in the same window: a second question first looks
//! through what is there, then goes on with the walk where the first one stopped.

use super::space::Space;
use crate::layout::{Edge, EdgeKind, Guard, Root, RootKind};

/// Objects that one window's walk may visit.
const OBJECT_LIMIT: usize = 1024;
/// Slots of the set of known objects; a power of two, larger than `OBJECT_LIMIT` for short probes.
const SLOT_COUNT: usize = 2048;
/// Objects on one list.
const LIST_LIMIT: usize = 256;

/// An object of a known type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TypedObject {
    pub start: u64,
    pub size_bytes: u64,
    /// Index into the layout's types.
    pub kind: u16,
    /// Whether `start` is an offset of the per-CPU area.
    pub per_cpu: bool,
}

/// What the walk has found so far.
pub(super) struct PointerWalk {
    objects: [TypedObject; OBJECT_LIMIT],
    count: usize,
    /// Objects before it have had their pointers followed.
    followed: usize,
    /// Index into `objects` plus one; 0 is free. By hash of the start address.
    slots: [u16; SLOT_COUNT],
    /// Roots before it have been added.
    next_root: usize,
}

impl PointerWalk {
    pub const fn new() -> Self {
        const NONE: TypedObject = TypedObject { start: 0, size_bytes: 0, kind: 0, per_cpu: false };
        Self { objects: [NONE; OBJECT_LIMIT], count: 0, followed: 0, slots: [0; SLOT_COUNT], next_root: 0 }
    }

    /// The typed object that holds `address` (for per-CPU memory: the offset).
    pub fn find(&mut self, space: &Space<'_>, per_cpu: &[u64], address: u64, in_per_cpu: bool) -> Option<TypedObject> {
        let mut looked_at = 0;
        loop {
            while looked_at < self.count {
                let object = self.objects[looked_at];
                let holds = address.checked_sub(object.start).is_some_and(|within| within < object.size_bytes);
                if holds && object.per_cpu == in_per_cpu {
                    return Some(object);
                }
                looked_at += 1;
            }
            if self.followed < self.count {
                self.follow(space, self.objects[self.followed]);
                self.followed += 1;
            } else {
                self.add_root(space, per_cpu, space.layout.roots.get(self.next_root)?);
                self.next_root += 1;
            }
        }
    }

    fn add(&mut self, space: &Space<'_>, start: u64, kind: u16, per_cpu: bool) {
        // Objects lie in kernel space, aligned at least to 4 bytes; per-CPU offsets are small.
        if self.count == OBJECT_LIMIT || !start.is_multiple_of(4) || (start >> 63 == 0) != per_cpu || start == 0 {
            return;
        }
        let Some(entry) = space.layout.types.get(usize::from(kind)) else { return };
        let hash = (start >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let mut slot = hash as usize % SLOT_COUNT;
        while self.slots[slot] != 0 {
            let known = &self.objects[usize::from(self.slots[slot]) - 1];
            // One address may begin two objects, one embedded at the other's start.
            if known.start == start && known.kind == kind {
                return;
            }
            slot = (slot + 1) % SLOT_COUNT;
        }
        let allocated = if entry.is_array() && !per_cpu { space.allocated_behind(start) } else { None };
        let size_bytes = allocated.unwrap_or(0).max(entry.size_bytes);
        self.objects[self.count] = TypedObject { start, size_bytes, kind, per_cpu };
        self.count += 1;
        self.slots[slot] = self.count as u16;
    }

    fn add_root(&mut self, space: &Space<'_>, per_cpu: &[u64], root: &Root) {
        let mut add_pointed = |variable: Option<u64>| {
            if let Some(start) = variable.and_then(|variable| space.read_u64(variable)) {
                self.add(space, start, root.target, false);
            }
        };
        match root.kind {
            RootKind::Pointer => add_pointed(Some(root.address)),
            RootKind::Pointers(count) => {
                for index in 0..u64::from(count).min(LIST_LIMIT as u64) {
                    add_pointed(root.address.checked_add(8 * index));
                }
            }
            RootKind::PerCpuPointer => {
                for base in per_cpu {
                    add_pointed(base.checked_add(root.address));
                }
            }
            RootKind::PerCpuObject => {
                for base in per_cpu {
                    self.add(space, base.wrapping_add(root.address), root.target, false);
                }
            }
            RootKind::Object => self.add(space, root.address, root.target, false),
            RootKind::List(offset) => {
                let mut node = space.read_u64(root.address);
                for _ in 0..LIST_LIMIT {
                    let Some(link) = node.filter(|link| *link != root.address) else { return };
                    if let Some(start) = link.checked_sub(u64::from(offset)) {
                        self.add(space, start, root.target, false);
                    }
                    node = space.read_u64(link);
                }
            }
        }
    }

    fn follow(&mut self, space: &Space<'_>, object: TypedObject) {
        if object.per_cpu {
            return;
        }
        for edge in space.layout.edges_of(object.kind) {
            if edge.guard.is_some_and(|guard| !guard_holds(space, object.start, guard)) {
                continue;
            }
            let count = if let EdgeKind::Pointers(count) = edge.kind { u64::from(count).min(64) } else { 1 };
            for index in 0..count {
                let field = space.field(object.start, u64::from(edge.offset_bytes) + 8 * index);
                self.add_target(space, edge, field);
            }
        }
    }

    fn add_target(&mut self, space: &Space<'_>, edge: &Edge, pointer: Option<u64>) {
        let pointer =
            if edge.kind == EdgeKind::Page { pointer.and_then(|page| space.page_memory(page)) } else { pointer };
        let start = pointer.and_then(|pointer| pointer.checked_sub(u64::from(edge.target_offset_bytes)));
        if let Some(start) = start {
            self.add(space, start, edge.target, edge.kind == EdgeKind::PerCpu);
        }
    }
}

fn guard_holds(space: &Space<'_>, object: u64, guard: Guard) -> bool {
    space.field(object, u64::from(guard.offset_bytes)).is_some_and(|word| word & guard.mask == guard.value)
}
