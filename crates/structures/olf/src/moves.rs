//! From one list to another, at one moment.
//!
//! ```text
//! move B from L (A B C) to M (X Y)     A.next (L,B) -> (L,C)    B.next (L,C) -> (M,Y)    X.next (M,Y) -> (M,B)
//! ```

use crate::closure::Stop;
use crate::domain::Here;
use crate::field::Keyed;
use crate::operation::{Attempts, Change};
use crate::refusal::NotMoved;
use crate::sorted::Sorted;
use crate::word::Word;

impl<'d, F: Keyed> Sorted<'d, F> {
    /// Moves the item with this key to another list of the domain; everybody sees it in exactly one of them. The list's
    /// count of the item goes with it.
    ///
    /// # Errors
    /// [`NotMoved`]: nothing has happened.
    ///
    /// # Panics
    /// If `here` is of another domain; if a comparison of keys does.
    pub fn move_to(&self, to: &Sorted<'d, F>, here: &Here<'d>, key: &F::Key) -> Result<(), NotMoved> {
        let guard = self.pin(here);
        if self.number() == to.number() {
            return Err(NotMoved::SameList);
        }
        let mut attempts = Attempts::default();
        loop {
            let from = self.find(&guard, key);
            let Some(slot) = from.found else {
                return Err(NotMoved::Absent);
            };
            let place = to.find(&guard, key);
            if let Some(other) = place.found {
                if sync::mutant::planted("olf: an answer is not confirmed") {
                    return Err(NotMoved::Exists);
                }
                // Both were there, but at one moment? Their own words say so.
                let links = [F::link(slot.value()), F::link(other.value())];
                let words = links.map(|link| here.domain.value(link));
                if !words[0].is_in(self.number()) || !words[1].is_in(to.number()) {
                    continue;
                }
                let asked = [0, 1].map(|n| Change { link: links[n], old: words[n], new: words[n] });
                match here.change(&asked, attempts) {
                    Ok(()) => return Err(NotMoved::Exists),
                    Err(unchanged) => attempts.note(unchanged),
                }
                continue;
            }
            let entry = Word::link(to.number(), slot.address());
            let arrival = Change { link: place.before, old: place.word, new: entry };
            let outcome = self
                .leave(&from, slot, place.word)
                .and_then(|[before, item]| here.change(&[before, item, arrival], attempts));
            match outcome {
                Ok(()) => return Ok(()),
                Err(unchanged) => attempts.note(unchanged),
            }
        }
    }

    /// Exchanges an item of this list for one of another list: each is in exactly one of them at every moment. An item whose
    /// key both lists would then hold twice is not moved.
    ///
    /// # Errors
    /// [`NotMoved`]: nothing has happened.
    ///
    /// # Panics
    /// If `here` is of another domain; if a comparison of keys does.
    pub fn swap(&self, key: &F::Key, other: &Sorted<'d, F>, its_key: &F::Key, here: &Here<'d>) -> Result<(), NotMoved> {
        if self.number() == other.number() {
            return Err(NotMoved::SameList);
        }
        let outcome = here.run(&sync::Spin, |a| {
            let (mine, its) = (a.remove(self, key)?, a.remove(other, its_key)?);
            a.insert(other, mine)?;
            a.insert(self, its)
        });
        match outcome {
            Ok(()) => Ok(()),
            Err(Stop::Absent) => Err(NotMoved::Absent),
            Err(Stop::Exists) => Err(NotMoved::Exists),
            Err(other) => unreachable!("six words at most, and items that were taken out stand in no list: {other}"),
        }
    }
}
