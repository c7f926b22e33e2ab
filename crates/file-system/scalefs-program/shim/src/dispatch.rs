//! Which call is served how. The table in `docs/reference/system-calls.md` says it of each.

use core::sync::atomic::Ordering;

use scalefs::{Errno, Follow};

use crate::attributes::{self, TimesIn, WithoutPath};
use crate::constants::*;
use crate::credentials;
use crate::data::{self, At};
use crate::descriptors;
use crate::entry::{Frame, KNOWN_CALLS};
use crate::execute;
use crate::instance;
use crate::locks;
use crate::mapped;
use crate::messages;
use crate::names;
use crate::numbers;
use crate::paths::WORKING_DIRECTORY;
use crate::processes;
use crate::ready;
use crate::shared;
use crate::signals;
use crate::stand_ins;
use crate::threads::{self, Thread};

/// The resource of `setrlimit` of which numbers of descriptors are (`RLIMIT_NOFILE`).
const OPEN_FILES: u32 = 7;

/// What is done when a call that was issued has come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum After {
    /// Nothing.
    Nothing = 1,
    /// Its result is a new number.
    NewNumber,
    /// Another number for what has one: it stays.
    Duplicated,
    /// A new number, under which the numbers of the process are listed.
    NewList,
    /// Some of that list.
    List,
    /// The status of what a number of the kernel's leads to, which may stand for a pipe of the tree.
    Status,
    /// Two new numbers lie where the first argument says, or the fourth.
    TwoNumbers,
    TwoNumbersFourth,
    /// The number of the second argument leads elsewhere.
    Replaced,
    /// The process works outside of the tree.
    WorksOutside,
    /// Code was mapped: its result is where.
    Code,
    /// It may have waited for a lock.
    Locked,
    /// It was given what is in room of the thread's.
    Given,
    /// User or groups have changed.
    Credentials,
    /// The limit of numbers has changed.
    Limit,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Its result.
    Done(i64),
    /// It is issued as the thread has it.
    Issue(After),
}

impl Answer {
    #[inline]
    pub(crate) fn of(outcome: Result<u64, Errno>) -> Answer {
        match outcome {
            Ok(result) => Answer::Done(result as i64),
            Err(errno) => Answer::error(errno),
        }
    }

    #[inline]
    pub(crate) fn error(errno: Errno) -> Answer {
        Answer::number(errno.number())
    }

    /// An error by its number.
    #[inline]
    pub(crate) fn number(errno: i32) -> Answer {
        Answer::Done(-i64::from(errno))
    }

    /// The kernel is to make a call.
    #[inline]
    pub(crate) fn issue(thread: &mut Thread, number: u64, arguments: [u64; 6], after: After) -> Answer {
        thread.issue(number, arguments);
        Answer::Issue(after)
    }
}

/// By number: 0 a call that is only passed on, 1 one that is looked at here if its first argument is a descriptor of ours, or one at
/// which nothing is open, 2 one that is always looked at.
pub(crate) static CLASSES: [u8; KNOWN_CALLS] = classes();

/// Calls of descriptors alone.
const BY_DESCRIPTOR: [u16; 28] = [
    0, 1, 8, 16, 17, 18, 19, 20, 73, 74, 75, 77, 78, 138, 187, 190, 193, 196, 199, 217, 221, 277, 285, 295, 296, 306,
    327, 328,
];

/// Those that are passed on, whose first argument is looked at for whether anything is open there.
const OF_OPEN_ONES: [u16; 15] = [45, 48, 50, 54, 55, 232, 242, 243, 244, 245, 255, 286, 287, 424, 440];

/// All that are looked at.
const LOOKED_AT: [u16; 154] = [
    2, 3, 4, 5, 6, 7, 9, 10, 11, 13, 14, 21, 22, 23, 25, 32, 33, 40, 41, 42, 43, 44, 46, 47, 49, 51, 52, 53, 56, 57,
    58, 59, 60, 72, 76, 79, 80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 90, 91, 92, 93, 94, 95, 101, 105, 106, 113, 114,
    116, 117, 119, 122, 123, 128, 130, 132, 133, 137, 157, 158, 160, 161, 188, 189, 191, 192, 194, 195, 197, 198, 213,
    231, 233, 235, 240, 253, 254, 257, 258, 259, 260, 261, 262, 263, 264, 265, 266, 267, 268, 269, 270, 271, 272, 275,
    276, 278, 280, 281, 282, 283, 284, 288, 289, 290, 291, 292, 293, 294, 298, 299, 300, 301, 302, 303, 304, 307, 308,
    316, 317, 319, 322, 323, 326, 332, 425, 426, 427, 428, 430, 432, 433, 434, 435, 436, 437, 438, 439, 441, 444, 447,
    452, 463, 464, 465, 466,
];

