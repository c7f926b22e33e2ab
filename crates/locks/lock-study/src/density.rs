//! How many processors a lock's sections could keep busy, if they ran at the same time and only conflicts held them back.
//!
//! Taken over crowds of up to 8, 16 or 32 threads: the newest section of each. Of those that conflict with another of the
//! crowd, each conflicts with a share of the others; the sum of the shares is the *conflict density*, the turns that the
//! crowd needs, at least one. A crowd of *n* threads is as fast as *n* / density threads that never wait: *n* if all are
//! independent, 1 if each conflicts with each.

/// Sizes of crowds, in threads.
pub const CROWDS: [usize; 3] = [8, 16, 32];

/// The newest section of each thread, and which of them conflict; up to 32 threads.
#[derive(Debug, Clone, Default)]
pub struct Density {
    /// Threads in the order of their newest section, the newest last.
    threads: Vec<u32>,
    /// Bit *j* of row *i*: the sections of places *i* and *j* conflict.
    rows: [u32; 32],
    places: Vec<u32>,
    /// Per crowd size: how often it was looked at, and the sum of its speed-ups.
    sums: [(u64, f64); CROWDS.len()],
}

impl Density {
    /// A section of `thread` ended, which conflicts with the newest section of the threads for which `conflicts` holds.
    pub fn add(&mut self, thread: u32, mut conflicts: impl FnMut(u32) -> bool) {
        let place = match self.threads.iter().position(|&known| known == thread) {
            Some(position) => {
                self.threads.remove(position);
                self.places.remove(position)
            }
            None if self.threads.len() < self.rows.len() => self.threads.len() as u32,
            None => {
                self.threads.remove(0);
                self.places.remove(0)
            }
        };
        let bit = 1_u32 << place;
        self.rows[place as usize] = 0;
        for (&other, &other_place) in self.threads.iter().zip(&self.places) {
            let row = &mut self.rows[other_place as usize];
            *row &= !bit;
            if conflicts(other) {
                *row |= bit;
                self.rows[place as usize] |= 1 << other_place;
            }
        }
        self.threads.push(thread);
        self.places.push(place);
        for (index, &crowd) in CROWDS.iter().enumerate() {
            if let Some(speed_up) = self.speed_up_of_newest(crowd) {
                self.sums[index].0 += 1;
                self.sums[index].1 += speed_up;
            }
        }
    }

    /// The lock is another one from now on: no earlier section is of a thread's newest any more.
    pub fn begin_anew(&mut self) {
        *self = Self { sums: self.sums, ..Self::default() };
    }

    /// Adds what was seen of another lock of the same class.
    pub fn join(&mut self, other: &Self) {
        for (mine, theirs) in self.sums.iter_mut().zip(other.sums) {
            mine.0 += theirs.0;
            mine.1 += theirs.1;
        }
    }

    /// The speed-up of the newest sections of up to that many threads; None for fewer than two threads.
    fn speed_up_of_newest(&self, crowd: usize) -> Option<f64> {
        let members = &self.places[self.places.len().saturating_sub(crowd)..];
        if members.len() < 2 {
            return None;
        }
        let mask = members.iter().fold(0_u32, |mask, place| mask | 1 << place);
        let degrees: Vec<u32> = members
            .iter()
            .map(|&place| (self.rows[place as usize] & mask).count_ones())
            .filter(|&degree| degree > 0)
            .collect();
        if degrees.is_empty() {
            return Some(members.len() as f64);
        }
        let others = (degrees.len() - 1).max(1) as f64;
        let density: f64 = degrees.iter().map(|&degree| f64::from(degree) / others).sum();
        Some(members.len() as f64 / density.max(1.0))
    }

