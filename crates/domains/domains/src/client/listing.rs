//! Listings: of a directory that is split, those of all domains merged.

use messages::{Class, DomainNumber, Transport};

use super::domain::Domain;
use super::names::Learned;
use crate::identity::ObjectNumber;
use crate::wire::{Listed, Refusal, Reply, Request};

/// Bytes of names that one answer has, about.
const ANSWER_BYTES: u32 = 4096;

impl<T: Transport> Domain<T> {
    /// Names from a cookie on, by cookie, and whether there are more.
    pub(super) fn list(&self, directory: ObjectNumber, from: u64) -> Result<(Vec<Listed>, bool), Refusal> {
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
                Err(Refusal::Elsewhere) => match self.learn(directory) {
                    Learned::Removed => return Ok((Vec::new(), false)),
                    Learned::Split => {}
                    Learned::Nothing => self.pause(),
                },
                outcome => return outcome,
            }
        }
    }
}

/// All names up to the first place at which an answer breaks off.
fn merged(replies: Vec<Reply>) -> Result<(Vec<Listed>, bool), Refusal> {
    let (mut all, mut end) = (Vec::new(), None::<u64>);
    for reply in replies {
        match reply {
            Reply::Names { names, has_more } => {
                if let Some(last) = names.last().filter(|_| has_more) {
                    end = Some(end.map_or(last.cookie, |end| end.min(last.cookie)));
                }
                all.extend(names);
            }
            Reply::Refused { why } => return Err(why),
            _ => return Err(Refusal::Garbled),
        }
    }
    all.sort_by_key(|listed| listed.cookie);
    if let Some(end) = end {
        all.retain(|listed| listed.cookie <= end);
    }
    Ok((all, end.is_some()))
}