/// Of those: which arguments are descriptors, whatever the others are, as bits.
const DESCRIPTORS: [(u16, u8); 31] = [
    (5, 1),
    (32, 1),
    (33, 1),
    (40, 3),
    (42, 1),
    (43, 1),
    (44, 1),
    (46, 1),
    (47, 1),
    (49, 1),
    (51, 1),
    (52, 1),
    (72, 1),
    (81, 1),
    (91, 1),
    (93, 1),
    (233, 5),
    (254, 1),
    (275, 5),
    (276, 3),
    (278, 1),
    (281, 1),
    (288, 1),
    (289, 1),
    (292, 1),
    (299, 1),
    (301, 1),
    (307, 1),
    (326, 5),
    (438, 1),
    (441, 1),
];

/// By number: the arguments that are descriptors, as bits.
static DESCRIPTOR_ARGUMENTS: [u8; KNOWN_CALLS] = descriptor_arguments();

const fn classes() -> [u8; KNOWN_CALLS] {
    let classes = with([0; KNOWN_CALLS], &BY_DESCRIPTOR, 1);
    with(with(classes, &OF_OPEN_ONES, 1), &LOOKED_AT, 2)
}

const fn with(mut values: [u8; KNOWN_CALLS], numbers: &[u16], value: u8) -> [u8; KNOWN_CALLS] {
    let mut index = 0;
    while index < numbers.len() {
        values[numbers[index] as usize] = value;
        index += 1;
    }
    values
}

const fn descriptor_arguments() -> [u8; KNOWN_CALLS] {
    let mut values = with(with([0; KNOWN_CALLS], &BY_DESCRIPTOR, 1), &OF_OPEN_ONES, 1);
    let mut index = 0;
    while index < DESCRIPTORS.len() {
        values[DESCRIPTORS[index].0 as usize] = DESCRIPTORS[index].1;
        index += 1;
    }
    values
}

/// Whether a call is made on a descriptor at which nothing is open, though the kernel has something there.
#[inline]
fn is_of_closed(thread: &Thread, (number, arguments): (u64, [u64; 6])) -> bool {
    let numbers = &thread.home().numbers;
    let mask = DESCRIPTOR_ARGUMENTS.get(number as usize).copied().unwrap_or(0);
    mask != 0 && (0..3).any(|index| mask >> index & 1 != 0 && numbers.is_closed(arguments[index]))
}

/// Whether a call has other arguments of which Linux says EINVAL before it looks at its descriptors.
fn is_wrong_for_any((number, [a, b, c, d, ..]): (u64, [u64; 6])) -> bool {
    match number {
        17 | 18 | 295 | 296 => (d as i64) < 0,
        // There -1 stands for the offset of the descriptor.
        327 | 328 => (d as i64) < -1,
        77 => (b as i64) < 0,
        292 => c & !O_CLOEXEC != 0 || a as u32 == b as u32,
        _ => false,
    }
}

/// A call that is ours, or may be. Returns what is to be done: 0 for nothing more.
pub(crate) extern "C" fn call(frame: &mut Frame) -> u32 {
    let thread = threads::this();
    loop {
        match serve(thread, frame) {
            Answer::Done(result) if is_made_again(thread, result) => {}
            Answer::Done(result) => {
                frame.rax = result as u64;
                return 0;
            }
            Answer::Issue(after) => return after as u32,
        }
    }
}

/// Whether a call found no number, has so done nothing, and there are more by now.
fn is_made_again(thread: &mut Thread, result: i64) -> bool {
    if result != -i64::from(EMFILE) {
        return false;
    }
    instance::pause_if_planted(&["shim: a refusal is seen late", numbers::UNSEEN]);
    let home = thread.home();
    numbers::give_back(home) || numbers::were_given_back(home, &mut thread.given_back)
}

