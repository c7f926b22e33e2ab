//! The guest's console, which the host keeps.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::fd::AsRawFd;

/// Writes a line to the console, which the host keeps, and waits until it is out: the machine may end at once.
pub fn complain(text: &str) {
    if let Ok(mut console) = OpenOptions::new().write(true).open("/dev/console") {
        // Nothing is left to do if the console does not work.
        let _ = writeln!(console, "commutant-runner: {text}");
        // SAFETY: a live descriptor.
        unsafe { libc::tcdrain(console.as_raw_fd()) };
    }
}
