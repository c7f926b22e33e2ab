//! Which changes are shown and committed: patterns for paths.

use std::collections::BTreeSet;

use regex_lite::Regex;

use crate::failure::Failure;
use crate::place::Place;

/// Patterns that a path must match, and such that it must not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    included: Vec<Regex>,
    excluded: Vec<Regex>,
    /// Chosen by hand; all if there is no choice.
    chosen: Option<BTreeSet<String>>,
}

impl Filter {
    pub(crate) fn include(&mut self, pattern: &str) -> Result<(), Failure> {
        self.included.push(compiled(pattern)?);
        Ok(())
    }

    pub(crate) fn exclude(&mut self, pattern: &str) -> Result<(), Failure> {
        self.excluded.push(compiled(pattern)?);
        Ok(())
    }

    /// Takes these paths alone, of those that the patterns let through.
    pub(crate) fn choose(&mut self, paths: BTreeSet<String>) {
        self.chosen = Some(paths);
    }

    pub(crate) fn wants(&self, place: &Place) -> bool {
        let is_chosen = self.chosen.as_ref().is_none_or(|chosen| chosen.contains(&place.to_string()));
        is_chosen && self.lets_through(place)
    }

    /// Whether the patterns let a path through. A choice by hand names what goes as a whole once, and nothing below it.
    pub(crate) fn lets_through(&self, place: &Place) -> bool {
        let path = place.to_string();
        let is_included = self.included.is_empty() || self.included.iter().any(|pattern| pattern.is_match(&path));
        is_included && !self.excluded.iter().any(|pattern| pattern.is_match(&path))
    }
}

fn compiled(pattern: &str) -> Result<Regex, Failure> {
    Regex::new(pattern).map_err(|error| Failure::input(format!("`{pattern}` is no regular expression: {error}")))
}
