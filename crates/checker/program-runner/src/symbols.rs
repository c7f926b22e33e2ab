//! This program's functions and data with their names, so that the host can name what the tracer saw.

use object::{Object, ObjectSymbol};

/// One line per symbol: first address, first address after it (both hexadecimal), demangled name.
///
/// # Errors
/// The program's file cannot be read, or holds no symbols.
pub fn of_this_program() -> Result<String, String> {
    let path = "/proc/self/exe";
    let bytes = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
    listing(&bytes).map_err(|why| format!("{path}: {why}"))
}

/// The listing of an ELF file.
///
/// # Errors
/// The bytes are no such file, or it holds no symbols.
pub fn listing(bytes: &[u8]) -> Result<String, String> {
    let file = object::File::parse(bytes).map_err(|error| error.to_string())?;
    let mut lines: Vec<(u64, u64, String)> = file
        .symbols()
        .filter(|symbol| symbol.is_definition() && symbol.size() > 0)
        .filter_map(|symbol| {
            let name = symbol.name().ok()?;
            // `{:#}` leaves out the hash that makes names differ between builds.
            let name = format!("{:#}", rustc_demangle::demangle(name));
            Some((symbol.address(), symbol.address().checked_add(symbol.size())?, name))
        })
        .collect();
    if lines.is_empty() {
        return Err("expected a program with a table of symbols, found none".to_owned());
    }
    lines.sort();
    lines.dedup_by_key(|line| line.0);
    Ok(lines.iter().map(|(start, end, name)| format!("{start:x} {end:x} {name}\n")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_program_is_refused() {
        let bytes = std::fs::read("/proc/self/exe").unwrap();
        for length in [0, 3, 64, 100, bytes.len() / 2] {
            assert!(listing(&bytes[..length]).is_err(), "{length}");
        }
    }
}
