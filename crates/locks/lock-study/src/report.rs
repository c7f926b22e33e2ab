//! What the study says of one lock, or of all locks of a class together.

use crate::address_set::{Overlap, Shared};
use crate::density::Density;
use crate::history::Section;
use crate::kinds::{Gaps, Kinds};
use crate::measures::{GRANULARITIES, Percent, Spans, count, sum};

/// Pairs of sections of different threads that the lock kept apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pairs {
    /// Pairs that were compared.
    pub compared: u64,
    /// Pairs that conflict, by granularity.
    pub conflicting: [u64; GRANULARITIES],
    /// The same without what both reached as data of their processor.
    pub conflicting_without_per_cpu: [u64; GRANULARITIES],
    /// Bytes that conflict, over all pairs that conflict.
    pub conflicting_bytes: u64,
    /// Bytes of the later section's address set, over all pairs that conflict.
    pub set_bytes: u64,
}

impl Pairs {
    /// Adds a pair, of which `section` is the later, and tells whether it conflicts at each granularity. Two sections that
    /// touched devices conflict at all of them: what they did there cannot be seen.
    pub fn add(&mut self, section: &Section, overlap: Overlap, devices: bool) -> [bool; GRANULARITIES] {
        let conflicts = |shared: Shared| [shared.bytes, shared.words, shared.lines].map(|count| count > 0 || devices);
        let all = conflicts(overlap.all);
        self.compared += 1;
        count(&mut self.conflicting, all);
        count(&mut self.conflicting_without_per_cpu, conflicts(overlap.without_per_cpu));
        if all[0] {
            self.conflicting_bytes += u64::from(overlap.all.bytes);
            self.set_bytes += u64::from(section.set.byte_count());
        }
        all
    }

    /// Adds the pairs of another lock.
    pub fn join(&mut self, other: &Self) {
        self.compared += other.compared;
        sum(&mut self.conflicting, other.conflicting);
        sum(&mut self.conflicting_without_per_cpu, other.conflicting_without_per_cpu);
        self.conflicting_bytes += other.conflicting_bytes;
        self.set_bytes += other.set_bytes;
    }

    /// Pairs that share no written byte, in percent.
    #[must_use]
    pub fn independence(&self) -> Percent {
        Percent::of(self.compared - self.conflicting[0], self.compared)
    }
}

/// One field on which sections conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldReport {
    /// The recorder's number of the field.
    pub field: u64,
    /// Pairs that conflict on it.
    pub pairs: u64,
    /// Pairs that conflict on nothing else: they would be independent without it.
    pub pairs_on_it_alone: u64,
}

/// Fields on which pairs conflict, and on nothing else: what would have to go together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldSet {
    /// The recorder's numbers of the fields, ascending.
    pub fields: Vec<u64>,
    /// Pairs that conflict on all of them.
    pub pairs: u64,
}

/// Sets of fields per lock that are counted, the first ones, and fields in a set: more would not be left out together.
const FIELD_SET_LIMIT: usize = 64;
const FIELDS_IN_SET_LIMIT: usize = 16;

/// Fields per lock that are counted; when there are more, the rarest makes room.
const FIELD_LIMIT: usize = 64;

/// The fields on which the sections of a lock conflict.
#[derive(Debug, Clone, Default)]
pub struct FieldTally {
    fields: Vec<FieldReport>,
    sets: Vec<FieldSet>,
    /// Pairs that were looked at: the newest ones of each section.
    pub compared: u64,
    /// Most pairs that any forgotten field can have had.
    pub forgotten_pairs: u64,
}

impl FieldTally {
    /// Adds a pair that conflicts on these fields, each named once.
    pub fn add(&mut self, fields: &[u64]) {
        for &field in fields {
            let alone = u64::from(fields.len() == 1);
            self.add_counts(FieldReport { field, pairs: 1, pairs_on_it_alone: alone });
        }
        let mut fields = fields.to_vec();
        fields.sort_unstable();
        self.add_set(&FieldSet { fields, pairs: 1 });
    }

    fn add_set(&mut self, added: &FieldSet) {
        if added.fields.len() > FIELDS_IN_SET_LIMIT {
            return;
        }
        if let Some(known) = self.sets.iter_mut().find(|known| known.fields == added.fields) {
            known.pairs += added.pairs;
        } else if self.sets.len() < FIELD_SET_LIMIT {
            self.sets.push(added.clone());
        }
    }

    /// The sets of fields on which pairs conflict, those of most pairs first; of more than are counted, the first ones.
    #[must_use]
    pub fn sets(&self) -> Vec<FieldSet> {
        let mut sets = self.sets.clone();
        sets.sort_by(|one, other| other.pairs.cmp(&one.pairs).then_with(|| one.fields.cmp(&other.fields)));
        sets
    }

