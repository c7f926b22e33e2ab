//! Critical sections of a window, as far as shared lines show them: what is touched only while one lock is held follows from
//! that lock, and is no cause of its own.
//!
//! A lock that two cores take lies in a line that they share, so all that either did to it is in the window's record: the
//! functions that took it and released it, and when. Between the two the core held it. A section is known by a core's
//! count of accesses to shared lines ([`Moments`]), so nothing is asked of the tracer but their order.

use crate::conflict::Conflict;
use crate::record::{Access, AccessKind, Moments, SharedLine, Window};

/// What a function does to a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Takes it and keeps all others out.
    Take(Family),
    /// Takes it and lets other readers in.
    TakeShared(Family),
    /// Gives it back.
    Release(Family),
}

/// Locks that are distinguished within one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Spin locks.
    Spin,
    /// Reader-writer locks that spin.
    ReadWrite,
    /// Mutexes.
    Mutex,
    /// Reader-writer semaphores.
    Semaphore,
}

/// What a function of Linux (`include/linux/{spinlock,rwlock,mutex,rwsem}.h`) or of pthread's does to a lock, by its name.
/// Of the C library's internal names for one function (`__GI___pthread_mutex_lock`) all mean it.
pub fn step_of(function: &str) -> Option<Step> {
    const NAMES: [(&str, Step); 24] = [
        ("_raw_spin_unlock", Step::Release(Family::Spin)),
        ("_raw_spin_lock", Step::Take(Family::Spin)),
        ("_raw_spin_trylock", Step::Take(Family::Spin)),
        ("_raw_read_unlock", Step::Release(Family::ReadWrite)),
        ("_raw_write_unlock", Step::Release(Family::ReadWrite)),
        ("_raw_read_lock", Step::TakeShared(Family::ReadWrite)),
        ("_raw_write_lock", Step::Take(Family::ReadWrite)),
        ("mutex_unlock", Step::Release(Family::Mutex)),
        ("mutex_lock", Step::Take(Family::Mutex)),
        ("mutex_trylock", Step::Take(Family::Mutex)),
        ("up_read", Step::Release(Family::Semaphore)),
        ("up_write", Step::Release(Family::Semaphore)),
        ("down_read", Step::TakeShared(Family::Semaphore)),
        ("down_write", Step::Take(Family::Semaphore)),
        ("pthread_mutex_unlock", Step::Release(Family::Mutex)),
        ("pthread_mutex_lock", Step::Take(Family::Mutex)),
        ("pthread_mutex_trylock", Step::Take(Family::Mutex)),
        ("pthread_spin_unlock", Step::Release(Family::Spin)),
        ("pthread_spin_lock", Step::Take(Family::Spin)),
        ("pthread_rwlock_unlock", Step::Release(Family::ReadWrite)),
        ("pthread_rwlock_rdlock", Step::TakeShared(Family::ReadWrite)),
        ("pthread_rwlock_wrlock", Step::Take(Family::ReadWrite)),
        ("pthread_rwlock_tryrdlock", Step::TakeShared(Family::ReadWrite)),
        ("pthread_rwlock_trywrlock", Step::Take(Family::ReadWrite)),
    ];
    let bare = function.strip_prefix("__GI_").unwrap_or(function).trim_start_matches('_');
    let name = if bare.starts_with("pthread_") { bare } else { function };
    NAMES.iter().find(|(start, _)| name.starts_with(start)).map(|&(_, step)| step)
}

/// What a method of a lock's class does to it, by its name: Rust's `Mutex` and `RwLock` (`std::sys::sync`), those of
/// parking_lot and others (`lock_api`), and classes of C++ that are called so. A guard's end is a release.
pub fn step_of_method(name: &str) -> Option<Step> {
    let (class, method) = class_and_method(name)?;
    let lower = class.to_ascii_lowercase();
    if lower.ends_with("guard") && method == "drop" {
        let is_locks = ["mutex", "lock"].iter().any(|kind| lower.contains(kind));
        return is_locks.then(|| Step::Release(family_of(&lower)));
    }
    let is_lock = lower.ends_with("mutex")
        || class.ends_with("Lock")
        || ["lock", "spinlock"].contains(&class)
        || class.ends_with("_lock");
    let family = is_lock.then(|| family_of(&lower))?;
    Some(match method {
        "lock" | "try_lock" | "lock_contended" | "lock_slow" | "Lock" | "TryLock" | "WriterLock" | "acquire" => {
            Step::Take(family)
        }
        "write" | "try_write" | "write_contended" | "lock_exclusive" | "try_lock_exclusive" | "lock_exclusive_slow" => {
            Step::Take(family)
        }
        "read" | "try_read" | "read_contended" | "lock_shared" | "try_lock_shared" | "lock_shared_slow"
        | "ReaderLock" => Step::TakeShared(family),
        "unlock" | "unlock_slow" | "read_unlock" | "write_unlock" | "unlock_shared" | "unlock_exclusive" => {
            Step::Release(family)
        }
        "Unlock" | "ReaderUnlock" | "WriterUnlock" | "release" | "force_unlock" => Step::Release(family),
        _ => return None,
    })
}

