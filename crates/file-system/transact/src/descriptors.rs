//! What a transaction has made of its process's descriptors.
//!
//! A descriptor that it opens takes a number of the base at once, as new objects take inode numbers: other threads of the
//! process see that number taken. It is given back if the transaction does not happen. What it closes, moves or lets lead
//! elsewhere is its own until it has happened.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use posix_calls::{OnExec, StatusFlags};
use sync::mutant::planted;

/// A descriptor that leads to what the transaction says.
#[derive(Clone, Copy, Debug)]
pub struct OwnDescriptor {
    /// The description.
    pub(crate) identity: u64,
    /// A number of the base that leads to it.
    pub(crate) real: u32,
    pub(crate) on_exec: OnExec,
}

/// What became of a description.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnDescription {
    real: u32,
    offset: Option<u64>,
    status: Option<StatusFlags>,
}

/// See the module's head.
#[derive(Debug, Default)]
pub struct Descriptors {
    /// By number; nothing where one was closed.
    changed: BTreeMap<u32, Option<OwnDescriptor>>,
    /// By identity.
    descriptions: BTreeMap<u64, OwnDescription>,
    taken: BTreeSet<u32>,
    spare: Option<u32>,
}

/// A descriptor of the base that comes to lead where another one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) on_exec: OnExec,
}

