//! Names of marker types.

/// `Page` and `by_id` give `PageById`.
pub fn marker(item: &str, field: &str) -> String {
    let words = field.trim_start_matches("r#").split('_').filter(|word| !word.is_empty());
    words.fold(item.to_string(), |name, word| {
        let (first, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
        name + &first.to_uppercase() + rest
    })
}

#[cfg(test)]
mod tests {
    use super::marker;

    #[test]
    fn a_marker_is_named_after_item_and_field() {
        assert_eq!(marker("Page", "by_id"), "PageById");
        assert_eq!(marker("Page", "_age"), "PageAge");
        assert_eq!(marker("Page", "r#type"), "PageType");
    }
}
