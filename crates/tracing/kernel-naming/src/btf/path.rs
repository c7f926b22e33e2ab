//! From an offset in a structure to the field there.
//!
//! A range of bytes is followed downward as long as one member holds all of it. Unions offer several members: the one
//! whose final field fits the range exactly is taken first, then one whose name is not private or padding (`__i_nlink`,
//! `_pt_pad_1`), then one that is not the link used for deferred work (`struct rcu_head`) unless who accesses it is known to
//! defer, then the one declared first; so a name depends on the access and the type alone. Array elements all have one name, `fd_array[]`: an index would make
//! a finding of each of them.

use super::{KernelTypes, Member, NESTING_LIMIT, Shape, TypeId};

/// One step of a path: a named member, its type, and where it begins in the structure that the path starts from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldStep {
    /// Member name, with `[]` after it where the step goes on into an array's elements. Two names joined by `..` where
    /// the range reaches over several members.
    pub name: String,
    /// Type of the member or array element, as declared (typedef names kept).
    pub kind: TypeId,
    /// Where the member or element begins, in bytes from the start of the outermost structure.
    pub offset_bytes: u64,
}

/// Which alternative of a union is meant where several fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnionUse {
    /// What the object is for.
    Plain,
    /// The link by which the object waits for deferred work (`struct callback_head`).
    Deferred,
}

/// The way from a structure down to a field.
pub type FieldPath = Vec<FieldStep>;

impl KernelTypes {
    /// The path to the `size_bytes` bytes at `offset_bytes` of `structure`. Empty where no member lies there (padding).
    #[must_use]
    pub fn path(&self, structure: TypeId, offset_bytes: u64, size_bytes: u64) -> FieldPath {
        self.path_used(structure, offset_bytes, size_bytes, UnionUse::Plain)
    }

    /// As [`KernelTypes::path`], for a known use of the bytes.
    #[must_use]
    pub fn path_used(&self, structure: TypeId, offset_bytes: u64, size_bytes: u64, union_use: UnionUse) -> FieldPath {
        let mut search = Search { types: self, start: offset_bytes, end: 0, union_use, steps: Vec::new() };
        search.end = offset_bytes.saturating_add(size_bytes.max(1));
        search.descend(structure);
        search.steps
    }
}

struct Search<'a> {
    types: &'a KernelTypes,
    start: u64,
    end: u64,
    union_use: UnionUse,
    steps: FieldPath,
}

/// Where a member lies, in bits of the outermost structure.
struct Extent {
    start_bits: u64,
    end_bits: u64,
}