/// A call that was issued has come back.
pub(crate) extern "C" fn after(frame: &mut Frame) -> u32 {
    let thread = threads::this();
    let [what, number, ..] = thread.issued;
    let has_failed = ((-4095_i64) as u64..=u64::MAX).contains(&frame.rax);
    if what as u32 == After::Locked as u32 {
        match locks::waited(thread, frame.rax as i64) {
            Answer::Done(result) => frame.rax = result as u64,
            Answer::Issue(after) => {
                frame.rax = number;
                return after as u32;
            }
        }
    } else if !has_failed {
        frame.rax = finish(thread, what as u32, number, frame);
    } else if is_made_again(thread, frame.rax as i64) {
        thread.give_back_room();
        frame.rax = number;
        return call(frame);
    }
    thread.give_back_room();
    0
}

fn finish(thread: &mut Thread, what: u32, number: u64, frame: &Frame) -> u64 {
    let home = thread.home();
    let result = frame.rax;
    const NEW: u32 = After::NewNumber as u32;
    const NEW_LIST: u32 = After::NewList as u32;
    const LIST: u32 = After::List as u32;
    const STATUS: u32 = After::Status as u32;
    const DUPLICATED: u32 = After::Duplicated as u32;
    const TWO: u32 = After::TwoNumbers as u32;
    const TWO_FOURTH: u32 = After::TwoNumbersFourth as u32;
    const REPLACED: u32 = After::Replaced as u32;
    const OUTSIDE: u32 = After::WorksOutside as u32;
    const CODE: u32 = After::Code as u32;
    const CREDENTIALS: u32 = After::Credentials as u32;
    const LIMIT: u32 = After::Limit as u32;
    match what {
        NEW => return numbers::settle(home, result),
        NEW_LIST => {
            let settled = numbers::settle(home, result);
            home.numbers.note_list(settled);
            return settled;
        }
        STATUS => stand_ins::show_status(thread, number, frame.arguments()),
        LIST => return descriptors::without_hidden(home, frame.rsi, result),
        DUPLICATED => numbers::stay(home, result),
        TWO | TWO_FOURTH => {
            let at = if what == TWO { frame.rdi } else { frame.r10 };
            if let Ok([first, second]) = crate::guarded::read_value::<[u32; 2]>(at) {
                let settled = [first, second].map(|given| numbers::settle(home, u64::from(given)) as u32);
                let _ = crate::guarded::write_value(at, settled);
            }
        }
        REPLACED => descriptors::replaced(thread, frame.rsi),
        OUTSIDE => home.works_inside.store(false, Ordering::Relaxed),
        CREDENTIALS => credentials::changed(thread),
        LIMIT if !instance::planted("shim: a limit that falls is not looked at") => home.numbers.look_at_limit(),
        CODE => mapped::code_was_mapped(number, result, frame.arguments()),
        _ => {}
    }
    result
}

fn follow(flags: u64) -> Follow {
    if flags & AT_SYMLINK_NOFOLLOW != 0 { Follow::Nothing } else { Follow::Symlinks }
}

const HERE: u64 = WORKING_DIRECTORY;

/// Whether a call has flags that Linux does not know for it, and says EINVAL of before it looks at anything else.
fn has_unknown_flags((number, [_, _, c, d, e, _]): (u64, [u64; 6])) -> bool {
    const OF_STATUS: u64 = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH | AT_STATX_SYNC_TYPE;
    const OF_OBJECTS: u64 = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH;
    const RESERVED_FIELD: u64 = 0x8000_0000;
    let (given, known) = match number {
        262 => (d, OF_STATUS),
        332 if c & AT_STATX_SYNC_TYPE == AT_STATX_SYNC_TYPE || d & RESERVED_FIELD != 0 => return true,
        332 => (c, OF_STATUS),
        263 => (c, AT_REMOVEDIR),
        265 => (e, AT_SYMLINK_FOLLOW | AT_EMPTY_PATH),
        260 | 322 => (e, OF_OBJECTS),
        280 | 452 => (d, OF_OBJECTS),
        439 => (d, OF_OBJECTS | AT_EACCESS),
        _ => return false,
    };
    given as u32 as u64 & !known != 0 && !instance::planted("shim: flags are not looked at")
}

