//! What a thread that waits for an answer has called: whether `stat` is asked for the program, or by the overlay above, for a copy.
//!
//! Before an overlay copies a file into its layer it asks for all that `stat` says (`ovl_copy_up_one` in fs/overlayfs/copy_up.c), and the
//! request does not say why. But the thread that has called is in that call until the answer has come, and the system says which one that
//! is (`proc_pid_syscall(5)`).

use std::io::Read;
use std::os::fd::OwnedFd;
use std::thread::sleep;
use std::time::Duration;

use nix::libc;
use rustix::fs::{Mode, OFlags, openat};

/// Calls that have a file copied and return no attributes to the program. None of their numbers is that of a `stat` of 32-bit programs.
#[cfg(target_arch = "x86_64")]
const COPYING: &[i64] = &[
    libc::SYS_open,
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_creat,
    libc::SYS_link,
    libc::SYS_linkat,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_chmod,
    libc::SYS_fchmodat,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_fchownat,
    libc::SYS_truncate,
    libc::SYS_utimensat,
];
#[cfg(target_arch = "aarch64")]
const COPYING: &[i64] = &[
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_linkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_fchmodat,
    libc::SYS_fchownat,
    libc::SYS_truncate,
    libc::SYS_utimensat,
];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const COPYING: &[i64] = &[];

/// How often a thread is looked at that has asked and does not wait yet.
const LOOKS: usize = 200;
const NEXT_LOOK: Duration = Duration::from_micros(20);
/// What is said of a thread that does not wait.
const RUNNING: &str = "running";
/// Where a thread goes on that never was in a program, as those of `io_uring`: the call that is said of it is another thread's.
const NOWHERE: &str = "0x0";

/// For whom an overlay asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// The program that has called sees the answer, or may see it.
    ForProgram,
    /// A copy is made; the program sees what is copied.
    ForCopy,
}

/// The threads of a run.
#[derive(Debug, Default)]
pub(super) struct Callers {
    /// `/proc` of the run. Where there is none, all is asked for the program.
    processes: Option<OwnedFd>,
}

impl Callers {
    pub(super) fn new(processes: Option<OwnedFd>) -> Callers {
        Callers { processes }
    }

    /// For whom a thread that waits has asked what `stat` says.
    pub(super) fn asked(&self, thread: u32) -> Asked {
        for _ in 0..LOOKS {
            match self.call_of(thread).as_deref() {
                Some(RUNNING) => sleep(NEXT_LOOK),
                Some(line) if is_copying(line) => return Asked::ForCopy,
                _ => return Asked::ForProgram,
            }
        }
        Asked::ForProgram
    }

    fn call_of(&self, thread: u32) -> Option<String> {
        let path = format!("{thread}/syscall");
        let opened = openat(self.processes.as_ref()?, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let mut line = String::new();
        std::fs::File::from(opened).read_to_string(&mut line).ok()?;
        Some(line.trim_end().to_owned())
    }
}

/// Of a line with the number of a call, its arguments, the stack and where the program goes on.
fn is_copying(line: &str) -> bool {
    let number = line.split(' ').next().and_then(|number| number.parse().ok());
    let is_in_program = line.rsplit(' ').next().is_some_and(|at| at != NOWHERE);
    is_in_program && number.is_some_and(|number: i64| COPYING.contains(&number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_whether_a_file_is_copied() {
        let line = |number: i64, at: &str| format!("{number} 0xffffff9c 0x7ffc 0x1 0x0 0x0 0x0 0x7ffd12 {at}");
        assert!(is_copying(&line(libc::SYS_openat, "0x7f1213")));
        assert!(!is_copying(&line(libc::SYS_openat, NOWHERE)), "a thread of io_uring");
        assert!(!is_copying(&line(libc::SYS_newfstatat, "0x7f1213")));
        assert!(!is_copying(&line(libc::SYS_statx, "0x7f1213")));
        assert!(!is_copying(RUNNING) && !is_copying("") && !is_copying("-1 0x7ffd12 0x7f1213"));
    }

    /// `stat`, `lstat`, `fstat` and their kin on i386 (x86-64) and Arm (aarch64): what a 32-bit program calls has another number.
    #[test]
    fn no_call_of_another_kind_of_program_is_taken_for_one() {
        let stat_of_others = [18, 28, 84, 106, 107, 108, 195, 196, 197, 300, 327, 383, 397];
        assert!(stat_of_others.iter().all(|number| !COPYING.contains(number)));
    }
}
