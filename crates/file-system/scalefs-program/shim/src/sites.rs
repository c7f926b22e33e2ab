//! Calls in a program's code are rewritten when it is mapped, before anybody runs there: each becomes a jump to a stub, which goes to
//! our entry.
//!
//! ```text
//! first:   syscall; cmp, test, mov of registers    ─► jmp stub                 stub: lea rcx, 1f; jmp entry; 1: cmp ...; jmp back
//! second:  mov $nr, %eax; syscall                  ─► jmp stub; syscall        stub: mov $nr, %eax; lea rcx, back; jmp entry
//! ```
//! Two bytes that look like a call can be a part of another instruction: a number in it, or an address. So what stands before or behind
//! them must be what stands there for calls.
//!
//! A jump takes five bytes, a call of the kernel two: the instruction after or before it goes into the stub. Where a jump of the same
//! code leads into the bytes that would be replaced, and wherever neither rule fits, the call is left to dispatch. So is one in a page
//! that can be written.

use shared_instance::CodeOf;

use crate::instance;
use crate::system::{self, number};

const PROT_WRITE: u64 = 2;
const READ_WRITE: u64 = 3;
const READ_EXECUTE: u64 = 5;
const PRIVATE_ANONYMOUS: u64 = 0x22;
const MAP_FIXED_NOREPLACE: u64 = 0x10_0000;
const PAGE_BYTES: u64 = 4096;
const JUMP_BYTES: usize = 5;
const MOVE_BYTES: usize = 5;
/// Of a stub, whichever rule made it.
const STUB_BYTES: u64 = 32;
/// Sites that are kept while code is looked through; further ones wait for another look.
const MOST_SITES: usize = 1024;
/// How far from a site jumps are looked for that lead into it.
const NEAR_BYTES: usize = 512;
/// Calls have smaller numbers.
const MOST_CALLS: u32 = 1024;

unsafe extern "C" {
    fn scalefs_entry();
}

/// A call that can be rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Site {
    /// Where the replaced bytes begin, and how many they are.
    start: u32,
    length: u8,
    rule: Rule,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// The instruction after it goes into the stub.
    After,
    /// The move before it does.
    Before,
}

/// The length of an instruction that may be carried elsewhere: of registers and immediate numbers, or of the stack.
fn tail_of(code: &[u8]) -> Option<usize> {
    let is_registers = |modrm: u8| modrm >= 0xc0;
    match *code {
        [0x3d, _, _, _, _, ..] => Some(5),
        [0x48, 0x3d, _, _, _, _, ..] => Some(6),
        [0x48, 0x83, modrm, _, ..] if is_registers(modrm) => Some(4),
        [0x83, modrm, _, ..] if is_registers(modrm) => Some(3),
        [0x48 | 0x49 | 0x4c | 0x4d, 0x85 | 0x89 | 0x8b | 0x39 | 0x3b, modrm, ..] if is_registers(modrm) => Some(3),
        [0x41 | 0x44 | 0x45, 0x85 | 0x89 | 0x8b, modrm, ..] if is_registers(modrm) => Some(3),
        [0x48, 0x8b | 0x89, 0x44 | 0x4c | 0x54 | 0x5c | 0x6c | 0x74 | 0x7c, 0x24, _, ..] => Some(5),
        _ => None,
    }
}

/// Whether some jump near a site seems to lead to one of its bytes but the first, up to `end`.
fn is_jumped_into(code: &[u8], first: usize, end: usize) -> bool {
    let leads = |target: i64| target > first as i64 && target < end as i64;
    let from = first.saturating_sub(NEAR_BYTES);
    let to = (end + NEAR_BYTES).min(code.len());
    (from..to).any(|at| match code[at..] {
        [0xeb | 0x70..=0x7f | 0xe0..=0xe3, distance, ..] => leads(at as i64 + 2 + i64::from(distance as i8)),
        [0xe9, a, b, c, d, ..] => leads(at as i64 + 5 + i64::from(i32::from_le_bytes([a, b, c, d]))),
        [0x0f, 0x80..=0x8f, a, b, c, d, ..] => leads(at as i64 + 6 + i64::from(i32::from_le_bytes([a, b, c, d]))),
        _ => false,
    })
}

