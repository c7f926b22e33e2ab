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

/// Which of these may empty the file, and at which place they have their flags; without a place they always do. What `openat2` is given
/// lies in the program's memory.
#[cfg(target_arch = "x86_64")]
const OPENING: &[(i64, Option<usize>)] =
    &[(libc::SYS_open, Some(1)), (libc::SYS_openat, Some(2)), (libc::SYS_creat, None)];
#[cfg(target_arch = "aarch64")]
const OPENING: &[(i64, Option<usize>)] = &[(libc::SYS_openat, Some(2))];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const OPENING: &[(i64, Option<usize>)] = &[];

/// How often a thread is looked at that has asked and does not wait yet.
const LOOKS: usize = 200;
const NEXT_LOOK: Duration = Duration::from_micros(20);
/// What is said of a thread that does not wait.
const RUNNING: &str = "running";
/// Where a thread goes on that never was in a program, as those of `io_uring`: the call that is said of it is another thread's.
const NOWHERE: &str = "0x0";

/// For what an overlay asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// The program that has called sees the answer, or may see it.
    Program,
    /// A copy is made; the program sees what is copied.
    Copy,
    /// A copy is made and is emptied in the same call, which gives it another time: the program sees neither.
    EmptyCopy,
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
                line => return line.map_or(Asked::Program, asked_by),
            }
        }
        Asked::Program
    }

    fn call_of(&self, thread: u32) -> Option<String> {
        let path = format!("{thread}/syscall");
        let opened = openat(self.processes.as_ref()?, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let mut line = String::new();
        std::fs::File::from(opened).read_to_string(&mut line).ok()?;
        Some(line.trim_end().to_owned())
    }
}

/// By a line with the number of a call, its arguments, the stack and where the program goes on.
fn asked_by(line: &str) -> Asked {
    let mut words = line.split(' ');
    let number = words.next().and_then(|number| number.parse().ok());
    let arguments: Vec<&str> = words.collect();
    let is_in_program = arguments.last().is_some_and(|at| *at != NOWHERE);
    let Some(number) = number.filter(|number: &i64| is_in_program && COPYING.contains(number)) else {
        return Asked::Program;
    };
    let empties = |flags: &str| {
        let flags = flags.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
        flags.is_some_and(|flags| flags & libc::O_TRUNC as u64 != 0)
    };
    let opening = OPENING.iter().find(|(own, _)| *own == number);
    match opening {
        Some((_, None)) => Asked::EmptyCopy,
        Some((_, Some(at))) if arguments.get(*at).is_some_and(|flags| empties(flags)) => Asked::EmptyCopy,
        _ => Asked::Copy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_whether_a_file_is_copied() {
        let line = |number: i64, at: &str| format!("{number} 0xffffff9c 0x7ffc 0x1 0x0 0x0 0x0 0x7ffd12 {at}");
        assert_eq!(asked_by(&line(libc::SYS_openat, "0x7f1213")), Asked::Copy);
        let nowhere = line(libc::SYS_openat, NOWHERE);
        let others = [libc::SYS_newfstatat, libc::SYS_statx].map(|number| line(number, "0x7f1213"));
        for line in others.iter().map(String::as_str).chain([&*nowhere, RUNNING, "", "-1 0x7ffd12 0x7f1213"]) {
            assert_eq!(asked_by(line), Asked::Program, "{line}");
        }
    }

    #[test]
    fn a_line_says_whether_the_copy_is_emptied() {
        let line =
            |number: i64, flags: &str| format!("{number} 0xffffff9c 0x7ffc {flags} 0x1b6 0x0 0x0 0x7ffd12 0x7f1213");
        assert_eq!(asked_by(&line(libc::SYS_openat, "0x241")), Asked::EmptyCopy, "as a shell's `>` has it");
        assert_eq!(asked_by(&line(libc::SYS_openat, "0x441")), Asked::Copy, "`>>`");
        assert_eq!(asked_by(&line(libc::SYS_renameat, "0x241")), Asked::Copy, "no flags");
    }

    /// `stat`, `lstat`, `fstat` and their kin on i386 (x86-64) and Arm (aarch64): what a 32-bit program calls has another number.
    #[test]
    fn no_call_of_another_kind_of_program_is_taken_for_one() {
        let stat_of_others = [18, 28, 84, 106, 107, 108, 195, 196, 197, 300, 327, 383, 397];
        assert!(stat_of_others.iter().all(|number| !COPYING.contains(number)));
    }
}
