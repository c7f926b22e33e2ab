//! What the runs in a workspace have seen, by place.

use std::collections::BTreeMap;

use crate::attributes::Time;
use crate::place::Place;
use crate::question::{Answer, Listed, Look, Question};
use crate::stops::planted;

/// What the command has seen, in order of places.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    pub(crate) by_place: BTreeMap<Place, Vec<(Question, Answer)>>,
}

impl Looks {
    pub(crate) fn new(looks: impl IntoIterator<Item = Look>) -> Looks {
        let mut by_place: BTreeMap<Place, Vec<(Question, Answer)>> = BTreeMap::new();
        for look in looks {
            let of_place = by_place.entry(look.place).or_default();
            let pair = (look.question, look.answer);
            if planted("try-program: a record keeps the last look at a place") {
                of_place.clear();
            }
            if !of_place.contains(&pair) {
                of_place.push(pair);
            }
        }
        Looks { by_place }
    }

    /// What was asked about a place.
    pub(crate) fn of(&self, place: &Place) -> &[(Question, Answer)] {
        self.by_place.get(place).map_or(&[], Vec::as_slice)
    }

    /// What was at a place when it was looked at first; `None` if it was not.
    pub(crate) fn name(&self, place: &Place) -> Option<&Answer> {
        self.of(place).iter().find(|(question, _)| *question == Question::Name).map(|(_, answer)| answer)
    }

    /// Whether an overlay may have copied the file at a place into its layer: it has asked what a copy keeps. Its question counts as
    /// the command's where it cannot be told from that.
    pub(crate) fn may_be_copied(&self, place: &Place) -> bool {
        let is_copy =
            |question: &Question| matches!(question, Question::Copy | Question::EmptyCopy | Question::Attributes);
        self.of(place).iter().any(|(question, _)| is_copy(question))
    }

    /// Places below another one at which something was found.
    pub(crate) fn found_below<'a>(&'a self, place: &'a Place) -> impl Iterator<Item = &'a Place> {
        self.by_place
            .range(place.clone()..)
            .map(|(below, _)| below)
            .take_while(|below| below.relative().starts_with(place.relative()))
            .filter(move |below| *below != place && below.is_at_or_below(place))
            .filter(|below| matches!(self.name(below), Some(Answer::Attributes(_))))
    }

    /// Whether a directory on the way to a place was found to be absent.
    pub(crate) fn has_absent_above(&self, place: &Place) -> bool {
        std::iter::successors(place.parent(), Place::parent).any(|above| self.name(&above) == Some(&Answer::Absent))
    }

    /// The times of change that a place was seen with.
    pub(crate) fn times(&self, place: &Place) -> impl Iterator<Item = Time> {
        self.of(place).iter().filter_map(|(_, answer)| match answer {
            Answer::Attributes(attributes) => Some(attributes.modified),
            _ => None,
        })
    }

    /// Which names a directory held.
    pub(crate) fn listing(&self, place: &Place) -> Option<&[Listed]> {
        self.of(place).iter().find_map(|(_, answer)| match answer {
            Answer::Listing(listed) => Some(listed.as_slice()),
            _ => None,
        })
    }

    /// Places that were found, and those that were read.
    pub(crate) fn places(&self) -> impl Iterator<Item = (&Place, &[(Question, Answer)])> {
        self.by_place.iter().map(|(place, looks)| (place, looks.as_slice()))
    }
}
