//! Children of the processes, which tests fork, have exit and wait for: where each says what it is at.
//!
//! A child sleeps on its word until it is to exit. The table lies in memory that all processes and their children share.
//!
//! ```text
//! worker                                   child
//! clone ────────────────────────────────►  word := WAITS, sleeps while it is that
//! yield until word == WAITS
//! word := EXIT | status (and whether marked), wakes it
//! yield                                    mark (if the call is under test), exit_group
//! mark
//! ```

use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering};
use std::{io, ptr};

use super::operation::Operation;
use super::system_call::system_call;
use crate::marker;
use crate::place::PROCESS_LIMIT;
use crate::target::Marks;

/// Children of a process that tests can name.
pub const CHILDREN: usize = 4;

const STARTS: u32 = 0;
const WAITS: u32 = 1;
const EXIT: u32 = 2;
const EXIT_MARKED: u32 = 3;
const STATUS_SHIFT: u32 = 8;

/// The highest priority of tasks that take turns.
const FIRST: i64 = -20;

/// A child, if there is one.
#[repr(C, align(64))]
pub struct Member {
    /// Its number to the kernel, or 0. Atomic, written by a worker of its process.
    process_id: AtomicI32,
    /// Whether it has ended. Atomic, as above.
    ended: AtomicU32,
    /// What it does, or is to do. Atomic, written by both sides, and what it sleeps on.
    word: AtomicU32,
}

type Table = [[Member; CHILDREN]; PROCESS_LIMIT];

/// Atomic, set before any process starts.
static TABLE: AtomicPtr<Table> = AtomicPtr::new(ptr::null_mut());

/// Makes room for the children of processes that are forked later.
///
/// # Errors
/// No memory.
pub fn share() -> io::Result<()> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
    // SAFETY: a new mapping at an address that the kernel chooses.
    let base = unsafe { libc::mmap(ptr::null_mut(), size_of::<Table>(), protection, flags, -1, 0) };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    TABLE.store(base.cast(), Ordering::Release);
    Ok(())
}

/// A child of a process by its number; `None` where tests cannot name it.
#[must_use]
pub fn member(process: usize, child: usize) -> Option<&'static Member> {
    // SAFETY: `share` set the table, which stays; all zeros is a table without children.
    unsafe { TABLE.load(Ordering::Acquire).as_ref() }?.get(process)?.get(child)
}

impl Member {
    /// Its number to the kernel, if there is such a child.
    #[must_use]
    pub fn process_id(&self) -> Option<u64> {
        match self.process_id.load(Ordering::Acquire) {
            0 => None,
            id => Some(id.unsigned_abs().into()),
        }
    }

    /// Whether it has not ended.
    #[must_use]
    pub fn runs(&self) -> bool {
        self.process_id().is_some() && self.ended.load(Ordering::Acquire) == 0
    }

    /// There will be a child.
    pub fn expect(&self) {
        self.ended.store(0, Ordering::Release);
        self.word.store(STARTS, Ordering::Release);
    }

    /// The child is there, with this number; returns when it sleeps.
    pub fn born(&self, process_id: i64) {
        self.process_id.store(i32::try_from(process_id).unwrap_or_default(), Ordering::Release);
        // It goes first on its processor, and long enough to exit at one go, which takes longer than a turn of others.
        system_call(
            libc::SYS_setpriority,
            [libc::PRIO_PROCESS.into(), process_id.cast_unsigned(), FIRST.cast_unsigned()],
        );
        while self.word.load(Ordering::Acquire) == STARTS {
            system_call(libc::SYS_sched_yield, []);
        }
    }

    /// There is no such child any more.
    pub fn forget(&self) {
        self.process_id.store(0, Ordering::Release);
    }

    /// The life of the child.
    pub fn live(&self) -> ! {
        self.word.store(WAITS, Ordering::Release);
        let word = self.word.as_ptr() as u64;
        let mut what = WAITS;
        while what == WAITS {
            system_call(libc::SYS_futex, [word, libc::FUTEX_WAIT as u64, WAITS.into(), 0]);
            what = self.word.load(Ordering::Acquire);
        }
        if what & 0xff == EXIT_MARKED {
            marker::call_begin();
        }
        system_call(libc::SYS_exit_group, [u64::from(what >> STATUS_SHIFT)]);
        std::process::abort()
    }

    /// Has the child exit on the processor of the caller. The call under test ends with the second mark, when the child
    /// is gone from there.
    pub fn exit(&self, status: u8, marks: Marks) {
        let id = self.process_id().unwrap_or_default();
        let mut processors = [0_u64; 16];
        let (size, set) = (size_of_val(&processors) as u64, processors.as_mut_ptr() as u64);
        if system_call(libc::SYS_sched_getaffinity, [0, size, set]) > 0 {
            system_call(libc::SYS_sched_setaffinity, [id, size, set]);
        }
        let what = if marks == Marks::Around { EXIT_MARKED } else { EXIT };
        self.word.store(what | u32::from(status) << STATUS_SHIFT, Ordering::Release);
        system_call(libc::SYS_futex, [self.word.as_ptr() as u64, libc::FUTEX_WAKE as u64, 1]);
        system_call(libc::SYS_sched_yield, []);
        if marks == Marks::Around {
            marker::call_end();
        }
        // Something may have come in between all the same.
        let ended = (libc::WEXITED | libc::WNOWAIT) as u64;
        system_call(libc::SYS_waitid, [u64::from(libc::P_PID), id, 0, ended, 0]);
        self.ended.store(1, Ordering::Release);
    }
}

/// Ends all children of the operation's process, and waits for them.
pub fn end_all(operation: &mut Operation) -> i64 {
    for child in 0..CHILDREN {
        let Some(member) = member(operation.process, child) else { continue };
        let Some(id) = member.process_id() else { continue };
        if member.runs() {
            member.exit(0, Marks::None);
        }
        system_call(libc::SYS_wait4, [id, 0, 0, 0]);
        member.forget();
    }
    0
}
