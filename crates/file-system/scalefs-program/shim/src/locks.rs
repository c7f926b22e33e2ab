//! Locks of files: of ranges (`fcntl`) and of whole files (`flock`). ScaleFS keeps them; the kernel is asked to wait alone, for a
//! word of the shared memory, so that signals end a wait as they do elsewhere.
//!
//! ```text
//! F_SETLKW:   ask ScaleFS ── busy ──► the kernel's futex, until the word changes ──► ask again
//! ```

use scalefs::data::Whence;
use scalefs::{
    Errno, LockKind, LockMode, LockOperations, LockRange, LockRefusal, LockRequest, LockWait, Patience, locks,
};

use crate::dispatch::{After, Answer};
use crate::guarded;
use crate::instance;
use crate::system::{self, number};
use crate::threads::Thread;

pub(crate) const F_GETLK: u64 = 5;
pub(crate) const F_SETLK: u64 = 6;
pub(crate) const F_SETLKW: u64 = 7;
pub(crate) const F_OFD_GETLK: u64 = 36;
pub(crate) const F_OFD_SETLK: u64 = 37;
pub(crate) const F_OFD_SETLKW: u64 = 38;
const F_RDLCK: u64 = 0;
const F_WRLCK: u64 = 1;
const F_UNLCK: u64 = 2;
const LOCK_SH: u64 = 1;
const LOCK_EX: u64 = 2;
const LOCK_NB: u64 = 4;
const LOCK_UN: u64 = 8;
const FUTEX_WAIT: u64 = 0;
/// What `l_pid` says of a description's lock.
const NO_PROCESS: u64 = -1_i32 as u32 as u64;

/// `struct flock`: kind and from where, start, length, process.
type Given = [u64; 4];

fn kind_of(mode: Option<LockMode>) -> u64 {
    match mode {
        None => F_UNLCK,
        Some(LockMode::Shared) => F_RDLCK,
        Some(LockMode::Exclusive) => F_WRLCK,
    }
}

fn mode_of(kind: u64) -> Result<Option<LockMode>, Errno> {
    match kind {
        F_UNLCK => Ok(None),
        F_RDLCK => Ok(Some(LockMode::Shared)),
        F_WRLCK => Ok(Some(LockMode::Exclusive)),
        _ => Err(Errno::EINVAL),
    }
}

fn process() -> u64 {
    system::call(number::GETPID, [0; 6]) as u64
}

/// What a `struct flock` asks for.
fn requested(thread: &Thread, of: u32, kind: LockKind, given: &Given) -> Result<LockRequest, Errno> {
    let [head, start, length, _] = *given;
    let whence = match head >> 16 & 0xffff {
        0 => Whence::Start,
        1 => Whence::Current,
        2 => Whence::End,
        _ => return Err(Errno::EINVAL),
    };
    let range = instance::call(thread, |call| locks::range(call, of, (start as i64, whence), length as i64))?;
    Ok(LockRequest { kind, range, mode: mode_of(head & 0xffff)?, seen_as: process() })
}

/// fcntl with a command on locks, on a number of ours.
pub(crate) fn control(thread: &mut Thread, of: u32, command: u64, at: u64) -> Answer {
    let (kind, asks, waits) = match command {
        F_GETLK => (LockKind::Process, true, false),
        F_OFD_GETLK => (LockKind::Description, true, false),
        _ => {
            let of_process = matches!(command, F_SETLK | F_SETLKW);
            let kind = if of_process { LockKind::Process } else { LockKind::Description };
            (kind, false, matches!(command, F_SETLKW | F_OFD_SETLKW))
        }
    };
    let prepared = guarded::read_value::<Given>(at).and_then(|given| {
        if kind == LockKind::Description && given[3] as u32 != 0 {
            return Err(Errno::EINVAL);
        }
        Ok((given, requested(thread, of, kind, &given)?))
    });
    match prepared {
        Err(errno) => Answer::error(errno),
        Ok((given, request)) if asks => Answer::of(ask(thread, of, (at, &given), &request)),
        Ok((_, request)) => set(thread, of, &request, waits, None),
    }
}