/// Whether the two bytes of a call are one, and no part of another instruction: before them ends an instruction that prepares a call (a
/// number or a register goes into a register, or what lies on the stack does), or behind them its result is compared with errors.
fn is_call(code: &[u8], at: usize) -> bool {
    let is_registers = |modrm: u8| modrm >= 0xc0;
    let is_of_stack = |modrm: u8, base: u8| modrm & 0xc7 == 0x44 && base == 0x24;
    let before = |count: usize| at.checked_sub(count).map(|start| &code[start..at]);
    let compares = matches!(
        code[at + 2..],
        [0x3d, 0x00 | 0x01, 0xf0, 0xff, 0xff, ..] | [0x48, 0x3d, 0x00 | 0x01, 0xf0, 0xff, 0xff, ..]
    );
    compares
        || matches!(before(2), Some(&[0x31 | 0x33 | 0x89 | 0x8b, modrm]) if is_registers(modrm))
        || matches!(before(5), Some(&[0xb8..=0xbf, _, _, 0, 0] | &[0xb8..=0xbf, _, _, 0xff, 0xff]))
        || matches!(before(6), Some(&[0xc7, modrm, _, _, 0, 0] | &[0xc7, modrm, _, _, 0xff, 0xff]) if is_registers(modrm))
        || matches!(before(4), Some(&[0x8b | 0x8d, modrm, base, _]) if is_of_stack(modrm, base))
}

/// Whether bytes are the beginning of a number of 64 bits, which goes into a register: programs that make code have such.
fn is_in_long_number(code: &[u8], start: usize) -> bool {
    start.checked_sub(2).is_some_and(|before| matches!(code[before..start], [0x48 | 0x49, 0xb8..=0xbf]))
}

/// The site of the call at an offset, if one of the rules fits.
fn site_at(code: &[u8], at: usize) -> Option<Site> {
    let after = at + 2;
    if let Some(tail) = code.get(after..).and_then(tail_of)
        && 2 + tail >= JUMP_BYTES
        && is_call(code, at)
        && !is_jumped_into(code, at, after + tail)
    {
        return Some(Site { start: at as u32, length: (2 + tail) as u8, rule: Rule::After });
    }
    let start = at.checked_sub(MOVE_BYTES)?;
    if code[start] == 0xb8 {
        let number = u32::from_le_bytes([code[start + 1], code[start + 2], code[start + 3], code[start + 4]]);
        if number < MOST_CALLS && !is_in_long_number(code, start) && !is_jumped_into(code, start, at) {
            return Some(Site { start: start as u32, length: MOVE_BYTES as u8, rule: Rule::Before });
        }
    }
    None
}

/// The sites in code from an offset on, in a list; returns how many there are, and where to go on.
fn find(code: &[u8], from: usize, sites: &mut [Site; MOST_SITES]) -> (usize, usize) {
    let (mut count, mut at, mut free_from) = (0, from, 0);
    while at + 1 < code.len() {
        if code[at] == 0x0f && code[at + 1] == 0x05 {
            if let Some(site) = site_at(code, at).filter(|site| site.start as usize >= free_from) {
                if count == sites.len() {
                    return (count, at);
                }
                sites[count] = site;
                free_from = site.start as usize + usize::from(site.length);
                count += 1;
            }
            at += 2;
        } else {
            at += 1;
        }
    }
    (count, code.len())
}