impl Descriptors {
    pub(crate) fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.taken.is_empty() && self.descriptions.is_empty()
    }

    /// What a number leads to, unless the base says so.
    pub(crate) fn get(&self, number: u32) -> Option<Option<OwnDescriptor>> {
        let own = self.changed.get(&number).copied();
        own.or_else(|| self.taken.contains(&number).then_some(None))
    }

    /// Lets a number lead where the transaction says, or, given nothing, the base; returns what it was.
    pub(crate) fn set(
        &mut self,
        number: u32,
        descriptor: Option<Option<OwnDescriptor>>,
    ) -> Option<Option<OwnDescriptor>> {
        match descriptor {
            Some(own) => self.changed.insert(number, own),
            None => self.changed.remove(&number),
        }
    }

    /// Notes a number of the base that was taken.
    pub(crate) fn take(&mut self, real: u32) {
        self.taken.insert(real);
    }

    pub(crate) fn has_taken(&self, real: u32) -> bool {
        self.taken.contains(&real)
    }

    pub(crate) fn taken(&self) -> impl Iterator<Item = u32> {
        self.taken.iter().copied()
    }

    /// The lowest number from one on that the transaction has made free.
    pub(crate) fn lowest_free(&self, from: u32) -> Option<u32> {
        let closed = self.changed.range(from..).find(|(_, own)| own.is_none()).map(|(number, _)| *number);
        let unused = self.taken.range(from..).find(|number| !self.changed.contains_key(number)).copied();
        closed.into_iter().chain(unused).min()
    }

    /// Whether a number leads where the transaction says.
    pub(crate) fn is_own(&self, real: u32) -> bool {
        matches!(self.changed.get(&real), Some(Some(_)))
    }

    /// A number of the base that was taken for what leaves its place only when another comes there: in turn, if a circle of
    /// descriptors takes each other's places.
    pub(crate) fn spare(&self) -> Option<u32> {
        self.spare
    }

    /// Notes the spare number, which was taken.
    pub(crate) fn keep_spare(&mut self, spare: u32) {
        self.take(spare);
        self.spare = Some(spare);
    }

    /// How numbers of the base come to lead where the transaction says: one by one, each to a number whose own description is
    /// where it belongs, or belongs nowhere. None needs a number that is free.
    pub(crate) fn moves(&self) -> Vec<Move> {
        let moved = self.changed().filter_map(|(to, own)| {
            let own = own.filter(|own| own.real != to)?;
            Some((own.real, Move { from: own.real, to, on_exec: own.on_exec }))
        });
        // By where they come from: each real number is one descriptor's.
        let mut left: BTreeMap<u32, Move> = moved.collect();
        let targets: BTreeMap<u32, u32> = left.values().map(|step| (step.to, step.from)).collect();
        let mut chains = Vec::new();
        for end in targets.keys().filter(|to| !left.contains_key(to)).copied().collect::<Vec<_>>() {
            // What leads to the end of a chain first, then what takes its place, and so on.
            let mut place = end;
            while let Some(step) = targets.get(&place).and_then(|from| left.remove(from)) {
                place = step.from;
                chains.push(step);
            }
        }
        // Circles before chains: one of those may end at the spare number.
        let mut moves = Vec::new();
        while let Some((_, first)) = left.pop_first() {
            let spare = self.spare.filter(|_| !planted("transact: who takes each other's places has no spare one"));
            moves.extend(spare.map(|spare| Move { from: first.from, to: spare, on_exec: OnExec::Close }));
            let mut place = first.from;
            while let Some(step) = targets.get(&place).and_then(|from| left.remove(from)) {
                place = step.from;
                moves.push(step);
            }
            moves.push(Move { from: spare.unwrap_or(first.from), ..first });
        }
        moves.extend(chains);
        moves
    }

    pub(crate) fn changed(&self) -> impl Iterator<Item = (u32, Option<OwnDescriptor>)> {
        self.changed.iter().map(|(number, own)| (*number, *own))
    }

    pub(crate) fn changed_statuses(&self) -> impl Iterator<Item = (u32, StatusFlags)> {
        self.descriptions.values().filter_map(|own| Some((own.real, own.status?)))
    }

    pub(crate) fn offset(&self, identity: u64) -> Option<u64> {
        self.descriptions.get(&identity)?.offset
    }

    pub(crate) fn status(&self, identity: u64) -> Option<StatusFlags> {
        self.descriptions.get(&identity)?.status
    }

    /// Returns what had become of the description before.
    pub(crate) fn set_offset(&mut self, (identity, real): (u64, u32), offset: u64) -> Option<OwnDescription> {
        let before = self.descriptions.get(&identity).copied();
        self.descriptions.insert(identity, OwnDescription { real, offset: Some(offset), ..before.unwrap_or_default() });
        before
    }

    /// As [`Descriptors::set_offset`].
    pub(crate) fn set_status(&mut self, (identity, real): (u64, u32), status: StatusFlags) -> Option<OwnDescription> {
        let before = self.descriptions.get(&identity).copied();
        self.descriptions.insert(identity, OwnDescription { real, status: Some(status), ..before.unwrap_or_default() });
        before
    }

    /// Lets a description be what it was; numbers that were taken since stay so.
    pub(crate) fn restore(&mut self, identity: u64, before: Option<OwnDescription>) {
        match before {
            Some(before) => drop(self.descriptions.insert(identity, before)),
            None => drop(self.descriptions.remove(&identity)),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use alloc::collections::BTreeMap;
    use std::vec::Vec;

    use posix_calls::OnExec;

    use super::{Descriptors, OwnDescriptor};

    /// Each way in which five descriptors may lead to six real numbers: in the end each leads to its own description, and
    /// a number that is free is never needed.
    fn each_gets_its_own() {
        for code in 0..6_u32.pow(5) {
            let reals: Vec<u32> = (0..5).map(|place| code / 6_u32.pow(place) % 6).collect();
            if (1..5).any(|place| reals[..place].contains(&reals[place])) {
                continue;
            }
            let mut descriptors = Descriptors::default();
            descriptors.keep_spare(9);
            for (number, real) in reals.iter().enumerate() {
                let own = OwnDescriptor { identity: u64::from(*real), real: *real, on_exec: OnExec::Keep };
                descriptors.set(number as u32, Some(Some(own)));
            }
            let mut base: BTreeMap<u32, u32> = (0..6).chain([9]).map(|number| (number, number)).collect();
            for step in descriptors.moves() {
                assert!(base.contains_key(&step.to));
                base.insert(step.to, base[&step.from]);
            }
            let led: Vec<u32> = (0..5).map(|number| base[&number]).collect();
            assert_eq!(led, reals);
        }
    }

    #[test]
    fn descriptors_come_to_lead_where_they_are_to() {
        each_gets_its_own();
    }

    #[cfg(fuzzing)]
    #[test]
    fn a_planted_fault_is_found() {
        sync::mutant::must_be_caught("transact: who takes each other's places has no spare one", each_gets_its_own);
    }
}
