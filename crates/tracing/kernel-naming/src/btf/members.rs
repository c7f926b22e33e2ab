//! A structure written out: every member of it, and of the structures embedded in it, with its place.

use super::{KernelTypes, MEMBER_VISIT_LIMIT, NESTING_LIMIT, TypeId};

/// A member that embeds no further structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedMember {
    /// Its name after those of the members around it, `d_lockref.count`; unnamed structures have no part in it.
    pub path: String,
    /// From the start of the outermost structure, in bits.
    pub offset_bits: u64,
    /// In bits; 0 for what has no size (an array at the end).
    pub size_bits: u64,
    /// Whether it has less than whole bytes of its own.
    pub bit_field: bool,
    /// Whether it lies in a union, next to which other members have the same place.
    pub in_union: bool,
}

impl KernelTypes {
    /// All members of the structure or union of that name, in the order of declaration; `None` if there is none. Arrays
    /// are one member each. What nests deeper than any kernel does is left out.
    #[must_use]
    pub fn placed_members(&self, name: &str) -> Option<Vec<PlacedMember>> {
        let mut walk = Walk { types: self, visits: MEMBER_VISIT_LIMIT, found: Vec::new() };
        let id = self.structure(name)?;
        walk.descend(id, "", 0, self.is_union(id), NESTING_LIMIT);
        Some(walk.found)
    }

    /// The names of the structures and unions that hold one of that name as a part, directly or through parts without
    /// names, in alphabetical order.
    #[must_use]
    pub fn embedders(&self, name: &str) -> Vec<&str> {
        let Some(wanted) = self.structure(name) else { return Vec::new() };
        let mut visits = 10 * MEMBER_VISIT_LIMIT;
        let mut found: Vec<&str> = self
            .structs
            .iter()
            .filter(|(_, id)| **id != wanted && self.holds(**id, wanted, NESTING_LIMIT, &mut visits))
            .map(|(name, _)| name.as_str())
            .collect();
        found.sort_unstable();
        found
    }

    fn holds(&self, aggregate: TypeId, wanted: TypeId, depth: usize, visits: &mut usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        self.members_of(aggregate).iter().any(|member| {
            let Some(left) = visits.checked_sub(1) else { return false };
            *visits = left;
            let mut kind = self.strip(member.kind);
            while let Some((element, _)) = self.array_element(kind) {
                kind = self.strip(element);
            }
            kind == wanted
                || (self.name(kind).is_empty() && self.is_aggregate(kind) && self.holds(kind, wanted, depth, visits))
        })
    }

    fn is_union(&self, id: TypeId) -> bool {
        matches!(self.shape(self.strip(id)), super::Shape::Aggregate { union: true, .. })
    }
}

struct Walk<'a> {
    types: &'a KernelTypes,
    visits: usize,
    found: Vec<PlacedMember>,
}

impl Walk<'_> {
    fn descend(&mut self, aggregate: TypeId, prefix: &str, base_bits: u64, in_union: bool, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        let types = self.types;
        for member in types.members_of(types.strip(aggregate)) {
            let Some(left) = self.visits.checked_sub(1) else { return };
            self.visits = left;
            let name = types.text(member.name);
            let dot = if prefix.is_empty() || name.is_empty() { "" } else { "." };
            let path = format!("{prefix}{dot}{name}");
            let offset_bits = base_bits.saturating_add(u64::from(member.offset_bits));
            if types.is_aggregate(member.kind) && !types.members_of(types.strip(member.kind)).is_empty() {
                self.descend(member.kind, &path, offset_bits, in_union || types.is_union(member.kind), depth);
                continue;
            }
            let bit_field = member.bit_field_bits != 0;
            let size_bits = if bit_field {
                u64::from(member.bit_field_bits)
            } else {
                types.size_bytes(member.kind).unwrap_or(0).saturating_mul(8)
            };
            self.found.push(PlacedMember { path, offset_bits, size_bits, bit_field, in_union });
        }
    }
}
