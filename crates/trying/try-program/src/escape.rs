//! Bytes as one word of a line, and back: names may hold spaces, newlines, and what is no UTF-8.

/// A word without spaces, from which [`bytes_of`] has the bytes again. No bytes at all are `\e`.
pub(crate) fn word(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "\\e".to_owned();
    }
    let mut word = String::with_capacity(bytes.len());
    for &byte in bytes {
        if byte.is_ascii_graphic() && byte != b'\\' {
            word.push(char::from(byte));
        } else {
            word.push_str(&format!("\\x{byte:02x}"));
        }
    }
    word
}

/// The bytes of a word; `None` if it is none that [`word`] has made.
pub(crate) fn bytes_of(word: &str) -> Option<Vec<u8>> {
    if word == "\\e" {
        return Some(Vec::new());
    }
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'\\' {
            bytes.push(first);
            continue;
        }
        let digits = rest.strip_prefix(b"x").and_then(|digits| digits.get(..2))?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = &rest[3..];
    }
    (!bytes.is_empty()).then_some(bytes)
}

/// Bytes for a reader: text stays as it is, controls and what is no UTF-8 become `\xHH`.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if letter.is_control() || letter == '\\' {
                letter.to_string().bytes().for_each(|byte| shown.push_str(&format!("\\x{byte:02x}")));
            } else {
                shown.push(letter);
            }
        }
        chunk.invalid().iter().for_each(|byte| shown.push_str(&format!("\\x{byte:02x}")));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_comes_back() {
        let all: Vec<u8> = (0..=255).collect();
        let word = word(&all);
        assert!(!word.contains([' ', '\n']));
        assert_eq!(bytes_of(&word), Some(all));
        assert_eq!(bytes_of(&super::word(b"")), Some(Vec::new()));
    }

    #[test]
    fn what_is_no_word_is_refused() {
        for wrong in ["", "\\", "\\x", "\\x4", "\\xzz", "\\q"] {
            assert_eq!(bytes_of(wrong), None, "{wrong}");
        }
    }
}
