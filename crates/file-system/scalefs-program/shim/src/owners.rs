//! Whom signals would tell of a file: no one is ever told, but what was said is known. It is a word that the instance keeps with the
//! open file description:
//!
//! ```text
//! 0..32 the owner's number │ 32..40 its kind │ 40..48 the signal
//! ```
//! Whether there is such an owner the kernel says, which is asked to make it that of a placeholder.

use scalefs::Errno;

use crate::data;
use crate::dispatch::Answer;
use crate::guarded;
use crate::instance;
use crate::system::{self, number};
use crate::threads::Thread;

pub(crate) const F_SETOWN: u64 = 8;
pub(crate) const F_GETOWN: u64 = 9;
pub(crate) const F_SETSIG: u64 = 10;
pub(crate) const F_GETSIG: u64 = 11;
pub(crate) const F_SETOWN_EX: u64 = 15;
pub(crate) const F_GETOWN_EX: u64 = 16;

/// What an owner is (`struct f_owner_ex`): a process, or a group of them.
const PROCESS: u32 = 1;
const GROUP: u32 = 2;
const LAST_SIGNAL: u64 = 64;

/// Who is told by which signal.
#[derive(Clone, Copy)]
struct Told {
    kind: u32,
    owner: u32,
    signal: u8,
}

impl Told {
    fn from_word(word: u64) -> Told {
        Told { kind: (word >> 32) as u8 as u32, owner: word as u32, signal: (word >> 40) as u8 }
    }

    fn word(self) -> u64 {
        u64::from(self.owner) | u64::from(self.kind) << 32 | u64::from(self.signal) << 40
    }
}

/// fcntl of one of ours that concerns owners.
pub(crate) fn control(thread: &Thread, number: u32, command: u64, value: u64) -> Answer {
    match try_control(thread, number, command, value) {
        Ok(result) => Answer::Done(result),
        Err(errno) => Answer::number(errno),
    }
}

fn try_control(thread: &Thread, number: u32, command: u64, value: u64) -> Result<i64, i32> {
    data::is_open(thread, number).map_err(Errno::number)?;
    let word = instance::call(thread, |call| call.kept_word(number)).map_err(Errno::number)?;
    let told = Told::from_word(word);
    let changed = match command {
        F_GETSIG => return Ok(told.signal.into()),
        F_GETOWN => {
            let owner = i64::from(present(told));
            return Ok(if told.kind == GROUP { -owner } else { owner });
        }
        F_GETOWN_EX => {
            let written = guarded::write_value(value, [told.kind, present(told)]);
            return written.map(|()| 0).map_err(Errno::number);
        }
        F_SETSIG if value > LAST_SIGNAL => return Err(Errno::EINVAL.number()),
        F_SETSIG => Told { signal: value as u8, ..told },
        F_SETOWN => {
            ask(F_SETOWN, value)?;
            let kind = if (value as i32) < 0 { GROUP } else { PROCESS };
            Told { kind, owner: (value as i32).unsigned_abs(), ..told }
        }
        _ => {
            let [kind, owner] = guarded::read_value::<[u32; 2]>(value).map_err(Errno::number)?;
            let given = [kind, owner];
            ask(F_SETOWN_EX, given.as_ptr() as u64)?;
            Told { kind, owner, ..told }
        }
    };
    instance::call(thread, |call| call.keep_word(number, changed.word())).map_err(Errno::number)?;
    Ok(0)
}

/// Whether the kernel takes an owner.
fn ask(command: u64, value: u64) -> Result<(), i32> {
    let placeholder = u64::from(instance::control().descriptors.placeholder);
    system::try_call(number::FCNTL, [placeholder, command, value, 0, 0, 0]).map(|_| ())
}

/// The owner, if it is still there.
fn present(told: Told) -> u32 {
    let owner = [told.kind, told.owner];
    if ask(F_SETOWN_EX, owner.as_ptr() as u64).is_ok() { told.owner } else { 0 }
}