/// Memory for stubs that code at these addresses can jump to.
fn place_near(start: u64, length: u64, bytes: u64) -> Option<u64> {
    const STEPS: [u64; 8] = [0, 64 << 10, 1 << 20, 16 << 20, 64 << 20, 256 << 20, 512 << 20, 1 << 30];
    let end = (start + length).next_multiple_of(PAGE_BYTES);
    let candidates = STEPS.into_iter().flat_map(|step| [end.checked_add(step), start.checked_sub(step + bytes)]);
    candidates.flatten().filter(|place| *place >= 1 << 16).find_map(|place| {
        let flags = PRIVATE_ANONYMOUS | MAP_FIXED_NOREPLACE;
        let found = system::try_call(number::MMAP, [place & !(PAGE_BYTES - 1), bytes, READ_WRITE, flags, u64::MAX, 0]);
        found.ok()
    })
}

impl Site {
    fn to_word(self) -> u64 {
        u64::from(self.start) | u64::from(self.length) << 32 | u64::from(self.rule == Rule::Before) << 40
    }

    /// The site in a word, if code has a call there: what others have kept is looked at again.
    fn from_word(word: u64, code: &[u8]) -> Option<Site> {
        let rule = if word >> 40 & 1 == 0 { Rule::After } else { Rule::Before };
        let site = Site { start: word as u32, length: (word >> 32) as u8, rule };
        let call = site.start as usize + if rule == Rule::Before { MOVE_BYTES } else { 0 };
        let fits = site.length as usize >= JUMP_BYTES && site.start as usize + usize::from(site.length) <= code.len();
        (fits && code.get(call..call + 2) == Some(&[0x0f, 0x05])).then_some(site)
    }
}

/// Which code a part of an open file is; nothing if the system does not say.
pub(crate) fn code_of(file: u64, offset: u64, bytes: u64) -> Option<CodeOf> {
    let mut status = [0_u64; 18];
    system::try_call(number::FSTAT, [file, status.as_mut_ptr() as u64, 0, 0, 0, 0]).ok()?;
    let changed_ns = status[13].wrapping_mul(1_000_000_000).wrapping_add(status[14]);
    Some(CodeOf { file: [status[0], status[1], status[6], changed_ns], part: [offset, bytes] })
}

/// Rewrites the calls in code that no one runs yet, and that can be written at the moment.
pub(crate) fn rewrite(start: u64, length: u64) {
    // SAFETY: mapped, and run by no one: the caller has just put it there.
    let code = unsafe { core::slice::from_raw_parts_mut(start as *mut u8, length as usize) };
    rewrite_code(code, None, |_| true);
}

/// As [`rewrite`], for code with these rights; with what is known of it, if it is of a file: nothing is looked at that lies behind the
/// file's end.
pub(crate) fn rewrite_protected(start: u64, length: u64, rights: u64, of: Option<CodeOf>) {
    let in_file = of.as_ref().map(|of| of.file[2].saturating_sub(of.part[0]));
    let length = in_file.map_or(length, |in_file| length.min(in_file));
    let page = start & !(PAGE_BYTES - 1);
    let bytes = (start + length).next_multiple_of(PAGE_BYTES) - page;
    if rights & PROT_WRITE != 0 || length == 0 {
        return;
    }
    // SAFETY: as in `rewrite`; it is made writable before the first byte is changed.
    let code = unsafe { core::slice::from_raw_parts_mut(start as *mut u8, length as usize) };
    let protect = |rights| system::call(number::MPROTECT, [page, bytes, rights, 0, 0, 0]) == 0;
    if rewrite_code(code, of.as_ref(), |_| protect(READ_WRITE)) && !protect(rights) {
        system::die(&["the system refuses to protect code again"]);
    }
}