    /// Adds the pairs of another lock.
    pub fn join(&mut self, other: &Self) {
        for &field in &other.fields {
            self.add_counts(field);
        }
        other.sets.iter().for_each(|set| self.add_set(set));
        self.compared += other.compared;
        self.forgotten_pairs = self.forgotten_pairs.max(other.forgotten_pairs);
    }

    fn add_counts(&mut self, added: FieldReport) {
        if let Some(known) = self.fields.iter_mut().find(|known| known.field == added.field) {
            known.pairs += added.pairs;
            known.pairs_on_it_alone += added.pairs_on_it_alone;
            return;
        }
        if self.fields.len() >= FIELD_LIMIT
            && let Some(index) = (0..self.fields.len()).min_by_key(|&index| self.fields[index].pairs)
        {
            let rarest = self.fields.swap_remove(index);
            self.forgotten_pairs = self.forgotten_pairs.max(rarest.pairs);
        }
        self.fields.push(added);
    }

    /// The fields, those of most pairs first.
    #[must_use]
    pub fn ranked(&self) -> Vec<FieldReport> {
        let mut fields = self.fields.clone();
        fields.sort_by_key(|field| (std::cmp::Reverse((field.pairs, field.pairs_on_it_alone)), field.field));
        fields
    }
}

/// Sizes of windows at which the limit study is repeated: how far its results depend on the size ("The Limits of
/// Optimistic Concurrency", section 3, varies it from 50 to 100).
pub const WINDOWS: [usize; 4] = [50, 64, 100, 128];

/// The limit study with a smaller window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WindowTally {
    /// Pairs of sections that were compared, and those that conflict by byte.
    pub pairs: u64,
    /// See `pairs`.
    pub conflicting_pairs: u64,
    /// Sections that were compared with at least one other, and those that conflict with any.
    pub sections: u64,
    /// See `sections`.
    pub conflicting_sections: u64,
}

impl WindowTally {
    /// Adds a section that was compared with `compared` others, and conflicts with `conflicting`.
    pub fn add(&mut self, compared: u64, conflicting: u64) {
        self.pairs += compared;
        self.conflicting_pairs += conflicting;
        self.sections += u64::from(compared > 0);
        self.conflicting_sections += u64::from(conflicting > 0);
    }

    fn join(&mut self, other: &Self) {
        self.pairs += other.pairs;
        self.conflicting_pairs += other.conflicting_pairs;
        self.sections += other.sections;
        self.conflicting_sections += other.conflicting_sections;
    }
}

/// Statistics of one lock.
#[derive(Debug, Clone)]
pub struct LockReport {
    /// Where the lock lies, or lay.
    pub address: u64,
    /// The recorder's number for its kind.
    pub class: u64,
    /// Locks that this is the report of: those that lay there one after the other, and those that were joined.
    pub generations: u64,
    /// Times that it was acquired, and how often of these by a reader.
    pub acquires: u64,
    /// See `acquires`.
    pub shared_acquires: u64,
    /// Acquires that had to wait.
    pub contended: u64,
    /// Of these, those that could be compared with a section that they waited for, and those that conflict with one.
    pub contended_compared: u64,
    /// See `contended_compared`.
    pub contended_conflicts: u64,
    /// From the attempt to the acquire, of those that waited.
    pub wait: Spans,
    /// Sections that ended.
    pub sections: u64,
    /// From acquire to release.
    pub hold: Spans,
    /// Who acquired it, and what the sections of each caller do to those of the others.
    pub kinds: Kinds,
    /// What threads did in between.
    pub gaps: Gaps,
    /// Bytes in address sets, and how many of them were written.
    pub set_bytes: u64,
    /// See `set_bytes`.
    pub written_bytes: u64,
    /// Sections that touched a device.
    pub device_sections: u64,
    /// Sections that ended in another thread, and are compared with none.
    pub handed_over: u64,
    /// Releases by a thread that does not hold the lock.
    pub releases_without_acquire: u64,
    /// Sections of which no end was seen.
    pub never_released: u64,
    /// Sections that were compared with at least one other, and of these the ones that conflict with any, by granularity.
    pub compared_sections: u64,
    /// See `compared_sections`.
    pub conflicting_sections: [u64; GRANULARITIES],
    /// All pairs of the limit study.
    pub pairs: Pairs,
    /// The same with smaller windows, by [`WINDOWS`].
    pub windows: [WindowTally; WINDOWS.len()],
    /// Reads and writes by threads without any lock that conflict with what a section of another thread did last.
    pub outside_reads: u64,
    /// See `outside_reads`.
    pub outside_writes: u64,
    /// Where sections conflict.
    pub fields: FieldTally,
    /// How many threads the sections could keep busy.
    pub density: Density,
}

