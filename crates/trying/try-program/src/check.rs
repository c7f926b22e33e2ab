//! Asking again: whether all that the command has seen is so now, and what it would replace is what it has found.

use std::collections::{HashMap, HashSet};

use crate::attributes::{Attributes, Kind, Time};
use crate::changes::{Changes, Label, What};
use crate::looks::Looks;
use crate::place::Place;
use crate::question::{Answer, Listed, Question};
use crate::stops::planted;
use crate::tree::Tree;

/// Something that is not as the command has seen it.
#[derive(Clone, Debug)]
pub(crate) struct Conflict {
    pub(crate) place: Place,
    /// What was asked.
    pub(crate) question: &'static str,
    /// The answer that the command got, and the one of now.
    pub(crate) then: String,
    pub(crate) now: String,
    /// What the command would have written there.
    pub(crate) write: Option<Label>,
    /// When what is there now was changed last, and whose it is.
    pub(crate) changed: Option<Time>,
    pub(crate) owner: Option<u32>,
}

/// How strictly answers are compared.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leniency {
    /// Names that others have added or removed do not count where the command has changed others.
    pub(crate) listings: bool,
    /// Files whose changes have been merged with those of others.
    pub(crate) merged: HashSet<Place>,
}

/// All that is not as the command has seen it, in order of places.
pub(crate) fn conflicts(tree: &Tree, looks: &Looks, changes: &Changes, lenient: &Leniency) -> Vec<Conflict> {
    let written: HashMap<&Place, Label> =
        changes.changes.iter().flat_map(|change| &change.items).map(|(place, label)| (place, *label)).collect();
    let mut checker = Checker { tree, looks, changes, lenient, written, conflicts: Vec::new() };
    for change in &changes.changes {
        checker.compare_replaced(&change.place, change.what);
    }
    for (place, of_place) in looks.places() {
        checker.ask_again(place, of_place);
    }
    checker.conflicts.sort_by(|one, other| one.place.cmp(&other.place));
    checker.conflicts
}

struct Checker<'a> {
    tree: &'a Tree,
    looks: &'a Looks,
    changes: &'a Changes,
    lenient: &'a Leniency,
    written: HashMap<&'a Place, Label>,
    conflicts: Vec<Conflict>,
}

impl Checker<'_> {
    fn ask_again(&mut self, place: &Place, of_place: &[(Question, Answer)]) {
        let is_merged = self.lenient.merged.contains(place);
        let mut found: Option<(usize, &'static str, String, String)> = None;
        for (question, then) in of_place {
            let now = self.tree.ask(place, question);
            if planted("try-program: absence is not asked again") && *then == Answer::Absent {
                continue;
            }
            if then.agrees_with(question, &now) || self.is_own_affair(place, question, then, &now) {
                continue;
            }
            let is_of_data =
                matches!(question, Question::Data { .. } | Question::Size | Question::Attributes | Question::Copy);
            let is_of_merged_data = is_merged && is_of_data;
            if is_of_merged_data || self.is_other_name(place, question, then, &now) {
                continue;
            }
            // One line a place says enough: that which says most.
            if found.as_ref().is_some_and(|(rank, ..)| *rank <= question.rank()) {
                continue;
            }
            let (then, now) = match (then, &now) {
                (Answer::Listing(then), Answer::Listing(now)) => (difference(then, now), difference(now, then)),
                (then, now) => (shown(then), shown(now)),
            };
            found = Some((question.rank(), question.what(), then, now));
        }
        if let Some((_, question, then, now)) = found {
            self.refuse(place, question, then, now);
        }
    }

    /// Times and sizes of a directory in which the command itself has changed something are its own doing.
    fn is_own_affair(&self, place: &Place, question: &Question, then: &Answer, now: &Answer) -> bool {
        match (question, then, now) {
            (Question::Attributes, Answer::Attributes(then), Answer::Attributes(now)) => {
                then.kind == Kind::Directory && self.changes.directories.contains(place) && then.has_same_rights(now)
            }
            _ => false,
        }
    }

    /// Whether listings differ by names alone that the command has left as they are.
    fn is_other_name(&self, place: &Place, question: &Question, then: &Answer, now: &Answer) -> bool {
        match (question, then, now) {
            (Question::Listing, Answer::Listing(then), Answer::Listing(now)) if self.lenient.listings => {
                let is_removed = self
                    .changes
                    .changes
                    .iter()
                    .any(|change| change.what != What::Attributes && place.is_at_or_below(&change.place));
                let differ = then
                    .iter()
                    .filter(|name| !now.contains(name))
                    .chain(now.iter().filter(|name| !then.contains(name)));
                !is_removed && differ.into_iter().all(|(name, _)| !self.written.contains_key(&place.join(name)))
            }
            (Question::Attributes, Answer::Attributes(then), Answer::Attributes(now)) if self.lenient.listings => {
                then.kind == Kind::Directory && then.has_same_rights(now)
            }
            _ => false,
        }
    }

    /// What is to be replaced must be the very version that the command has found, also where it has not read it.
    fn compare_replaced(&mut self, place: &Place, what: What) {
        if what == What::Replace {
            self.compare_names(place);
        }
        if self.lenient.merged.contains(place) {
            return;
        }
        if what == What::Attributes {
            let is_directory =
                matches!(self.looks.name(place), Some(Answer::Attributes(then)) if then.kind == Kind::Directory);
            if is_directory {
                return;
            }
        }
        match self.looks.name(place).cloned() {
            Some(then) => self.compare_version(place, &then),
            // Where its directory was not there, that was the look.
            None if self.looks.has_absent_above(place) => {}
            None => {
                let now = shown(&self.tree.ask(place, &Question::Name));
                self.refuse(place, "name", "never looked at: it lies in another workspace's layer".to_owned(), now);
            }
        }
        let below: Vec<(Place, Answer)> = self
            .looks
            .by_place
            .range(place.clone()..)
            .take_while(|(other, _)| other.relative().starts_with(place.relative()))
            .filter(|(other, _)| what != What::Attributes && *other != place && other.is_at_or_below(place))
            .filter_map(|(other, _)| self.looks.name(other).map(|answer| (other.clone(), answer.clone())))
            .collect();
        for (place, then) in below {
            self.compare_version(&place, &then);
        }
    }

    /// A file that the command has written, and does not merely replace, has no other name that it had not when it was found: the commit
    /// puts a new file here, and the other name would keep the old one.
    fn compare_names(&mut self, place: &Place) {
        if !self.looks.may_be_copied(place) || planted("try-program: others may give a written file another name") {
            return;
        }
        if let Some(Answer::Attributes(then)) = self.looks.name(place)
            && let Answer::Attributes(now) = self.tree.ask(place, &Question::Name)
            && then.identity() == now.identity()
            && then.links < now.links
        {
            let names = |links: u64| if links == 1 { "1 name".to_owned() } else { format!("{links} names") };
            self.refuse(place, "names", names(then.links), names(now.links));
        }
    }

    fn compare_version(&mut self, place: &Place, then: &Answer) {
        let Answer::Attributes(then) = then else { return };
        if then.kind == Kind::Directory {
            return;
        }
        if planted("try-program: what is replaced may be of any version") {
            return;
        }
        if let Answer::Attributes(now) = self.tree.ask(place, &Question::Name)
            && !now.is_same_under_name(then)
        {
            self.refuse(place, "version", version(then), version(&now));
        }
    }

    fn refuse(&mut self, place: &Place, question: &'static str, then: String, now: String) {
        if self.conflicts.iter().any(|conflict| conflict.place == *place) {
            return;
        }
        let found = self.tree.attributes(place).ok().flatten();
        self.conflicts.push(Conflict {
            place: place.clone(),
            question,
            then,
            now,
            write: self.written.get(place).copied(),
            changed: found.as_ref().map(|attributes| attributes.changed),
            owner: found.as_ref().map(|attributes| attributes.user),
        });
    }
}