    /// The mean speed-up at each of [`CROWDS`]; None where no two threads ever used the lock.
    #[must_use]
    pub fn speed_ups(&self) -> [Option<f64>; CROWDS.len()] {
        self.sums.map(|(count, sum)| (count > 0).then(|| sum / count as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn after(threads: u32, conflicts: impl Fn(u32, u32) -> bool) -> Option<f64> {
        let mut density = Density::default();
        for thread in 0..threads {
            density.add(thread, |other| conflicts(thread, other));
        }
        density.speed_up_of_newest(32)
    }

    #[test]
    fn independent_sections_keep_every_thread_busy_and_conflicting_ones_a_single_thread() {
        assert_eq!(after(1, |_, _| true), None);
        assert_eq!(after(8, |_, _| false), Some(8.0));
        assert_eq!(after(8, |_, _| true), Some(1.0));
    }

    #[test]
    fn a_single_conflicting_pair_costs_one_turn() {
        assert_eq!(after(8, |one, other| (one, other) == (1, 0)), Some(4.0));
    }

    #[test]
    fn a_thread_counts_with_its_newest_section() {
        let mut density = Density::default();
        density.add(0, |_| true);
        density.add(1, |_| true);
        assert_eq!(density.speed_up_of_newest(8), Some(1.0));
        density.add(0, |_| false);
        assert_eq!(density.speed_up_of_newest(8), Some(2.0));
    }

    #[test]
    fn more_threads_than_places_drop_the_one_that_was_away_longest() {
        let mut density = Density::default();
        for thread in 0..100 {
            density.add(thread, |other| other == 0);
        }
        assert_eq!(density.speed_up_of_newest(32), Some(32.0));
        assert_eq!(density.threads.first(), Some(&68));
    }

    /// What is seen of a lock, as in the definition: the newest section of each of the last 32 threads, and what conflicts.
    #[derive(Default)]
    struct Plain {
        newest: Vec<(u32, usize)>,
        sections: usize,
        conflicts: BTreeSet<(usize, usize)>,
        speed_ups: [Vec<f64>; CROWDS.len()],
    }

    impl Plain {
        fn add(&mut self, thread: u32, conflicting: u64) {
            self.newest.retain(|&(known, _)| known != thread);
            if self.newest.len() == 32 {
                self.newest.remove(0);
            }
            let section = self.sections;
            self.sections += 1;
            for &(other, earlier) in self.newest.iter().filter(|&&(other, _)| conflicting >> other & 1 != 0) {
                assert_ne!(other, thread);
                self.conflicts.extend([(section, earlier), (earlier, section)]);
            }
            self.newest.push((thread, section));
            for (crowd, speed_ups) in CROWDS.into_iter().zip(&mut self.speed_ups) {
                let members: Vec<usize> = self.newest.iter().rev().take(crowd).map(|&(_, section)| section).collect();
                let degree =
                    |one: usize| members.iter().filter(|&&other| self.conflicts.contains(&(one, other))).count();
                let degrees: Vec<usize> = members.iter().map(|&one| degree(one)).filter(|&degree| degree > 0).collect();
                let density: f64 = degrees.iter().map(|&degree| degree as f64 / (degrees.len() as f64 - 1.0)).sum();
                if members.len() > 1 {
                    speed_ups.push(members.len() as f64 / density.max(1.0));
                }
            }
        }
    }

    fn means<const COUNT: usize>(all: [Vec<f64>; COUNT]) -> [Option<f64>; COUNT] {
        all.map(|all| (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64))
    }

    fn assert_close(found: [Option<f64>; CROWDS.len()], expected: [Option<f64>; CROWDS.len()]) {
        for (found, expected) in found.into_iter().zip(expected) {
            let (found, expected) = (found.unwrap_or(0.0), expected.unwrap_or(0.0));
            assert!((found - expected).abs() < 1e-9, "{found} instead of {expected}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn speed_ups_are_means_over_crowds_as_defined(
            steps in proptest::collection::vec((0_u32..40, any::<u64>(), any::<u64>()), 0..80),
            later in proptest::collection::vec((0_u32..12, any::<u64>()), 0..20),
            begins_anew_at in 0_usize..80,
        ) {
            let (mut density, mut plain) = (Density::default(), Plain::default());
            for (number, &(thread, one, other)) in steps.iter().enumerate() {
                if number == begins_anew_at {
                    density.begin_anew();
                    plain.newest.clear();
                }
                let conflicting = one & other; // some more sections conflict with few others
                density.add(thread, |other| conflicting >> other & 1 != 0);
                plain.add(thread, conflicting);
            }
            assert_close(density.speed_ups(), means(plain.speed_ups.clone()));
            let (mut of_other, mut plain_of_other) = (Density::default(), Plain::default());
            for &(thread, conflicting) in &later {
                of_other.add(thread, |other| conflicting >> other & 1 != 0);
                plain_of_other.add(thread, conflicting);
            }
            density.join(&of_other);
            for (mine, theirs) in plain.speed_ups.iter_mut().zip(plain_of_other.speed_ups) {
                mine.extend(theirs);
            }
            assert_close(density.speed_ups(), means(plain.speed_ups));
        }
    }
}