fn family_of(class: &str) -> Family {
    if class.contains("rw") || class.contains("shared") {
        Family::ReadWrite
    } else if class.contains("spin") {
        Family::Spin
    } else {
        Family::Mutex
    }
}

/// Class and method of a function's name, without namespaces and type arguments: of `<a::Mutex<T> as b::Lock>::lock` and of
/// `a::Mutex<T>::lock(int)` both are `Mutex` and `lock`.
fn class_and_method(name: &str) -> Option<(&str, &str)> {
    let (class, method) = match name.strip_prefix('<') {
        Some(rest) => {
            let end = closing(rest)?;
            let class = rest[..end].split(" as ").next()?;
            (class, rest[end + 1..].strip_prefix("::")?)
        }
        None => {
            // Type arguments and parameters hold colons of their own.
            let mut depth = 0_usize;
            let mut cut = None;
            let bytes = name.as_bytes();
            for (place, letter) in bytes.iter().enumerate() {
                match letter {
                    b'(' if depth == 0 => break,
                    b'<' => depth += 1,
                    b'>' => depth = depth.saturating_sub(1),
                    b':' if depth == 0 && bytes.get(place + 1) == Some(&b':') => cut = Some(place),
                    _ => {}
                }
            }
            let cut = cut?;
            (&name[..cut], &name[cut + 2..])
        }
    };
    let plain = |text: &'_ str| -> usize { text.find(['<', '(']).unwrap_or(text.len()) };
    let class = &class[..plain(class)].trim_end_matches(':');
    let class = class.rsplit("::").next()?;
    let class = class.rsplit(' ').next()?;
    Some((class, &method[..plain(method)]))
}

/// Where the bracket closes that was opened before the text.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1_usize;
    let mut previous = ' ';
    for (place, letter) in text.char_indices() {
        match letter {
            '<' => depth += 1,
            '>' if previous != '-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(place);
        }
        previous = letter;
    }
    None
}

/// A stretch of a core's accesses during which it held a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// The lock's line, by its place in the window.
    pub line: usize,
    /// The lock's first byte there, and how many it has, as the taking instruction touched them.
    pub bytes: (u8, u8),
    family: Family,
    core: u8,
    start: u32,
    end: u32,
    shared: bool,
}

impl Section {
    /// What tells its lock from others of the window: the line's place, and the lock's first byte there.
    pub fn lock(&self) -> (usize, u8) {
        (self.line, self.bytes.0)
    }

    /// Who held it.
    pub fn core(&self) -> u8 {
        self.core
    }

    /// Whether some of these bytes of a line are the lock's own.
    fn has(&self, line: usize, mask: u64) -> bool {
        let (first, count) = self.bytes;
        self.line == line && mask & (((1_u128 << count) - 1) << first) as u64 != 0
    }
}

/// All sections of a window; `step` says what the function of an instruction does to a lock.
pub fn sections(window: &Window, mut step: impl FnMut(u64) -> Option<Step>) -> Vec<Section> {
    let mut found = Vec::new();
    let mut events = Vec::new();
    for (place, line) in window.lines.iter().enumerate() {
        events.clear();
        for (access, made) in line.accesses.iter().zip(&line.moments) {
            if let Some(step) = step(access.instruction) {
                events.push((access.core, made.first, step, *access));
                if made.last != made.first {
                    events.push((access.core, made.last, step, *access));
                }
            }
        }
        events.sort_unstable_by_key(|&(core, at, ..)| (core, at));
        add_sections(place, &events, &mut found);
    }
    found.sort_unstable_by_key(|section: &Section| (section.core, section.start));
    found
}