/// Rewrites what can be; whether anything was, after `open` has said that it can be written.
fn rewrite_code(code: &mut [u8], of: Option<&CodeOf>, open: impl Fn(usize) -> bool) -> bool {
    let known = &instance::control().code;
    if let Some(words) = of.and_then(|of| known.find(of)) {
        return !words.is_empty() && rewrite_known(code, words, open);
    }
    let mut sites = [Site { start: 0, length: 0, rule: Rule::After }; MOST_SITES];
    let (mut from, mut is_open, mut is_first) = (0, false, true);
    while from < code.len() {
        let (count, next) = find(code, from, &mut sites);
        from = next;
        if let Some(of) = of.filter(|_| is_first && next == code.len()) {
            let mut words = [0_u64; MOST_SITES];
            for (word, site) in words.iter_mut().zip(&sites[..count]) {
                *word = site.to_word();
            }
            known.keep(of, &words[..count]);
        }
        is_first = false;
        if count == 0 {
            break;
        }
        if !rewrite_sites(code, &sites[..count], |count| is_open || open(count)) {
            break;
        }
        is_open = true;
    }
    is_open
}

/// Rewrites what another look has found; whether anything was.
fn rewrite_known(code: &mut [u8], words: &[u64], open: impl Fn(usize) -> bool) -> bool {
    let mut sites = [Site { start: 0, length: 0, rule: Rule::After }; MOST_SITES];
    let mut count = 0;
    for (place, word) in sites.iter_mut().zip(words) {
        let Some(site) = Site::from_word(*word, code) else { return false };
        *place = site;
        count += 1;
    }
    rewrite_sites(code, &sites[..count], open)
}

/// Rewrites these sites, unless there is no room for stubs near, or the code cannot be written.
fn rewrite_sites(code: &mut [u8], sites: &[Site], open: impl Fn(usize) -> bool) -> bool {
    let bytes = (16 + STUB_BYTES * sites.len() as u64).next_multiple_of(PAGE_BYTES);
    let Some(stubs) = place_near(code.as_ptr() as u64, code.len() as u64, bytes) else { return false };
    if !open(sites.len()) {
        system::call(number::MUNMAP, [stubs, bytes, 0, 0, 0, 0]);
        return false;
    }
    write_stubs(code, sites, stubs);
    system::call(number::MPROTECT, [stubs, bytes, READ_EXECUTE, 0, 0, 0]);
    true
}

/// Bytes that are written one after the other.
struct Writer {
    at: u64,
}

impl Writer {
    fn put(&mut self, bytes: &[u8]) {
        // SAFETY: room for stubs, which the caller has counted.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at as *mut u8, bytes.len()) };
        self.at += bytes.len() as u64;
    }

    /// An operand relative to what follows it.
    fn put_distance(&mut self, target: u64) {
        let distance = target.wrapping_sub(self.at + 4) as u32;
        self.put(&distance.to_le_bytes());
    }
}

fn write_stubs(code: &mut [u8], sites: &[Site], stubs: u64) {
    let start = code.as_ptr() as u64;
    let entry = scalefs_entry as unsafe extern "C" fn() as usize as u64;
    Writer { at: stubs }.put(&entry.to_le_bytes());
    for (index, site) in sites.iter().enumerate() {
        let stub = stubs + 16 + STUB_BYTES * index as u64;
        let (first, length) = (site.start as usize, usize::from(site.length));
        let address = start + u64::from(site.start);
        let mut writer = Writer { at: stub };
        match site.rule {
            Rule::After => {
                let tail = &code[first + 2..first + length];
                // lea rcx, [rip + what follows the jump]; jmp [entry]; the instruction; jmp back
                writer.put(&[0x48, 0x8d, 0x0d, 6, 0, 0, 0, 0xff, 0x25]);
                writer.put_distance(stubs);
                writer.put(tail);
                writer.put(&[0xe9]);
                writer.put_distance(address + length as u64);
            }
            Rule::Before => {
                writer.put(&code[first..first + length]);
                writer.put(&[0x48, 0x8d, 0x0d]);
                writer.put_distance(address + length as u64 + 2);
                writer.put(&[0xff, 0x25]);
                writer.put_distance(stubs);
            }
        }
        let distance = stub.wrapping_sub(address + JUMP_BYTES as u64) as u32;
        code[first] = 0xe9;
        code[first + 1..first + JUMP_BYTES].copy_from_slice(&distance.to_le_bytes());
        code[first + JUMP_BYTES..first + length].fill(0x90);
    }
}