fn serve(thread: &mut Thread, frame: &mut Frame) -> Answer {
    let (number, arguments) = (frame.rax, frame.arguments());
    let call = (number, arguments);
    let [a, b, c, d, e, f] = arguments;
    if is_of_closed(thread, call) {
        return Answer::error(if is_wrong_for_any(call) { Errno::EINVAL } else { Errno::EBADF });
    }
    if number < KNOWN_CALLS as u64 && CLASSES[number as usize] == 1 {
        return serve_number(thread, a as u32, call);
    }
    match number {
        260 | 262 | 263 | 265 | 280 | 322 | 332 | 439 | 452 if has_unknown_flags(call) => Answer::error(Errno::EINVAL),
        2 => names::open(thread, call, HERE, 0, (b, c)),
        85 => names::open(thread, call, HERE, 0, (O_CREAT | O_WRONLY | O_TRUNC, b)),
        257 => names::open(thread, call, a, 1, (c, d)),
        3 => descriptors::close(thread, call),
        4 => attributes::stat(thread, call, (HERE, 0), Follow::Symlinks, b),
        6 => attributes::stat(thread, call, (HERE, 0), Follow::Nothing, b),
        5 if thread.home().numbers.is_ours(a) => Answer::of(attributes::stat_number(thread, a as u32, b)),
        5 => Answer::issue(thread, number, arguments, After::Status),
        262 => match attributes::without_path(thread, a, b, d) {
            Some(WithoutPath::Ours(of)) => Answer::of(attributes::stat_number(thread, of, c)),
            Some(WithoutPath::WorkingDirectory) => Answer::of(attributes::stat_here(thread, c)),
            Some(WithoutPath::Kernels) => Answer::issue(thread, number, arguments, After::Status),
            Some(WithoutPath::Closed) => Answer::error(Errno::EBADF),
            None => attributes::stat(thread, call, (a, 1), follow(d), c),
        },
        332 => match attributes::without_path(thread, a, b, c) {
            Some(WithoutPath::Ours(of)) => Answer::of(attributes::statx_number(thread, of, e)),
            Some(WithoutPath::WorkingDirectory) => Answer::of(attributes::statx_here(thread, e)),
            Some(WithoutPath::Kernels) => Answer::issue(thread, number, arguments, After::Status),
            Some(WithoutPath::Closed) => Answer::error(Errno::EBADF),
            None => attributes::statx(thread, call, (a, 1), follow(c), e),
        },
        9 => mapped::map(thread, call),
        10 => mapped::protect(thread, call),
        11 => shared::unmap(thread, call),
        25 => shared::remap(thread, call),
        13 => signals::set_handler(thread, call),
        14 => signals::change_mask(thread, call),
        128 | 130 => signals::wait_with_mask(thread, call, 0),
        7 | 271 => ready::poll(thread, call),
        23 | 270 => ready::select(thread, call),
        281 | 441 => signals::wait_with_mask(thread, call, 4),
        21 => attributes::access(thread, call, (HERE, 0), b, Follow::Symlinks),
        269 => attributes::access(thread, call, (a, 1), c, Follow::Symlinks),
        439 => match attributes::without_path(thread, a, b, d) {
            Some(_) if c & !7 != 0 => Answer::error(Errno::EINVAL),
            Some(what) => attributes::may_without_path(thread, call, what, c),
            None => attributes::access(thread, call, (a, 1), c, follow(d)),
        },
        22 | 53 | 293 => {
            numbers::make_room(thread.home(), (0, 2));
            let after = if number == 53 { After::TwoNumbersFourth } else { After::TwoNumbers };
            Answer::issue(thread, number, arguments, after)
        }
        32 => descriptors::dup(thread, call),
        33 => descriptors::dup_to(thread, call, false),
        292 => descriptors::dup_to(thread, call, true),
        282 | 289 => {
            let mask = signals::mask_without_ours(thread, b);
            let after = if a as i32 == -1 { After::NewNumber } else { After::Nothing };
            Answer::issue(thread, number, [a, mask, c, d, e, f], after)
        }
        41 | 43 | 213 | 240 | 253 | 283 | 284 | 288 | 290 | 291 | 294 | 298 | 300 | 304 | 319 | 323 | 428 | 430
        | 432 | 433 | 434 | 438 | 444 | 447 => Answer::issue(thread, number, arguments, After::NewNumber),
        160 if a as u32 == OPEN_FILES => Answer::issue(thread, number, arguments, After::Limit),
        302 if b as u32 == OPEN_FILES => Answer::issue(thread, number, arguments, After::Limit),
        40 => {
            if thread.home().numbers.is_ours(a) || thread.home().numbers.is_ours(b) {
                return Answer::error(Errno::EINVAL);
            }
            Answer::issue(thread, number, arguments, After::Nothing)
        }
        275 | 276 | 278 => {
            let ours = |argument| thread.home().numbers.is_ours(argument);
            let second = if number == 275 { c } else { b };
            if ours(a) || number != 278 && ours(second) {
                return Answer::error(Errno::EINVAL);
            }
            Answer::issue(thread, number, arguments, After::Nothing)
        }
        326 => {
            let ours = |argument| thread.home().numbers.is_ours(argument);
            match (ours(a), ours(c)) {
                (true, true) => Answer::of(data::copy_range(thread, [a, b, c, d, e, f])),
                (false, false) => Answer::issue(thread, number, arguments, After::Nothing),
                _ => Answer::error(Errno::EXDEV),
            }
        }
        56 | 57 | 58 | 435 => processes::clone(thread, frame),
        101 => processes::trace(thread, call),
        59 => execute::execute(thread, call, (HERE, 0), (b, c), 0),
        322 => execute::execute(thread, call, (a, 1), (c, d), e),
        60 => processes::end_thread(thread, a),
        231 => processes::end(thread, a),
        72 => descriptors::control(thread, call),
        76 => data::truncate_path(thread, call),
        79 => names::current_directory(thread, call),
        80 => names::change_directory(thread, call),
        81 => names::change_directory_to(thread, call),
        82 => names::rename(thread, call, ((HERE, 0), (HERE, 1)), 0),
        264 => names::rename(thread, call, ((a, 1), (c, 3)), 0),
        316 => names::rename(thread, call, ((a, 1), (c, 3)), e),
        83 => names::make_directory(thread, call, (HERE, 0), b),
        258 => names::make_directory(thread, call, (a, 1), c),
        84 => names::remove_directory(thread, call, (HERE, 0)),
        87 => names::unlink(thread, call, (HERE, 0)),
        263 if c & AT_REMOVEDIR != 0 => names::remove_directory(thread, call, (a, 1)),
        263 => names::unlink(thread, call, (a, 1)),
        86 => names::link(thread, call, ((HERE, 0), (HERE, 1)), 0),
        265 => names::link(thread, call, ((a, 1), (c, 3)), e),
        88 => names::symlink(thread, call, a, (HERE, 1)),
        266 => names::symlink(thread, call, a, (b, 2)),
        89 => names::read_link(thread, call, (HERE, 0), (b, c)),
        267 => names::read_link(thread, call, (a, 1), (c, d)),
        90 => attributes::change_mode(thread, call, (HERE, 0), Follow::Symlinks, b),
        268 => attributes::change_mode(thread, call, (a, 1), Follow::Symlinks, c),
        91 => attributes::change_mode_of(thread, call),
        452 => match attributes::without_path(thread, a, b, d) {
            Some(what) => attributes::change_mode_without_path(thread, call, what, c),
            None => attributes::change_mode(thread, call, (a, 1), follow(d), c),
        },
        92 => attributes::change_owner(thread, call, (HERE, 0), Follow::Symlinks, (b, c)),
        94 => attributes::change_owner(thread, call, (HERE, 0), Follow::Nothing, (b, c)),
        93 => attributes::change_owner_of(thread, call),
        260 => match attributes::without_path(thread, a, b, e) {
            Some(what) => attributes::change_owner_without_path(thread, call, what, (c, d)),
            None => attributes::change_owner(thread, call, (a, 1), follow(e), (c, d)),
        },
        95 => {
            thread.home().process().context().set_umask(a as u32);
            Answer::issue(thread, number, arguments, After::Nothing)
        }
        132 => attributes::set_times(thread, call, (HERE, 0), Follow::Symlinks, (b, TimesIn::Seconds)),
        235 => attributes::set_times(thread, call, (HERE, 0), Follow::Symlinks, (b, TimesIn::Microseconds)),
        261 => attributes::set_times(thread, call, (a, 1), Follow::Symlinks, (c, TimesIn::Microseconds)),
        280 if b == 0 && a as u32 != HERE as u32 => attributes::set_times_of(thread, call),
        280 => match attributes::without_path(thread, a, b, d) {
            Some(what) => attributes::set_times_without_path(thread, call, what, c),
            None => attributes::set_times(thread, call, (a, 1), follow(d), (c, TimesIn::Nanoseconds)),
        },
        133 => names::make_node(thread, call, (HERE, 0), b, c),
        259 => names::make_node(thread, call, (a, 1), c, d),
        137 => attributes::space_at(thread, call),
        157 => processes::control(thread, call),
        158 => processes::control_registers(thread, call),
        // What would see other calls than the program makes, or another root than we do.
        161 => Answer::error(Errno::EPERM),
        317 => Answer::error(Errno::EINVAL),
        272 => processes::unshare(thread, call),
        // Calls that would go past us.
        425..=427 | 437 => Answer::number(ENOSYS),
        // Extended attributes, handles and notifications of files of the tree.
        188 | 189 | 191 | 192 | 194 | 195 | 197 | 198 | 254 | 301 | 303 | 463..=466 => {
            let (directory, index) = match number {
                254 => (HERE, 1),
                301 => (d, 4),
                303 | 463..=466 => (a, 1),
                _ => (HERE, 0),
            };
            names::with_path(thread, call, (directory, index), Follow::Symlinks, After::Nothing, |_, _, _| {
                Err(Errno::EOPNOTSUPP)
            })
        }
        436 => descriptors::close_range(thread, call),
        42 => stand_ins::reach(thread, call, (1, 2)),
        44 if e != 0 => stand_ins::reach(thread, call, (4, 5)),
        46 | 307 => messages::send(thread, call),
        47 | 299 => messages::receive(thread, call),
        49 => stand_ins::bind(thread, call),
        51 | 52 => stand_ins::tell_address(number, arguments),
        105 | 106 | 113 | 114 | 116 | 117 | 119 | 122 | 123 => {
            Answer::issue(thread, number, arguments, After::Credentials)
        }
        _ => Answer::issue(thread, number, arguments, After::Nothing),
    }
}