fn add_sections(line: usize, events: &[(u8, u32, Step, Access)], found: &mut Vec<Section>) {
    let mut open: Vec<Section> = Vec::new();
    for &(core, at, step, access) in events {
        let (family, shared) = match step {
            Step::Take(family) => (family, false),
            Step::TakeShared(family) => (family, true),
            Step::Release(family) => {
                // Before it gives the lock back, a function may write who had it; what it reads is nothing yet.
                let is_release = |one: &Section| {
                    let own = Access { offset: one.bytes.0, size_bytes: one.bytes.1, ..access };
                    access.kind == AccessKind::Write && access.byte_mask() & own.byte_mask() != 0
                };
                let ended = |one: &Section| one.core == core && one.family == family && is_release(one);
                if let Some(index) = open.iter().rposition(ended) {
                    found.push(Section { end: at, ..open.remove(index) });
                }
                continue;
            }
        };
        if access.kind == AccessKind::Write && !open.iter().any(|one| one.core == core && one.family == family) {
            let bytes = (access.offset, access.size_bytes);
            open.push(Section { line, bytes, family, core, start: at, end: at, shared });
        }
    }
}

/// The outermost lock under which alone both cores touched what they share; None if there is none. `places` are those of
/// the two accesses' lines in the window.
///
/// Looked at is each access of the two cores to the bytes in question: one that is made without the lock makes them a
/// cause of their own. Two readers keep no one out, so one of the sections must.
pub fn held_by_both<'a>(
    sections: &'a [Section],
    lines: &[SharedLine],
    places: [usize; 2],
    conflict: &Conflict,
) -> Option<&'a Section> {
    let masks = masks(lines, places, conflict);
    let lines = places.map(|place| &lines[place]);
    let pair = [lines[0].accesses[conflict.first], lines[1].accesses[conflict.second]];
    let moments = [0, 1].map(|side| {
        let touched = lines[side].accesses.iter().zip(&lines[side].moments);
        let own =
            touched.filter(move |(access, _)| access.core == pair[side].core && access.byte_mask() & masks[side] != 0);
        own.map(|(_, made)| *made).collect::<Vec<_>>()
    });
    let covers = |section: &Section, made: &[Moments]| {
        made.iter().all(|made| section.start < made.first && made.last < section.end)
    };
    // A lock's own bytes are no data under it; others of its line are.
    let own = |section: &Section| (0..2).any(|side| section.has(places[side], masks[side]));
    let mine = sections.iter().filter(|section| section.core == pair[0].core && !own(section));
    mine.filter(|section| covers(section, &moments[0])).find(|section| {
        let theirs = sections.iter().filter(|other| other.core == pair[1].core && other.lock() == section.lock());
        theirs.filter(|other| covers(other, &moments[1])).any(|other| !(section.shared && other.shared))
    })
}

/// A section of the lock that the shared bytes are; None if they are none's.
pub fn is_lock<'a>(
    sections: &'a [Section],
    lines: &[SharedLine],
    places: [usize; 2],
    conflict: &Conflict,
) -> Option<&'a Section> {
    let masks = masks(lines, places, conflict);
    sections.iter().find(|section| (0..2).all(|side| section.has(places[side], masks[side])))
}