impl Search<'_> {
    fn descend(&mut self, structure: TypeId) {
        let mut base = 0u64;
        let mut current = structure;
        for _ in 0..NESTING_LIMIT {
            current = self.types.strip(current);
            let Shape::Aggregate { union, .. } = self.types.shape(current) else { return };
            let chosen = if union { self.choose_from_union(current, base) } else { self.choose(current, base) };
            let Some(member) = chosen else { return };
            let Some(next) = self.step_into(member, base) else { return };
            (current, base) = next;
            // Unnamed parts say nothing yet.
            let named = !self.types.text(member.name).is_empty();
            if named && self.covers_whole(current, base) && !self.has_exact_scalar(current, base, NESTING_LIMIT) {
                return;
            }
        }
    }

    fn extent(&self, member: &Member, base: u64) -> Extent {
        let start_bits = base.saturating_mul(8).saturating_add(u64::from(member.offset_bits));
        let size_bits = match member.bit_field_bits {
            0 => self.types.size_bytes(member.kind).unwrap_or(0).saturating_mul(8),
            bits => u64::from(bits),
        };
        Extent { start_bits, end_bits: start_bits.saturating_add(size_bits) }
    }

    fn touches(&self, extent: &Extent) -> bool {
        extent.start_bits < self.end.saturating_mul(8) && extent.end_bits > self.start.saturating_mul(8)
    }

    fn holds(&self, extent: &Extent) -> bool {
        extent.start_bits <= self.start.saturating_mul(8) && extent.end_bits >= self.end.saturating_mul(8)
    }

    /// The member of a structure that holds the range. Where it reaches over several, a step that names the first and the
    /// last is pushed, and the search ends.
    fn choose(&mut self, aggregate: TypeId, base: u64) -> Option<Member> {
        let types = self.types;
        let members = types.members_of(aggregate);
        let mut touched = members.iter().filter(|member| self.touches(&self.extent(member, base)));
        let first = touched.next().copied().or_else(|| self.open_ended(aggregate, base))?;
        let Some(last) = touched.next_back() else { return Some(first) };
        let last_name = self.first_name(last, NESTING_LIMIT);
        self.steps.push(FieldStep {
            name: format!("{}..{last_name}", self.first_name(&first, NESTING_LIMIT)),
            kind: TypeId::VOID,
            offset_bytes: base.saturating_add(u64::from(first.offset_bits) / 8),
        });
        None
    }

    /// The flexible array (`struct upid numbers[]`, in old code `[1]`) at a structure's end, if the range lies after
    /// its start.
    fn open_ended(&self, aggregate: TypeId, base: u64) -> Option<Member> {
        let last = *self.types.members_of(aggregate).last()?;
        let flexible = matches!(self.types.shape(self.types.strip(last.kind)), Shape::Array { count: 0 | 1, .. });
        (flexible && self.extent(&last, base).start_bits <= self.start.saturating_mul(8)).then_some(last)
    }

    fn choose_from_union(&self, aggregate: TypeId, base: u64) -> Option<Member> {
        let types = self.types;
        let candidates = types.members_of(aggregate).iter().enumerate();
        let holding = candidates.filter(|(_, member)| self.holds(&self.extent(member, base)));
        let best = holding.min_by_key(|(index, member)| {
            let member_base = base.saturating_add(u64::from(member.offset_bits) / 8);
            let exact = self.has_exact_scalar(member.kind, member_base, NESTING_LIMIT);
            let name = self.name_below(member, base);
            let private = name.starts_with('_') || name.contains("pad");
            let deferred = self.leads_to_deferred_link(member, base);
            (!exact, private, deferred != (self.union_use == UnionUse::Deferred), *index)
        });
        best.map(|(_, member)| *member).or_else(|| {
            let mut members = types.members_of(aggregate).iter();
            members.find(|member| self.touches(&self.extent(member, base))).copied()
        })
    }

    /// The name that the range would get in this member of a union: its own, or that of the field within if it has none.
    fn name_below(&self, member: &Member, base: u64) -> &str {
        let mut member = *member;
        let mut base = base;
        for _ in 0..NESTING_LIMIT {
            let own = self.types.text(member.name);
            if !own.is_empty() {
                return own;
            }
            base = base.saturating_add(u64::from(member.offset_bits) / 8);
            let members = self.types.members_of(self.types.strip(member.kind));
            match members.iter().find(|inner| self.touches(&self.extent(inner, base))) {
                Some(inner) => member = *inner,
                None => return "_",
            }
        }
        "_"
    }

    /// Whether the range lies in the link used for deferred work, in this member of a union or in an unnamed part of it.
    fn leads_to_deferred_link(&self, member: &Member, base: u64) -> bool {
        let mut member = *member;
        let mut base = base;
        for _ in 0..NESTING_LIMIT {
            let kind = self.types.strip(member.kind);
            if self.types.name(kind) == "callback_head" {
                return true;
            }
            if !self.types.text(member.name).is_empty() {
                return false;
            }
            base = base.saturating_add(u64::from(member.offset_bits) / 8);
            let members = self.types.members_of(kind);
            let Some(inner) = members.iter().find(|inner| self.holds(&self.extent(inner, base))) else { return false };
            member = *inner;
        }
        false
    }

    /// The first name at or below a member.
    fn first_name(&self, member: &Member, depth: usize) -> &str {
        let own = self.types.text(member.name);
        match (own.is_empty(), depth.checked_sub(1)) {
            (true, Some(depth)) => {
                let members = self.types.members_of(self.types.strip(member.kind));
                members.first().map_or("", |inner| self.first_name(inner, depth))
            }
            _ => own,
        }
    }

    /// Whether the range is exactly a field without parts (integer, pointer) at or below a type.
    fn has_exact_scalar(&self, kind: TypeId, base: u64, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        let kind = self.types.strip(kind);
        match self.types.shape(kind) {
            Shape::Scalar { .. } | Shape::Pointer { .. } => self.covers_whole(kind, base),
            Shape::Array { element, .. } => match self.element(element, base) {
                Some((_, element_base)) => self.has_exact_scalar(element, element_base, depth),
                None => false,
            },
            Shape::Aggregate { .. } => {
                let holding = |member: &&Member| self.holds(&self.extent(member, base));
                // Only the first two: a union's further members cannot make the search exponential.
                self.types.members_of(kind).iter().filter(holding).take(2).any(|member| {
                    let member_base = base.saturating_add(u64::from(member.offset_bits) / 8);
                    member.bit_field_bits == 0 && self.has_exact_scalar(member.kind, member_base, depth.min(8))
                })
            }
            _ => false,
        }
    }

    fn covers_whole(&self, kind: TypeId, base: u64) -> bool {
        let size_bytes = self.types.size_bytes(kind).unwrap_or(0);
        self.start == base && self.end == base.saturating_add(size_bytes)
    }

    /// The array element that holds the range's start: its type's size and its offset. `None` if the range reaches over
    /// several elements.
    fn element(&self, element: TypeId, base: u64) -> Option<(u64, u64)> {
        let size_bytes = self.types.size_bytes(element).filter(|size_bytes| *size_bytes > 0)?;
        let index = self.start.checked_sub(base)? / size_bytes;
        let element_base = base.saturating_add(index.saturating_mul(size_bytes));
        (self.end <= element_base.saturating_add(size_bytes)).then_some((size_bytes, element_base))
    }

    /// Pushes the member's step; gives the type and offset to go on with, or `None` at the end of the path.
    fn step_into(&mut self, member: Member, base: u64) -> Option<(TypeId, u64)> {
        let mut kind = member.kind;
        let mut offset_bytes = base.saturating_add(u64::from(member.offset_bits) / 8);
        let mut name = self.types.text(member.name).to_owned();
        let mut complete = member.bit_field_bits == 0;
        for _ in 0..NESTING_LIMIT {
            let Shape::Array { element, .. } = self.types.shape(self.types.strip(kind)) else { break };
            name.push_str("[]");
            match self.element(element, offset_bytes) {
                Some((_, element_base)) => (kind, offset_bytes) = (element, element_base),
                None => {
                    complete = false;
                    break;
                }
            }
        }
        if !name.is_empty() {
            self.steps.push(FieldStep { name, kind, offset_bytes });
        }
        complete.then_some((kind, offset_bytes))
    }
}