impl LockReport {
    /// The report of a lock that no one used yet.
    #[must_use]
    pub fn new(address: u64, class: u64) -> Self {
        Self {
            address,
            class,
            generations: 1,
            acquires: 0,
            shared_acquires: 0,
            contended: 0,
            contended_compared: 0,
            contended_conflicts: 0,
            wait: Spans::default(),
            sections: 0,
            hold: Spans::default(),
            kinds: Kinds::default(),
            gaps: Gaps::default(),
            set_bytes: 0,
            written_bytes: 0,
            device_sections: 0,
            handed_over: 0,
            releases_without_acquire: 0,
            never_released: 0,
            compared_sections: 0,
            conflicting_sections: [0; GRANULARITIES],
            pairs: Pairs::default(),
            windows: [WindowTally::default(); WINDOWS.len()],
            outside_reads: 0,
            outside_writes: 0,
            fields: FieldTally::default(),
            density: Density::default(),
        }
    }

    /// Adds what was seen of another lock of the same class, whose sections are compared with none of this one's.
    pub fn join(&mut self, other: &Self) {
        self.generations += other.generations;
        self.acquires += other.acquires;
        self.shared_acquires += other.shared_acquires;
        self.contended += other.contended;
        self.contended_compared += other.contended_compared;
        self.contended_conflicts += other.contended_conflicts;
        self.wait.join(other.wait);
        self.sections += other.sections;
        self.hold.join(other.hold);
        self.kinds.join(&other.kinds);
        self.gaps.join(other.gaps);
        self.set_bytes += other.set_bytes;
        self.written_bytes += other.written_bytes;
        self.device_sections += other.device_sections;
        self.handed_over += other.handed_over;
        self.releases_without_acquire += other.releases_without_acquire;
        self.never_released += other.never_released;
        self.compared_sections += other.compared_sections;
        sum(&mut self.conflicting_sections, other.conflicting_sections);
        self.pairs.join(&other.pairs);
        self.windows.iter_mut().zip(&other.windows).for_each(|(mine, theirs)| mine.join(theirs));
        self.outside_reads += other.outside_reads;
        self.outside_writes += other.outside_writes;
        self.fields.join(&other.fields);
        self.density.join(&other.density);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_alone_in_a_pair_is_told_from_one_among_others() {
        let mut tally = FieldTally::default();
        tally.add(&[7]);
        tally.add(&[7, 8]);
        let expected = [
            FieldReport { field: 7, pairs: 2, pairs_on_it_alone: 1 },
            FieldReport { field: 8, pairs: 1, pairs_on_it_alone: 0 },
        ];
        assert_eq!(tally.ranked(), expected);
    }

    #[test]
    fn fields_that_conflict_together_are_counted_together() {
        let mut tally = FieldTally::default();
        for fields in [&[8, 7][..], &[7, 8], &[7], &(0..17).collect::<Vec<_>>()] {
            tally.add(fields);
        }
        let mut other = FieldTally::default();
        (0..100).for_each(|field| other.add(&[field, field + 1]));
        let expected = [(vec![7, 8], 2), (vec![7], 1)].map(|(fields, pairs)| FieldSet { fields, pairs });
        assert_eq!(tally.sets(), expected);
        other.join(&tally);
        assert_eq!(
            (other.sets().len(), &other.sets()[0]),
            (FIELD_SET_LIMIT, &FieldSet { fields: vec![7, 8], pairs: 3 })
        );
    }

    #[test]
    fn fields_without_number_take_bounded_memory_and_leave_the_frequent_ones() {
        let mut tally = FieldTally::default();
        for field in 0..10_000 {
            tally.add(&[field, u64::MAX]);
        }
        assert_eq!(tally.ranked().len(), FIELD_LIMIT);
        assert_eq!(tally.ranked()[0], FieldReport { field: u64::MAX, pairs: 10_000, pairs_on_it_alone: 0 });
        assert_eq!(tally.forgotten_pairs, 1);
    }

    #[test]
    fn joined_tallies_have_the_fields_of_both() {
        let (mut one, mut other) = (FieldTally::default(), FieldTally::default());
        one.add(&[7]);
        one.compared = 5;
        other.add(&[7, 8]);
        (other.compared, other.forgotten_pairs) = (3, 4);
        one.join(&other);
        let told =
            one.ranked().iter().map(|field| (field.field, field.pairs, field.pairs_on_it_alone)).collect::<Vec<_>>();
        assert_eq!((told, one.compared, one.forgotten_pairs), (vec![(7, 2, 1), (8, 1, 0)], 8, 4));
        other.join(&one);
        assert_eq!((other.compared, other.forgotten_pairs), (11, 4));
    }
}