/// The bytes in question of either access's line: those that both touched, or else each one's own.
fn masks(lines: &[SharedLine], places: [usize; 2], conflict: &Conflict) -> [u64; 2] {
    let one = lines[places[0]].accesses[conflict.first].byte_mask();
    let other = lines[places[1]].accesses[conflict.second].byte_mask();
    let common = one & other;
    if places[0] == places[1] && common != 0 { [common, common] } else { [one, other] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conflict::Sharing;

    const TAKES: u64 = 1;
    const RELEASES: u64 = 2;
    const READS: u64 = 3;
    const SPINS: u64 = 4;
    const STOPS: u64 = 5;

    fn access(core: u8, instruction: u64, offset: u8) -> Access {
        Access { instruction, stack: 0, core, offset, size_bytes: 8, kind: AccessKind::Write }
    }

    fn line(accesses: &[(Access, u32, u32)]) -> SharedLine {
        SharedLine {
            address: 0,
            physical: None,
            captures: Vec::new(),
            accesses: accesses.iter().map(|one| one.0).collect(),
            moments: accesses.iter().map(|one| Moments { first: one.1, last: one.2 }).collect(),
        }
    }

    fn window(lines: Vec<SharedLine>) -> Window {
        let ignored_lines = [0; crate::rules::RULE_COUNT];
        Window {
            sequence: 0,
            lost_accesses: 0,
            counted_accesses: vec![0, 0],
            logged_accesses: vec![200, 200],
            ignored_lines,
            lines,
        }
    }

    fn steps(instruction: u64) -> Option<Step> {
        match instruction {
            TAKES => Some(Step::Take(Family::Mutex)),
            RELEASES => Some(Step::Release(Family::Mutex)),
            READS => Some(Step::TakeShared(Family::Mutex)),
            SPINS => Some(Step::Take(Family::Spin)),
            STOPS => Some(Step::Release(Family::Spin)),
            _ => None,
        }
    }

    fn held(second_take: u64, outside: bool) -> bool {
        let lock = line(&[
            (access(0, TAKES, 16), 10, 10),
            (access(0, RELEASES, 16), 20, 20),
            (access(1, second_take, 16), 110, 110),
            (access(1, RELEASES, 16), 120, 120),
        ]);
        let data = line(&[
            (access(0, 9, 0), 12, if outside { 22 } else { 13 }),
            (access(1, 9, 0), 112, 112),
            (access(1, 9, 32), 130, 130),
        ]);
        let window = window(vec![lock, data]);
        let conflict = Conflict { sharing: Sharing::True, place: 0, other_place: 0, first: 0, second: 1 };
        let sections = sections(&window, steps);
        assert_eq!(sections.len(), 2);
        held_by_both(&sections, &window.lines, [1, 1], &conflict)
            .is_some_and(|section| (section.line, section.bytes) == (0, (16, 8)))
    }

    #[test]
    fn what_is_touched_only_while_a_lock_is_held_is_under_it() {
        assert!(held(TAKES, false));
        assert!(held(READS, false), "a writer keeps a reader out");
        assert!(!held(TAKES, true), "it was touched again behind the release");
    }

    /// Core, family, start, end and whether it is shared, of each section.
    fn told(accesses: &[(Access, u32, u32)]) -> Vec<(u8, Family, u32, u32, bool)> {
        let found = sections(&window(vec![line(accesses)]), steps);
        found.iter().map(|one| (one.core, one.family, one.start, one.end, one.shared)).collect()
    }

    #[test]
    fn each_core_and_each_family_has_sections_of_its_own() {
        let made = |core, instruction, at| (access(core, instruction, 16), at, at);
        let (mutex, spin) = (Family::Mutex, Family::Spin);
        // One core's release lies after the window.
        let open = [made(0, TAKES, 10), made(1, TAKES, 110), made(1, RELEASES, 120)];
        assert_eq!(told(&open), [(1, mutex, 110, 120, false)]);
        let nested = [made(0, TAKES, 10), made(0, SPINS, 12), made(0, STOPS, 14), made(0, RELEASES, 20)];
        assert_eq!(told(&nested), [(0, mutex, 10, 20, false), (0, spin, 12, 14, false)]);
        // An instruction that was executed twice took the lock at either time, and one that takes it again does not.
        let twice = [(access(0, READS, 16), 10, 30), (access(0, RELEASES, 16), 20, 40), made(0, TAKES, 32)];
        assert_eq!(told(&twice), [(0, mutex, 10, 20, true), (0, mutex, 30, 40, true)]);
        let only_looks = (Access { kind: AccessKind::Read, ..access(0, TAKES, 16) }, 5, 5);
        assert_eq!(told(&[only_looks, made(0, RELEASES, 20), made(0, STOPS, 22)]), []);
    }

    #[test]
    fn two_locks_or_two_readers_keep_nobody_out() {
        let held = |locks: [(u8, u64); 2]| {
            let sides = [(0, 0), (1, 100)];
            let made: Vec<_> = sides
                .iter()
                .zip(locks)
                .flat_map(|(&(core, at), (offset, takes))| {
                    let release = if takes == SPINS { STOPS } else { RELEASES };
                    [(access(core, takes, offset), at + 10, at + 10), (access(core, release, offset), at + 20, at + 20)]
                })
                .collect();
            let data = line(&[(access(0, 9, 0), 12, 13), (access(1, 9, 0), 112, 113)]);
            let window = window(vec![line(&made), data]);
            let conflict = Conflict { sharing: Sharing::True, place: 0, other_place: 0, first: 0, second: 1 };
            let sections = sections(&window, steps);
            assert_eq!(sections.len(), 2);
            held_by_both(&sections, &window.lines, [1, 1], &conflict).is_some()
        };
        assert!(held([(16, TAKES), (16, TAKES)]));
        assert!(!held([(16, TAKES), (32, TAKES)]), "another lock of the line");
        assert!(!held([(16, READS), (16, READS)]));
        assert!(held([(16, READS), (16, TAKES)]));
    }

    #[test]
    fn methods_of_locks_are_known_by_their_names() {
        let (mutex, read_write) = (Family::Mutex, Family::ReadWrite);
        for (name, step) in [
            ("std::sys::sync::mutex::futex::Mutex::lock", Some(Step::Take(mutex))),
            ("std::sync::poison::mutex::Mutex<std::collections::HashMap<i64, i64>>::lock", Some(Step::Take(mutex))),
            ("<std::sync::poison::mutex::Mutex<T>>::lock", Some(Step::Take(mutex))),
            ("<std::sync::MutexGuard<alloc::vec::Vec<u8>> as core::ops::drop::Drop>::drop", Some(Step::Release(mutex))),
            ("std::sys::sync::mutex::futex::Mutex::unlock", Some(Step::Release(mutex))),
            ("std::sys::sync::rwlock::futex::RwLock::read", Some(Step::TakeShared(read_write))),
            ("std::sys::sync::rwlock::futex::RwLock::write_unlock", Some(Step::Release(read_write))),
            ("<parking_lot::raw_mutex::RawMutex as lock_api::mutex::RawMutex>::lock", Some(Step::Take(mutex))),
            ("parking_lot::raw_rwlock::RawRwLock::lock_exclusive_slow", Some(Step::Take(read_write))),
            ("spin::mutex::spin::SpinMutex<T, R>::try_lock", Some(Step::Take(Family::Spin))),
            ("tbb::detail::d1::spin_mutex::lock()", Some(Step::Take(Family::Spin))),
            ("std::shared_mutex::lock_shared()", Some(Step::TakeShared(read_write))),
            ("absl::lts_20230802::Mutex::Lock()", Some(Step::Take(mutex))),
            ("void ns::SpinLock::unlock(int)", Some(Step::Release(Family::Spin))),
            ("store::Block::lock", None),
            ("store::Clock::read", None),
            ("store::Mutex::len", None),
            ("std::io::Read::read", None),
            ("lock", None),
            ("", None),
            ("<", None),
            ("<a>::", None),
            ("a::", None),
        ] {
            assert_eq!(step_of_method(name), step, "{name}");
        }
    }

    #[test]
    fn a_lock_is_held_until_it_is_given_back() {
        // pthread's unlock reads the kind of mutex and writes its owner first.
        let reads = (Access { kind: AccessKind::Read, ..access(0, RELEASES, 32) }, 19, 19);
        let owner = (access(0, RELEASES, 24), 20, 20);
        let made = [(access(0, TAKES, 16), 10, 10), reads, owner, (access(0, RELEASES, 16), 22, 22)];
        assert_eq!(told(&made), [(0, Family::Mutex, 10, 22, false)]);
    }

    #[test]
    fn functions_are_known_by_their_names() {
        for (name, step) in [
            ("down_write_killable", Some(Step::Take(Family::Semaphore))),
            ("_raw_spin_unlock_irqrestore", Some(Step::Release(Family::Spin))),
            ("___pthread_mutex_lock", Some(Step::Take(Family::Mutex))),
            ("__GI___pthread_mutex_lock", Some(Step::Take(Family::Mutex))),
            ("__pthread_mutex_lock", Some(Step::Take(Family::Mutex))),
            ("__pthread_mutex_unlock_usercnt", Some(Step::Release(Family::Mutex))),
            ("___pthread_rwlock_rdlock", Some(Step::TakeShared(Family::ReadWrite))),
            ("__GI_mutex_lock", None),
            ("mutex_unlock", Some(Step::Release(Family::Mutex))),
            ("lockref_get", None),
        ] {
            assert_eq!(step_of(name), step, "{name}");
        }
    }
}
