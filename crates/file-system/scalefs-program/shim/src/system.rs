//! Calls of the kernel that are our own: from this text, which it does not dispatch.

use core::arch::asm;

/// Makes a call; a result from -4095 to -1 is an error's number.
#[inline]
pub(crate) fn call(number: u64, arguments: [u64; 6]) -> i64 {
    let [a, b, c, d, e, f] = arguments;
    let result: i64;
    // SAFETY: what the call does is its caller's matter: each that changes memory says so where it stands.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    result
}

/// As [`call`], with an error as such.
#[inline]
pub(crate) fn try_call(number: u64, arguments: [u64; 6]) -> Result<u64, i32> {
    let result = call(number, arguments);
    if (-4095..0).contains(&result) { Err(-result as i32) } else { Ok(result as u64) }
}

/// Says something in one line and ends the process.
pub(crate) fn die(words: &[&str]) -> ! {
    say(&["scalefs: "]);
    say(words);
    say(&["\n"]);
    call(number::EXIT_GROUP, [EXIT_CODE, 0, 0, 0, 0, 0]);
    loop {
        core::hint::spin_loop();
    }
}

/// Of a process that cannot begin or go on.
const EXIT_CODE: u64 = 126;

/// Says words where programs say their errors.
pub(crate) fn say(words: &[&str]) {
    for word in words {
        call(number::WRITE, [2, word.as_ptr() as u64, word.len() as u64, 0, 0, 0]);
    }
}

/// Numbers of calls that we make ourselves (Linux on x86-64).
pub(crate) mod number {
    #![allow(missing_docs)]
    pub(crate) const WRITE: u64 = 1;
    pub(crate) const OPEN: u64 = 2;
    pub(crate) const CLOSE: u64 = 3;
    pub(crate) const FSTAT: u64 = 5;
    pub(crate) const POLL: u64 = 7;
    pub(crate) const MMAP: u64 = 9;
    pub(crate) const MPROTECT: u64 = 10;
    pub(crate) const MUNMAP: u64 = 11;
    pub(crate) const SIGACTION: u64 = 13;
    pub(crate) const SIGPROCMASK: u64 = 14;
    pub(crate) const PREAD: u64 = 17;
    pub(crate) const SCHED_YIELD: u64 = 24;
    pub(crate) const MADVISE: u64 = 28;
    pub(crate) const NANOSLEEP: u64 = 35;
    pub(crate) const GETPID: u64 = 39;
    pub(crate) const KILL: u64 = 62;
    pub(crate) const FCNTL: u64 = 72;
    pub(crate) const GETCWD: u64 = 79;
    pub(crate) const CHDIR: u64 = 80;
    pub(crate) const READLINK: u64 = 89;
    pub(crate) const GETRLIMIT: u64 = 97;
    pub(crate) const PRCTL: u64 = 157;
    pub(crate) const ARCH_PRCTL: u64 = 158;
    pub(crate) const FUTEX: u64 = 202;
    pub(crate) const CLOCK_GETTIME: u64 = 228;
    pub(crate) const EXIT_GROUP: u64 = 231;
    pub(crate) const DUP3: u64 = 292;
    pub(crate) const EXECVEAT: u64 = 322;
    pub(crate) const FACCESSAT: u64 = 269;
    pub(crate) const CLOSE_RANGE: u64 = 436;
}
