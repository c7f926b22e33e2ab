//! poll and select: what the program has open is the kernel's, or a file that is always ready, as its placeholder is. A number at
//! which nothing is open has a placeholder, too, and is answered here.

use scalefs::Errno;

use crate::dispatch::{After, Answer};
use crate::guarded;
use crate::home::Home;
use crate::signals;
use crate::system;
use crate::threads::Thread;

const POLL: u64 = 7;
const PPOLL: u64 = 271;
const PSELECT: u64 = 270;
const MICROSECONDS: i64 = 1_000_000;
const NANOSECONDS: i64 = 1_000_000_000;
/// `struct pollfd`: descriptor, what is asked for, what is seen.
const ENTRY_BYTES: u64 = 8;
const SEEN_AT: u64 = 6;
const POLLNVAL: u16 = 0x20;
/// The most entries that are looked at: no one has more open.
const MOST_ENTRIES: u64 = 1 << 16;
const SETS: usize = 3;

/// poll, ppoll. With a number at which nothing is open it does not wait (Linux: `do_pollfd` says POLLNVAL).
pub(crate) fn poll(thread: &mut Thread, call: (u64, [u64; 6])) -> Answer {
    let (number, [entries, count, ..]) = call;
    let home = thread.home();
    let count_looked_at = u64::from(count as u32).min(MOST_ENTRIES);
    if !closed_in(home, entries, count_looked_at).any(|_| true) {
        return match number {
            POLL => Answer::issue(thread, number, call.1, After::Nothing),
            _ => signals::wait_with_mask(thread, (PPOLL, call.1), 3),
        };
    }
    if let Err(errno) = system::try_call(POLL, [entries, count, 0, 0, 0, 0]) {
        return Answer::number(errno);
    }
    for index in closed_in(home, entries, count_looked_at) {
        if guarded::write_value(entries + index * ENTRY_BYTES + SEEN_AT, POLLNVAL).is_err() {
            return Answer::error(Errno::EFAULT);
        }
    }
    let is_seen =
        |index: &u64| guarded::read_value::<u16>(entries + index * ENTRY_BYTES + SEEN_AT).is_ok_and(|seen| seen != 0);
    Answer::Done((0..count_looked_at).filter(is_seen).count() as i64)
}

/// The entries of numbers at which nothing is open.
fn closed_in(home: &Home, entries: u64, count: u64) -> impl Iterator<Item = u64> {
    (0..count)
        .map_while(move |index| Some((index, guarded::read_value::<i32>(entries + index * ENTRY_BYTES).ok()?)))
        .filter(move |(_, number)| *number >= 0 && home.numbers.is_closed(*number as u64))
        .map(|(index, _)| index)
}

/// select, pselect6. A number at which nothing is open is an error (Linux: `max_select_fd`). The kernel looks at times and masks
/// before, and writes back what is left of the time.
pub(crate) fn select(thread: &mut Thread, call: (u64, [u64; 6])) -> Answer {
    let (number, [end, ..]) = call;
    let home = thread.home();
    let end = (end as i32).max(0) as u32;
    if home.numbers.any_closed(end) && call.1[1..=SETS].iter().any(|set| has_closed(home, *set, end)) {
        let [.., time, mask] = call.1;
        let is_well = is_time(number, time) && is_mask(number, mask);
        return match system::try_call(number, [u64::MAX, 0, 0, 0, time, mask]) {
            // EINVAL, of the number of descriptors, where all that is looked at before was well.
            Err(errno) if errno != Errno::EINVAL.number() || !is_well => Answer::number(errno),
            _ => Answer::error(Errno::EBADF),
        };
    }
    match number {
        PSELECT => wait_with_inner_mask(thread, call.1),
        _ => Answer::issue(thread, number, call.1, After::Nothing),
    }
}

/// Whether the kernel takes a time to wait (Linux: `poll_select_set_timeout`).
fn is_time(number: u64, at: u64) -> bool {
    let Ok([seconds, rest]) = guarded::read_value::<[u64; 2]>(at) else { return at == 0 };
    let (seconds, rest) = (seconds as i64, rest as i64);
    match number {
        PSELECT => seconds >= 0 && (0..NANOSECONDS).contains(&rest),
        _ => seconds >= 0 && (0..MICROSECONDS).contains(&(rest % MICROSECONDS)),
    }
}

/// Whether it takes a mask (Linux: `set_user_sigmask`).
fn is_mask(number: u64, at: u64) -> bool {
    const MASK_BYTES: u64 = 8;
    number != PSELECT
        || at == 0
        || guarded::read_value::<[u64; 2]>(at).is_ok_and(|[mask, bytes]| mask == 0 || bytes == MASK_BYTES)
}

/// pselect6: its mask lies where a structure says, with its size.
fn wait_with_inner_mask(thread: &mut Thread, mut arguments: [u64; 6]) -> Answer {
    if arguments[5] != 0
        && let Ok([mask, bytes]) = guarded::read_value::<[u64; 2]>(arguments[5])
    {
        let without = signals::mask_without_ours(thread, mask);
        if without != mask {
            let room = thread.room();
            room[..8].copy_from_slice(&without.to_le_bytes());
            room[8..16].copy_from_slice(&bytes.to_le_bytes());
            arguments[5] = room.as_ptr() as u64;
        }
    }
    Answer::issue(thread, PSELECT, arguments, After::Nothing)
}

/// Whether a set has a number below the end at which nothing is open.
fn has_closed(home: &Home, set: u64, end: u32) -> bool {
    let is_in = |number: u32| {
        guarded::read_value::<u8>(set.wrapping_add(u64::from(number / 8)))
            .is_ok_and(|byte| byte >> (number % 8) & 1 != 0)
    };
    set != 0 && (0..end.min(MOST_ENTRIES as u32)).any(|number| home.numbers.is_closed(number.into()) && is_in(number))
}
