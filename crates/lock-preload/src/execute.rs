//! Calls that replace the program: what was recorded must be written first.

use libc::{c_char, c_int};
use lock_annotation::{Event, tell};

use crate::next::next;

type Texts = *const *const c_char;

/// The recorder must be told of some readable byte.
static PLACE: u8 = 0;

fn tell_replacement() {
    tell::<{ Event::Replace as u32 }, 1>(&raw const PLACE);
}

#[unsafe(no_mangle)]
extern "C" fn execve(path: *const c_char, arguments: Texts, environment: Texts) -> c_int {
    tell_replacement();
    next!(execve(path: *const c_char, arguments: Texts, environment: Texts))
}

#[unsafe(no_mangle)]
extern "C" fn execv(path: *const c_char, arguments: Texts) -> c_int {
    tell_replacement();
    next!(execv(path: *const c_char, arguments: Texts))
}

#[unsafe(no_mangle)]
extern "C" fn execvp(file: *const c_char, arguments: Texts) -> c_int {
    tell_replacement();
    next!(execvp(file: *const c_char, arguments: Texts))
}

#[unsafe(no_mangle)]
extern "C" fn execvpe(file: *const c_char, arguments: Texts, environment: Texts) -> c_int {
    tell_replacement();
    next!(execvpe(file: *const c_char, arguments: Texts, environment: Texts))
}
