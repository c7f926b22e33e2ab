//! Listings: of a directory that is split, those of all domains merged.

use std::collections::BTreeMap;

use messages::{Class, DomainNumber, Transport};
use sync::mutant::planted;

use super::domain::Domain;
use super::names::Learned;
use super::waits::Wait;
use crate::identity::{ObjectNumber, Target};
use crate::wire::{Listed, ListedState, Refusal, Reply, Request};

/// Bytes of names that one answer has, about.
const ANSWER_BYTES: u32 = 4096;

impl<T: Transport> Domain<T> {
    /// Names from a cookie on, by cookie, and whether there are more.
    pub(super) fn list(&self, directory: ObjectNumber, from: u64) -> Result<(Vec<Item>, bool), Refusal> {
        let mut wait = Wait::default();
        loop {
            let is_split = self.cache.borrow().is_split(directory);
            let question = |number: usize| {
                let owner = if is_split { DomainNumber(number as u16) } else { directory.home() };
                (owner, Request::List { directory, from, most_bytes: ANSWER_BYTES, is_split })
            };
            let questions: Vec<_> = (0..if is_split { self.domain_count() } else { 1 }).map(question).collect();
            let replies = if self.techniques.get().broadcast {
                self.ask_all(Class::Requests, questions)
            } else {
                questions.into_iter().map(|(owner, request)| self.ask(owner, request)).collect()
            };
            match merged(replies) {
                // A name is on its way from one domain to another.
                Err(Refusal::Busy) => self.pause_at(&mut wait, directory.home()),
                Err(Refusal::Elsewhere) => match self.learn(directory) {
                    Learned::Removed => return Ok((Vec::new(), false)),
                    Learned::Lost => return Err(Refusal::Garbled),
                    Learned::Split => {}
                    Learned::Nothing => self.pause(),
                },
                outcome => return outcome,
            }
        }
    }
}

/// A name in a listing, what it leads to, and its cookie.
pub(super) type Item = (Vec<u8>, Target, u64);

/// All names up to the first place at which an answer breaks off. Of a name that is lent who has borrowed it says more.
fn merged(replies: Vec<Reply>) -> Result<(Vec<Item>, bool), Refusal> {
    let (mut all, mut end) = (BTreeMap::new(), None::<u64>);
    for reply in replies {
        match reply {
            Reply::Names { names, has_more } => {
                if let Some(last) = names.last().filter(|_| has_more) {
                    end = Some(end.map_or(last.cookie, |end| end.min(last.cookie)));
                }
                for Listed { name, state, cookie } in names {
                    let known: &mut ListedState = all.entry((cookie, name.0)).or_insert(ListedState::Lent {});
                    if !matches!(known, ListedState::Leads { .. }) && state != (ListedState::Lent {}) {
                        *known = state;
                    }
                }
            }
            Reply::Refused { why } => return Err(why),
            _ => return Err(Refusal::Garbled),
        }
    }
    let mut items = Vec::new();
    for ((cookie, name), state) in all.into_iter().filter(|((cookie, _), _)| end.is_none_or(|end| *cookie <= end)) {
        match state {
            ListedState::Leads { target } => items.push((name, target, cookie)),
            ListedState::Absent {} => {}
            ListedState::Lent {} if planted("domains: a listing leaves out what is on its way") => {}
            ListedState::Lent {} => return Err(Refusal::Busy),
        }
    }
    Ok((items, end.is_some()))
}
