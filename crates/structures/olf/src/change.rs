//! Insertion, removal and moves, of lists in order and of maps.
//!
//! ```text
//! insert B between A and C             A.next (L,C) -> (L,B)    B.next (nowhere) -> (L,C)
//! remove B                             A.next (L,B) -> (L,C)    B.next (L,C) -> (nowhere)
//! move B from L (A B C) to M (X Y)     A.next (L,B) -> (L,C)    B.next (L,C) -> (M,Y)    X.next (M,Y) -> (M,B)
//! ```
//!
//! The word of an item says in which list it stands and what follows there. So a word that an operation finds unchanged at
//! its decision proves both: that the item is in the list, and that nothing stands between it and the next one.
//!
//! **A new item** that no one else has is written first and linked by one swap. One that stood in a list before must
//! not be: old pointers lead writers to it, and what they insert after it would be lost if it carried a link before it
//! is linked itself.

use crate::domain::Here;
use crate::field::{Keyed, LinkField};
use crate::find::{Find, ItemOf, KeyOf, Place};
use crate::item::{Arc, Slot};
use crate::operation::{Attempts, Change, Unchanged};
use crate::refusal::{NotMoved, Refused};
use crate::stop::Stop;
use crate::word::Word;

type Inserted<'d, C> = Result<(), Refused<'d, ItemOf<'d, C>>>;

pub(crate) fn insert<'d, C: Find<'d>>(list: &C, here: &Here<'d>, item: Arc<'d, ItemOf<'d, C>>) -> Inserted<'d, C> {
    list.expect_of(here);
    assert!(here.domain.is(item.slot().header().orphans()), "the item belongs to another domain");
    let (guard, link) = (here.pin(), C::Field::link(&item));
    let mut attempts = Attempts::default();
    loop {
        let place = list.find(&guard, C::Field::key(&item));
        let old = here.domain.value(link);
        if old.is_listed() {
            return Err(Refused::Listed(item));
        }
        if place.found.is_some() {
            return Err(Refused::Exists(item));
        }
        let (entry, linked) = (Word::link(list.number(), item.slot().address()), place.word);
        let before = Change::new(place.before, place.word, entry);
        let is_new = item.slot().header().is_own();
        let outcome = if is_new || sync::mutant::planted("olf: a reused item is linked by one swap") {
            // No one else has the item, nor a pointer to it.
            item.slot().header().set_listed(true);
            link.store_own(linked);
            here.swap(&before).inspect_err(|_| {
                item.slot().header().set_listed(false);
                link.store_own(old);
            })
        } else {
            item.slot().header().set_listed(true);
            here.change(&[before, Change::new(link, old, linked)], attempts)
        };
        match outcome {
            Ok(()) => {
                item.into_count();
                return Ok(());
            }
            Err(unchanged) => attempts.note(unchanged),
        }
    }
}

pub(crate) fn remove<'d, C: Find<'d>>(list: &C, here: &Here<'d>, key: &KeyOf<'d, C>) -> Option<Arc<'d, ItemOf<'d, C>>> {
    list.expect_of(here);
    let guard = here.pin();
    let mut attempts = Attempts::default();
    loop {
        let place = list.find(&guard, key);
        let slot = place.found?;
        let outcome = leave(list, &place, slot, Word::NOWHERE).and_then(|changes| here.change(&changes, attempts));
        match outcome {
            // SAFETY: the list's count is ours: the operation has taken the item out.
            Ok(()) => return Some(unsafe { Arc::from_count(slot) }),
            Err(unchanged) => attempts.note(unchanged),
        }
    }
}

/// The changes by which a found item leaves its list, and its word becomes this.
fn leave<'g, 'd, C: Find<'d>>(
    list: &C,
    place: &Place<'g, ItemOf<'d, C>>,
    slot: &'g Slot<ItemOf<'d, C>>,
    new: Word,
) -> Result<[Change<'g>; 2], Unchanged> {
    let link = C::Field::link(slot.value());
    let old = list.domain().value(link);
    if !old.is_in(list.number()) {
        return Err(Unchanged::Other);
    }
    Ok([Change::new(place.before, place.word, old), Change::new(link, old, new)])
}

pub(crate) fn move_to<'d, C: Find<'d>, D: Find<'d, Field = C::Field>>(
    list: &C,
    to: &D,
    here: &Here<'d>,
    key: &KeyOf<'d, C>,
) -> Result<(), NotMoved> {
    list.expect_of(here);
    to.expect_of(here);
    if list.number() == to.number() {
        return Err(NotMoved::SameList);
    }
    let guard = here.pin();
    let mut attempts = Attempts::default();
    loop {
        let from = list.find(&guard, key);
        let Some(slot) = from.found else {
            return Err(NotMoved::Absent);
        };
        let place = to.find(&guard, key);
        if let Some(other) = place.found {
            if sync::mutant::planted("olf: an answer is not confirmed") {
                return Err(NotMoved::Exists);
            }
            // Both were there, but at one moment? Their own words say so.
            let links = [slot, other].map(|slot| C::Field::link(slot.value()));
            let words = links.map(|link| here.domain.value(link));
            if !words[0].is_in(list.number()) || !words[1].is_in(to.number()) {
                continue;
            }
            let asked = [0, 1].map(|n| Change::asked(links[n], words[n]));
            match here.change(&asked, attempts) {
                Ok(()) => return Err(NotMoved::Exists),
                Err(unchanged) => attempts.note(unchanged),
            }
            continue;
        }
        let entry = Word::link(to.number(), slot.address());
        let arrival = Change::new(place.before, place.word, entry);
        let outcome = leave(list, &from, slot, place.word)
            .and_then(|[before, item]| here.change(&[before, item, arrival], attempts));
        match outcome {
            Ok(()) => return Ok(()),
            Err(unchanged) => attempts.note(unchanged),
        }
    }
}

pub(crate) fn swap<'d, C: Find<'d>, D: Find<'d, Field = C::Field>>(
    list: &C,
    key: &KeyOf<'d, C>,
    other: &D,
    its_key: &KeyOf<'d, C>,
    here: &Here<'d>,
) -> Result<(), NotMoved> {
    if list.number() == other.number() {
        return Err(NotMoved::SameList);
    }
    list.expect_of(here);
    other.expect_of(here);
    // That one of them is absent rests on one word, and needs no mark.
    let guard = here.pin();
    if list.find(&guard, key).found.is_none() || other.find(&guard, its_key).found.is_none() {
        return Err(NotMoved::Absent);
    }
    drop(guard);
    let outcome = here.run(here.domain.host, |a| {
        let (mine, its) = (a.remove(list, key)?, a.remove(other, its_key)?);
        a.insert(other, mine)?;
        a.insert(list, its)
    });
    match outcome {
        Ok(()) => Ok(()),
        Err(Stop::Absent) => Err(NotMoved::Absent),
        Err(Stop::Exists) => Err(NotMoved::Exists),
        Err(other) => unreachable!("six words at most, and items that were taken out stand in no list: {other}"),
    }
}
