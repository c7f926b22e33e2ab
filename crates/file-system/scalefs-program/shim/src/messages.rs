//! Messages of sockets: descriptors of ours cannot go with them, since who receives one has a number of the kernel's alone. The
//! kernel gives numbers to those that come.

use scalefs::Errno;

use crate::dispatch::{After, Answer};
use crate::guarded;
use crate::home::Home;
use crate::instance::planted;
use crate::numbers;
use crate::threads::Thread;

/// `sendmmsg` and `recvmmsg`; the others are `sendmsg` and `recvmsg`.
const SEND_MANY: u64 = 307;
const RECEIVE_MANY: u64 = 299;
/// Messages of one call at most (Linux: `UIO_MAXIOV`).
const MOST_MESSAGES: u64 = 1024;
/// `struct msghdr` in words, and the bytes of `struct mmsghdr`.
const HEADER_WORDS: usize = 7;
const BYTES_OF_MANY: u64 = 64;
/// In the header: where data of control lie, and how long they are.
const CONTROL: usize = 4;
const CONTROL_BYTES: usize = 5;
/// `struct cmsghdr`: its length, level and type.
const PART_BYTES: u64 = 16;
const SOL_SOCKET: u64 = 1;
const SCM_RIGHTS: u64 = 1;
const NUMBER_BYTES: u64 = 4;

/// sendmsg, sendmmsg.
pub(crate) fn send(thread: &mut Thread, call: (u64, [u64; 6])) -> Answer {
    let [socket, at, count, ..] = call.1;
    let home = thread.home();
    if home.numbers.is_ours(socket) {
        return Answer::error(Errno::ENOTSOCK);
    }
    let refused = headers(call.0 == SEND_MANY, at, count).find_map(|(index, at)| match check(home, at) {
        // The kernel says what is wrong with what cannot be read.
        Ok(()) | Err(Errno::EFAULT) => None,
        Err(errno) => Some((index, errno)),
    });
    let mut arguments = call.1;
    match refused {
        Some((0, errno)) => return Answer::error(errno),
        // Those before it are sent; how many is the answer (Linux: `__sys_sendmmsg`).
        Some((before, _)) => arguments[2] = before,
        None => {}
    }
    Answer::issue(thread, call.0, arguments, After::Nothing)
}

/// Where the headers of messages lie.
fn headers(are_many: bool, at: u64, count: u64) -> impl Iterator<Item = (u64, u64)> {
    let messages = if are_many { u64::from(count as u32).min(MOST_MESSAGES) } else { 1 };
    (0..messages).map(move |index| (index, at.wrapping_add(index * BYTES_OF_MANY)))
}

/// recvmsg, recvmmsg. Descriptors for which the kernel has no number are lost, so it gets all that are free before.
pub(crate) fn receive(thread: &mut Thread, call: (u64, [u64; 6])) -> Answer {
    let [_, at, count, ..] = call.1;
    let has_room = |at| {
        let header = guarded::read_value::<[u64; HEADER_WORDS]>(at);
        header.is_ok_and(|header| header[CONTROL] != 0 && header[CONTROL_BYTES] >= PART_BYTES + NUMBER_BYTES)
    };
    if headers(call.0 == RECEIVE_MANY, at, count).any(|(_, at)| has_room(at)) {
        numbers::give_back(thread.home());
    }
    Answer::issue(thread, call.0, call.1, After::Nothing)
}

/// Whether a message has no descriptor of ours in it.
///
/// # Errors
/// EOPNOTSUPP if it has, EBADF for a number that is free and that the kernel has a placeholder at.
fn check(home: &Home, at: u64) -> Result<(), Errno> {
    let header = guarded::read_value::<[u64; HEADER_WORDS]>(at)?;
    let (mut part, end) = (header[CONTROL], header[CONTROL].saturating_add(header[CONTROL_BYTES]));
    if header[CONTROL] == 0 || planted("shim: messages are not looked at") {
        return Ok(());
    }
    while end.saturating_sub(part) >= PART_BYTES {
        let [bytes, kind] = guarded::read_value::<[u64; 2]>(part)?;
        if bytes < PART_BYTES || bytes > end - part {
            return Ok(());
        }
        if kind == SOL_SOCKET | SCM_RIGHTS << 32 {
            for number in (part + PART_BYTES..=part + bytes - NUMBER_BYTES).step_by(NUMBER_BYTES as usize) {
                let number = u64::from(guarded::read_value::<u32>(number)?);
                if home.numbers.is_ours(number) {
                    return Err(Errno::EOPNOTSUPP);
                }
                if home.numbers.is_closed(number) {
                    return Err(Errno::EBADF);
                }
            }
        }
        part = part.saturating_add(bytes.next_multiple_of(8));
    }
    Ok(())
}
