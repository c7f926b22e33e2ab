//! Local datagram sockets. Names are bytes, as in Linux's abstract namespace.

use core::ffi::{c_int, c_void};

use scalefs::{Errno, SocketName, SocketOrder, data, sockets};

use crate::border::{answer_int, buffer, call, descriptor, length, place, source};
use crate::flags::{SCALEFS_APPEND, descriptor_options};
use crate::instance::{scalefs_process, scalefs_thread};
use crate::reason;

/// A flag of sockets: messages may arrive in any order, so that sends and receives of different threads share nothing.
pub const SCALEFS_UNORDERED: u32 = 65536;

/// # Safety
/// As `source` says.
unsafe fn name_of(bytes: *const c_void, size: usize) -> Result<SocketName, Errno> {
    // SAFETY: the caller's promise.
    let name = SocketName::new(unsafe { source(bytes, size) }?);
    name.map_or_else(|| reason::invalid("a name of a socket of 0 bytes, or of more than 107"), Ok)
}

fn kind(flags: u32) -> Result<(SocketOrder, data::DescriptorOptions), Errno> {
    let order = if flags & SCALEFS_UNORDERED == 0 { SocketOrder::Ordered } else { SocketOrder::Unordered };
    Ok((order, descriptor_options(flags & !SCALEFS_UNORDERED, !SCALEFS_APPEND)?))
}

/// Makes a socket that has neither name nor peer, and returns its descriptor. flags may be SCALEFS_UNORDERED,
/// SCALEFS_NONBLOCK, SCALEFS_CLOSE_ON_EXEC and SCALEFS_ANY_NUMBER. No call on sockets waits: scalefs_poll does.
///
/// # Safety
/// See scalefs_open. The same for all calls below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_socket(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    flags: u32,
) -> c_int {
    // SAFETY: the caller's promise; the same in all calls.
    unsafe {
        answer_int(thread, process, |call| {
            let (order, options) = kind(flags)?;
            sockets::socket(call, order, options).map(i64::from)
        })
    }
}

/// Makes two sockets, each the other's peer, with the flags of scalefs_socket.
///
/// # Safety
/// See scalefs_socket; there is room for two numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_socketpair(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    both: *mut c_int,
    flags: u32,
) -> c_int {
    // SAFETY: see `scalefs_socket`.
    unsafe {
        answer_int(thread, process, |call| {
            let (both, (order, options)) = (place(both)?, kind(flags)?);
            let (first, second) = sockets::pair(call, order, options)?;
            both.write(first as c_int);
            both.add(1).write(second as c_int);
            Ok(0)
        })
    }
}

/// Names a socket: from 1 to 107 bytes of any value.
///
/// # Safety
/// See scalefs_socket; the name has so many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_bind(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    fd: c_int,
    name: *const c_void,
    name_size: usize,
) -> c_int {
    // SAFETY: see `scalefs_socket`.
    unsafe {
        answer_int(thread, process, |call| sockets::bind(call, descriptor(fd)?, &name_of(name, name_size)?).map(|()| 0))
    }
}

/// Copies a name into a buffer, cut off at its end; returns how long it is.
///
/// # Safety
/// As `buffer` says.
unsafe fn tell_name(name: &SocketName, into: *mut c_void, size: usize) -> Result<i64, Errno> {
    let bytes = name.bytes();
    let copied = bytes.len().min(size);
    // SAFETY: the caller's promise.
    unsafe { buffer(into, copied) }?.copy_from_slice(&bytes[..copied]);
    Ok(length(bytes.len()))
}

/// Writes the name of a socket into a buffer, cut off at its end; returns how many bytes the name has, 0 if there is none.
///
/// # Safety
/// See scalefs_socket; the buffer has room for size bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_getsockname(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    fd: c_int,
    into: *mut c_void,
    size: usize,
) -> i64 {
    // SAFETY: see `scalefs_socket`.
    unsafe { call(thread, process, |call| tell_name(&sockets::name(call, descriptor(fd)?)?, into, size)) }
}

/// Sends a message to the socket that has a name, or, if name is NULL, to the peer; returns its size.
///
/// # Safety
/// See scalefs_socket; from holds size bytes, the name as many as are said.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_sendto(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    fd: c_int,
    from: *const c_void,
    size: usize,
    name: *const c_void,
    name_size: usize,
) -> i64 {
    // SAFETY: see `scalefs_socket`.
    unsafe {
        call(thread, process, |call| {
            let to = if name.is_null() { None } else { Some(name_of(name, name_size)?) };
            sockets::send(call, descriptor(fd)?, to.as_ref(), source(from, size)?).map(length)
        })
    }
}

/// Takes a message into a buffer; returns how many bytes of it there was room for. If sender is not NULL, the name of the socket
/// that sent it goes there, cut off at *sender_size bytes, and *sender_size becomes the name's size, 0 if it has none.
///
/// # Safety
/// See scalefs_socket; each buffer has the room that is said.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_recvfrom(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    fd: c_int,
    into: *mut c_void,
    size: usize,
    sender: *mut c_void,
    sender_size: *mut usize,
) -> i64 {
    // SAFETY: see `scalefs_socket`.
    unsafe {
        call(thread, process, |call| {
            let room = if sender.is_null() { None } else { Some((place(sender_size)?, sender_size.read())) };
            if let Some((_, room)) = room {
                buffer(sender, room)?;
            }
            let received = sockets::receive(call, descriptor(fd)?, buffer(into, size)?)?;
            if let Some((told, room)) = room {
                told.write(tell_name(&received.from, sender, room)? as usize);
            }
            Ok(length(received.length_bytes.min(size)))
        })
    }
}