/// flock, on a number of ours.
pub(crate) fn whole_file(thread: &mut Thread, of: u32, how: u64) -> Answer {
    let mode = match how & !LOCK_NB {
        LOCK_SH => Some(LockMode::Shared),
        LOCK_EX => Some(LockMode::Exclusive),
        LOCK_UN => None,
        _ => return Answer::error(Errno::EINVAL),
    };
    let request = LockRequest { kind: LockKind::WholeFile, range: LockRange::ALL, mode, seen_as: process() };
    set(thread, of, &request, how & LOCK_NB == 0, None)
}

/// Locks or unlocks; who waits does so in the kernel.
fn set(thread: &mut Thread, of: u32, request: &LockRequest, waits: bool, waited: Option<LockWait>) -> Answer {
    if instance::planted("shim: a lock is given to everybody") {
        return Answer::of(Ok(0));
    }
    let asked = instance::call(thread, |call| {
        Ok(match waits {
            true => locks::ask_again(call, of, request, waited),
            false => locks::ask(call, of, request, Patience::Refuse),
        })
    });
    match asked {
        Ok(Ok(())) => Answer::Done(0),
        Ok(Err(LockRefusal::Busy(wait))) => issue_wait(thread, of, request, wait),
        Ok(Err(LockRefusal::Failed(errno))) | Err(errno) => Answer::error(errno),
    }
}

/// Lets the kernel wait until the lock may be free.
fn issue_wait(thread: &mut Thread, of: u32, request: &LockRequest, wait: LockWait) -> Answer {
    let LockRequest { kind, range, mode, seen_as } = *request;
    let kept = [
        u64::from(of),
        kind as u64,
        range.first,
        range.last,
        kind_of(mode),
        seen_as,
        u64::from(wait.word),
        u64::from(wait.seen),
    ];
    for (place, word) in thread.kept_room().chunks_exact_mut(8).zip(kept) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    let word = core::ptr::from_ref(instance::file_system().lock_word(wait)) as u64;
    Answer::issue(thread, number::FUTEX, [word, FUTEX_WAIT, u64::from(wait.seen), 0, 0, 0], After::Locked)
}

/// The kernel has waited: the lock is asked for again; or a signal has ended the wait.
pub(crate) fn waited(thread: &mut Thread, result: i64) -> Answer {
    let Some(room) = thread.kept_of_this_call() else { return Answer::Done(result) };
    let mut words = [0_u64; 8];
    for (word, place) in words.iter_mut().zip(room.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*place);
    }
    let [of, kind, first, last, mode, seen_as, word, seen] = words;
    let kind = [LockKind::Process, LockKind::Description, LockKind::WholeFile][kind as usize % 3];
    let wait = LockWait { word: word as u32, seen: seen as u32 };
    let request = match mode_of(mode) {
        Ok(mode) => LockRequest { kind, range: LockRange { first, last }, mode, seen_as },
        Err(errno) => return Answer::error(errno),
    };
    if result != 0 && result != -i64::from(Errno::EAGAIN.number()) {
        let _ = instance::call(thread, |call| call.stop_waiting(wait).map_err(Errno::from));
        return Answer::Done(result);
    }
    set(thread, of as u32, &request, true, Some(wait))
}

fn ask(thread: &Thread, of: u32, (at, given): (u64, &Given), request: &LockRequest) -> Result<u64, Errno> {
    if request.mode.is_none() {
        return Err(Errno::EINVAL);
    }
    let found = instance::call(thread, |call| locks::in_the_way(call, of, request))?;
    let head = given[0] & !0xffff;
    let answer = match found {
        None => [head | F_UNLCK, given[1], given[2], given[3]],
        Some(lock) => {
            let process = lock.seen_as.unwrap_or(NO_PROCESS);
            // What was the process is four bytes, and four more.
            let process = given[3] & !0xffff_ffff | process & 0xffff_ffff;
            [kind_of(Some(lock.mode)) | head & !0xffff_ffff, lock.range.first, lock.range.length(), process]
        }
    };
    guarded::write_value(at, answer).map(|()| 0)
}