impl Question {
    /// How much a different answer says, the first one most.
    fn rank(&self) -> usize {
        match self {
            Question::Name => 0,
            Question::Listing | Question::Data { .. } | Question::Target => 1,
            Question::Size | Question::Version => 2,
            Question::Extended(_) | Question::ExtendedNames => 3,
            Question::Attributes | Question::Copy | Question::EmptyCopy => 4,
        }
    }

    /// In a word.
    pub(crate) fn what(&self) -> &'static str {
        match self {
            Question::Name => "name",
            // What a copy keeps are attributes, too.
            Question::Attributes | Question::Copy | Question::EmptyCopy => "attributes",
            Question::Size => "size",
            Question::Version => "version",
            Question::Listing => "listing",
            Question::Data { .. } => "data",
            Question::Target => "target",
            Question::Extended(_) => "extended attribute",
            Question::ExtendedNames => "extended attributes",
        }
    }
}

/// A version of a file, for messages.
pub(crate) fn version(attributes: &Attributes) -> String {
    format!(
        "{}, {} bytes, of {}",
        attributes.kind.name(),
        attributes.size_bytes,
        crate::time::shown(attributes.modified)
    )
}

/// Names that only one of two listings has.
fn difference(one: &[Listed], other: &[Listed]) -> String {
    let own = one.iter().filter(|name| !other.contains(name));
    let names: Vec<String> = own.map(|(name, _)| crate::escape::shown(name)).collect();
    if names.is_empty() { "no other name".to_owned() } else { format!("also {}", names.join(", ")) }
}

fn shown(answer: &Answer) -> String {
    match answer {
        Answer::Absent => "nothing".to_owned(),
        Answer::Fault(number) => crate::failure::reason(&std::io::Error::from_raw_os_error(*number)),
        Answer::Attributes(attributes) => format!(
            "{} {:04o} {}:{}, {} bytes, of {}",
            attributes.kind.name(),
            attributes.mode,
            attributes.user,
            attributes.group,
            attributes.size_bytes,
            crate::time::shown(attributes.modified)
        ),
        Answer::Size(size_bytes) => format!("{size_bytes} bytes"),
        Answer::Listing(listed) => {
            let names: Vec<String> = listed.iter().map(|(name, _)| crate::escape::shown(name)).collect();
            match names.len() {
                0..=8 => format!("[{}]", names.join(" ")),
                count => format!("[{} … {count} names]", names[..8].join(" ")),
            }
        }
        Answer::Hash(hash) => format!("bytes of hash {hash}"),
        Answer::Target(target) => crate::escape::shown(target),
        Answer::Names(names) => names.iter().map(|name| crate::escape::shown(name)).collect::<Vec<_>>().join(" "),
    }
}
