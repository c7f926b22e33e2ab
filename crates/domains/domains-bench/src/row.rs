//! A line of JSON for each figure.

use std::fmt::Write as _;

/// Says how far the program has come.
pub fn say(what: &str) {
    eprintln!("domains-bench: {what}");
}

/// A line that is being made. Names and texts are this program's own: none needs escapes.
pub struct Row(String);

impl Row {
    /// What kind of row it is.
    pub fn new(part: &str) -> Row {
        Row(format!("{{\"part\": \"{part}\""))
    }

    /// Adds a text.
    #[must_use]
    pub fn text(mut self, name: &str, value: &str) -> Row {
        let _ = write!(self.0, ", \"{name}\": \"{value}\"");
        self
    }

    /// Adds a number.
    #[must_use]
    pub fn number(mut self, name: &str, value: f64) -> Row {
        // JSON has no infinity: it would be a figure of nothing.
        assert!(value.is_finite(), "{name}: {value}");
        let _ = write!(self.0, ", \"{name}\": {value}");
        self
    }

    /// Prints it.
    pub fn print(self) {
        println!("{}}}", self.0);
    }
}
