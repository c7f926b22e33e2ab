//! The program's address space: which file an address comes from, and where a thread's stack lies.

use std::os::unix::fs::FileExt;

/// A mapping with a file behind it, or without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// Where in the file the mapping starts.
    pub offset: u64,
    /// The file's absolute path; empty if there is none.
    pub path: String,
}

/// Reads the text of `/proc/self/maps`; lines that are not understood are left out.
pub fn parse(text: &str) -> Vec<Mapping> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Mapping> {
    let mut parts = line.split_ascii_whitespace();
    let (start, end) = parts.next()?.split_once('-')?;
    let (_permissions, offset) = (parts.next()?, parts.next()?);
    let path = line.splitn(6, ' ').nth(5).unwrap_or("").trim_start();
    let number = |text| u64::from_str_radix(text, 16).ok();
    let path = if path.starts_with('/') { path.to_owned() } else { String::new() };
    Some(Mapping { start: number(start)?, end: number(end)?, offset: number(offset)?, path })
}

/// The present mappings; none if they cannot be read. Of the calling thread: a process whose first thread has ended
/// (`pthread_exit` in `main`) shows none under its own number.
pub fn read() -> Vec<Mapping> {
    std::fs::read("/proc/thread-self/maps").map(|text| parse(&String::from_utf8_lossy(&text))).unwrap_or_default()
}

/// The present mappings, and those of files that were there before and where nothing else lies now: a library may be gone
/// when its locks are named.
pub fn with_earlier(present: Vec<Mapping>, earlier: Vec<Mapping>) -> Vec<Mapping> {
    let is_free = |old: &Mapping| present.iter().all(|new| new.end <= old.start || old.end <= new.start);
    let gone: Vec<Mapping> = earlier.into_iter().filter(|old| !old.path.is_empty() && is_free(old)).collect();
    let mut all = [present, gone].concat();
    all.sort_by_key(|mapping| mapping.start);
    all
}

/// The first words of a structure of the program; None where there is no memory. The emulator maps a program's memory at the
/// program's own addresses.
pub fn words_at<const N: usize>(address: u64) -> Option<[u64; N]> {
    let memory = std::fs::File::open("/proc/thread-self/mem").ok()?;
    let mut bytes = vec![0; N * 8];
    memory.read_exact_at(&mut bytes, address).ok()?;
    let (words, _) = bytes.as_chunks::<8>();
    let mut words = words.iter().map(|&word| u64::from_le_bytes(word));
    Some(std::array::from_fn(|_| words.next().unwrap_or_default()))
}

/// What may lie above a thread's first frame and is still the thread's own: its descriptor and thread-local variables.
const ABOVE_FIRST_FRAME_BYTES: u64 = 16 << 10;
/// Largest stack that is believed in, if the mapping is larger (the kernel merges neighbours).
const STACK_LIMIT_BYTES: u64 = 8 << 20;

/// The addresses of the stack that `stack_pointer` lies in, seen at the thread's first call.
pub fn stack_around(mappings: &[Mapping], stack_pointer: u64) -> std::ops::Range<u64> {
    let top = stack_pointer.saturating_add(ABOVE_FIRST_FRAME_BYTES);
    let bottom = stack_pointer.saturating_sub(STACK_LIMIT_BYTES);
    match mappings.iter().find(|mapping| (mapping.start..mapping.end).contains(&stack_pointer)) {
        Some(mapping) => mapping.start.max(bottom)..mapping.end.min(top),
        None => bottom..top,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
00400000-00401000 r-xp 00000000 fe:01 12                                 /usr/bin/a program
00601000-00602000 rw-p 00001000 fe:01 12                                 /usr/bin/a program
7f0000000000-7f0000800000 rw-p 00000000 00:00 0 
7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]
nonsense
";

    #[test]
    fn mappings_are_read_with_their_files() {
        let mappings = parse(TEXT);
        assert_eq!(mappings.len(), 4);
        let path = "/usr/bin/a program".to_owned();
        assert_eq!(mappings[1], Mapping { start: 0x60_1000, end: 0x60_2000, offset: 0x1000, path });
        assert_eq!((mappings[2].path.as_str(), mappings[3].path.as_str()), ("", ""));
    }

    #[test]
    fn a_stack_ends_near_its_first_frame_and_with_its_mapping() {
        let mappings = parse(TEXT);
        assert_eq!(stack_around(&mappings, 0x7f00_007f_f000), 0x7f00_0000_0000..0x7f00_0080_0000);
        assert_eq!(stack_around(&mappings, 0x7f00_0010_0000), 0x7f00_0000_0000..0x7f00_0010_4000);
    }

    #[test]
    fn a_library_that_is_gone_is_known_until_something_else_lies_there() {
        let mapping = |start, end, path: &str| Mapping { start, end, offset: 0, path: path.to_owned() };
        let (program, library) = (mapping(1, 5, "/program"), mapping(10, 20, "/library"));
        let earlier = vec![program.clone(), library.clone(), mapping(20, 30, "")];
        assert_eq!(with_earlier(vec![program.clone()], earlier.clone()), [program.clone(), library]);
        let other = mapping(19, 25, "");
        assert_eq!(with_earlier(vec![program.clone(), other.clone()], earlier), [program, other]);
    }

    #[test]
    fn memory_is_read_where_there_is_some() {
        let words = [3_u64, 4, 5];
        assert_eq!(words_at(words.as_ptr() as u64), Some(words));
        assert_eq!(words_at::<1>(8), None);
    }

    #[test]
    fn this_process_has_mappings() {
        let here = std::ptr::from_ref(&TEXT) as u64;
        assert!(read().iter().any(|mapping| (mapping.start..mapping.end).contains(&here)));
    }
}