/// A call whose first argument is a number of ours.
fn serve_number(thread: &mut Thread, of: u32, (number, arguments): (u64, [u64; 6])) -> Answer {
    let [_, b, c, d, _, f] = arguments;
    if !thread.home().numbers.is_ours(u64::from(of)) {
        let after = if number == 217 { After::List } else { After::Nothing };
        return Answer::issue(thread, number, arguments, after);
    }
    let at = |offset: u64| if offset as i64 == -1 { At::Offset } else { At::Given(offset as i64) };
    let outcome = match number {
        0 => data::read(thread, of, At::Offset, b, c),
        1 => data::write(thread, of, At::Offset, b, c),
        17 => data::read(thread, of, At::Given(d as i64), b, c),
        18 => data::write(thread, of, At::Given(d as i64), b, c),
        19 => data::vectors(At::Offset, (b, c), |at, to, length| data::read(thread, of, at, to, length)),
        20 => data::vectors(At::Offset, (b, c), |at, from, length| data::write(thread, of, at, from, length)),
        295 => data::vectors(At::Given(d as i64), (b, c), |at, to, length| data::read(thread, of, at, to, length)),
        296 => data::vectors(At::Given(d as i64), (b, c), |at, from, length| data::write(thread, of, at, from, length)),
        327 | 328 if data::check_flags(f).is_err() => Err(Errno::EOPNOTSUPP),
        327 => data::vectors(at(d), (b, c), |at, to, length| data::read(thread, of, at, to, length)),
        328 => data::vectors(at(d), (b, c), |at, from, length| data::write(thread, of, at, from, length)),
        8 => data::seek(thread, of, b as i64, c),
        16 => return descriptors::device_control(thread, of, b, c),
        77 => data::truncate(thread, of, b as i64),
        78 => data::entries(thread, of, b, c, true),
        217 => data::entries(thread, of, b, c, false),
        138 => attributes::space(thread, b),
        // All is in memory: there is nothing to wait for.
        74 | 75 | 306 => data::is_open(thread, of),
        187 | 221 | 277 => data::advise(thread, of, number, arguments),
        73 => return locks::whole_file(thread, of, b),
        // Linux looks at the range before anything else.
        285 if (c as i64) < 0 || (d as i64) <= 0 => Err(Errno::EINVAL),
        // Reserved room, extended attributes.
        285 | 190 | 193 | 196 | 199 => data::is_open(thread, of).and(Err(Errno::EOPNOTSUPP)),
        // The kernel says that it is no socket, or whatever else it is to be.
        _ => return Answer::issue(thread, number, arguments, After::Nothing),
    };
    Answer::of(outcome)
}
