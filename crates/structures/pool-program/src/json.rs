//! Values as JSON.

use std::fmt::Write as _;

/// A text in quotes.
pub(crate) fn text(value: &str) -> String {
    let mut quoted = String::from("\"");
    for character in value.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if u32::from(control) < 0x20 => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(control));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_json_has_marks_for_is_escaped() {
        assert_eq!(text("a \"b\" \\ c\n"), r#""a \"b\" \\ c\u000a""#);
    }
}
