//! Which values of uninterpreted sorts are equal and which differ: a union-find with disequalities.
//!
//! The representative of a class is its lowest value. Paths are not compressed, so that taking back a union is one store;
//! classes are small.

use smallvec::SmallVec;

/// The index of a value of a sort.
pub type Value = u32;

/// A set of values, as bits. Few paths know more than 128.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values(SmallVec<[u64; 2]>);

impl Values {
    fn contains(&self, value: Value) -> bool {
        self.0.get(value as usize / 64).is_some_and(|bits| bits >> (value % 64) & 1 == 1)
    }

    fn insert(&mut self, value: Value) {
        let word = value as usize / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (value % 64);
    }

    fn remove(&mut self, value: Value) {
        if let Some(bits) = self.0.get_mut(value as usize / 64) {
            *bits &= !(1 << (value % 64));
        }
    }

    fn insert_all(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(mine, theirs)| *mine |= theirs);
    }

    fn iter(&self) -> impl Iterator<Item = Value> {
        self.0
            .iter()
            .zip(0..)
            .flat_map(|(&bits, word)| (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word * 64 + bit))
    }
}

#[derive(Clone, Debug)]
struct Known {
    parent: Value,
    is_fresh: bool,
    differs_from: Values,
}

/// What takes a change of [`Sorts`] back.
#[derive(Debug)]
pub enum Change {
    /// The last value was made.
    Made,
    /// A value got another representative.
    Joined(Value),
    /// A representative was known to differ from these.
    Differed(Value, Values),
}

/// What is known of the values of all sorts.
#[derive(Clone, Debug, Default)]
pub struct Sorts {
    known: Vec<Known>,
}

impl Sorts {
    /// A new value. A fresh one differs from every value that is not fresh.
    pub fn make(&mut self, is_fresh: bool) -> (Value, Change) {
        let value = u32::try_from(self.known.len()).expect("fewer values than 2^32");
        self.known.push(Known { parent: value, is_fresh, differs_from: Values::default() });
        (value, Change::Made)
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Whether the value was made as one that differs from all that are not fresh.
    pub fn is_fresh(&self, value: Value) -> bool {
        self.known.get(value as usize).is_some_and(|known| known.is_fresh)
    }

    /// The representative of the values that are known to equal this one; of a value that was not made, itself.
    pub fn find(&self, mut value: Value) -> Value {
        while let Some(known) = self.known.get(value as usize) {
            if known.parent == value {
                break;
            }
            value = known.parent;
        }
        value
    }

    /// Whether two values are equal, if that is known.
    pub fn same(&self, left: Value, right: Value) -> Option<bool> {
        let (left, right) = (self.find(left), self.find(right));
        if left == right {
            return Some(true);
        }
        let (mine, theirs) = (self.known.get(left as usize)?, self.known.get(right as usize)?);
        let differ = mine.differs_from.contains(right) || mine.is_fresh != theirs.is_fresh;
        differ.then_some(false)
    }

    /// Notes that two values, of which that is open, are equal or not; says to `log` how to take it back.
    pub fn assert(&mut self, left: Value, right: Value, holds: bool, mut log: impl FnMut(Change)) {
        let (left, right) = (self.find(left), self.find(right));
        if !holds {
            log(self.differed(left));
            log(self.differed(right));
            self.known[left as usize].differs_from.insert(right);
            self.known[right as usize].differs_from.insert(left);
            return;
        }
        let (low, high) = (left.min(right), left.max(right));
        self.known[high as usize].parent = low;
        log(Change::Joined(high));
        let others = self.known[high as usize].differs_from.clone();
        if others == Values::default() {
            return;
        }
        log(self.differed(low));
        self.known[low as usize].differs_from.insert_all(&others);
        for other in others.iter() {
            log(self.differed(other));
            let theirs = &mut self.known[other as usize].differs_from;
            theirs.remove(high);
            theirs.insert(low);
        }
    }

    fn differed(&self, value: Value) -> Change {
        Change::Differed(value, self.known[value as usize].differs_from.clone())
    }

    /// Takes back the last change that has not been taken back.
    pub fn undo(&mut self, change: Change) {
        match change {
            Change::Made => drop(self.known.pop()),
            Change::Joined(value) => self.known[value as usize].parent = value,
            Change::Differed(value, before) => self.known[value as usize].differs_from = before,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const COUNT: u32 = 6;

    /// Whether an assignment of numbers to values fits what was said, fresh values apart from others.
    fn fits(said: &[(u32, u32, bool)], fresh: u32, numbers: &[u32]) -> bool {
        said.iter().all(|&(left, right, holds)| (numbers[left as usize] == numbers[right as usize]) == holds)
            && (0..COUNT - fresh)
                .all(|old| (COUNT - fresh..COUNT).all(|new| numbers[old as usize] != numbers[new as usize]))
    }

    fn assignments() -> impl Iterator<Item = Vec<u32>> {
        (0..COUNT.pow(COUNT)).map(|code| (0..COUNT).map(|place| code / COUNT.pow(place) % COUNT).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Against all assignments of six numbers to six values; and what is taken back leaves no trace.
        #[test]
        fn what_follows_holds_in_every_assignment(
            statements in proptest::collection::vec((0..COUNT, 0..COUNT, any::<bool>()), 0..8), fresh in 0..3_u32,
        ) {
            let mut sorts = Sorts::default();
            (0..COUNT).for_each(|value| drop(sorts.make(value >= COUNT - fresh)));
            let (before, mut said, mut log) = (format!("{sorts:?}"), vec![], vec![]);
            for (left, right, holds) in statements {
                if sorts.same(left, right).is_none() {
                    sorts.assert(left, right, holds, |change| log.push(change));
                    said.push((left, right, holds));
                }
            }
            let fitting: Vec<_> = assignments().filter(|numbers| fits(&said, fresh, numbers)).collect();
            prop_assert!(!fitting.is_empty());
            for left in 0..COUNT {
                for right in 0..COUNT {
                    let equal = fitting.iter().filter(|numbers| numbers[left as usize] == numbers[right as usize]).count();
                    let expected = (equal == fitting.len() || equal == 0).then_some(equal > 0);
                    prop_assert_eq!(sorts.same(left, right), expected, "{} {}", left, right);
                }
            }
            log.into_iter().rev().for_each(|change| sorts.undo(change));
            prop_assert_eq!(format!("{sorts:?}"), before);
        }
    }

    #[test]
    fn more_values_than_fit_into_two_words() {
        let mut sorts = Sorts::default();
        (0..300).for_each(|_| drop(sorts.make(false)));
        sorts.assert(3, 299, false, drop);
        sorts.assert(299, 150, true, drop);
        assert_eq!((sorts.same(150, 3), sorts.same(3, 149), sorts.find(299)), (Some(false), None, 150));
    }

    #[test]
    fn fresh_values_are_told_from_others() {
        let mut sorts = Sorts::default();
        assert!(sorts.is_empty());
        for fresh in [false, true, false] {
            drop(sorts.make(fresh));
        }
        assert_eq!([0, 1, 2, 3].map(|value| sorts.is_fresh(value)), [false, true, false, false]);
        assert_eq!((sorts.len(), sorts.is_empty()), (3, false));
    }
}
