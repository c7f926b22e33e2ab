//! Processes with parents: fork, spawn, exec, exit, wait, and who they are.

use core::ffi::{c_char, c_int};
use std::vec::Vec;

use scalefs::data::DescriptorOptions;
use scalefs::processes::{spawn, wait};
use scalefs::{
    Credentials, Ended, Errno, FileAction, Inherited, MAX_GROUPS, Process, ProcessNumber, SpawnOptions, Which,
};

use crate::border::{bytes, call, descriptor, known, place, several};
use crate::flags::opening;
use crate::instance::{Attached, scalefs_process, scalefs_thread};
use crate::reason;

/// Most actions of one spawn.
const MOST_ACTIONS: u32 = 1 << 20;

/// scalefs_wait waits for any child.
pub const SCALEFS_ANY_CHILD: i32 = -1;
/// A flag of scalefs_spawn: the child gets no descriptors but those of its actions.
pub const SCALEFS_SPAWN_NOTHING: u32 = 1;
/// An action of scalefs_spawn: open path under number with flags and mode.
pub const SCALEFS_ACTION_OPEN: u32 = 0;
/// An action: close number, if it is open.
pub const SCALEFS_ACTION_CLOSE: u32 = 1;
/// An action: let target lead to what number leads to.
pub const SCALEFS_ACTION_DUPLICATE: u32 = 2;
/// An action: make the directory of path the working directory.
pub const SCALEFS_ACTION_CHDIR: u32 = 3;

/// What is done in a new process before it runs.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct scalefs_action {
    /// Which action.
    pub action: u32,
    /// A descriptor.
    pub number: c_int,
    /// Another descriptor.
    pub target: c_int,
    /// Flags of scalefs_open, but SCALEFS_CLOSE_ON_EXEC and SCALEFS_ANY_NUMBER.
    pub flags: u32,
    /// Permission bits of a file that is made.
    pub mode: u32,
    /// A path, or NULL.
    pub path: *const c_char,
}

/// Who calls.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct scalefs_credentials {
    /// User.
    pub user: u32,
    /// Group, which new files get.
    pub group: u32,
    /// How many supplementary groups there are, at most 32.
    pub group_count: u32,
    /// The supplementary groups, or NULL.
    pub groups: *const u32,
}

/// # Safety
/// There are as many groups as are said.
unsafe fn credentials_of(given: *const scalefs_credentials) -> Result<Credentials, Errno> {
    // SAFETY: the caller's promise.
    let (given, groups) = unsafe {
        let given = place(given.cast_mut())?.read();
        (given, several(given.groups, given.group_count, MAX_GROUPS as u32)?)
    };
    known(Credentials::new(given.user, given.group, groups))
}

/// As scalefs_process_new, for a user with supplementary groups.
///
/// # Safety
/// As for scalefs_maintain; there are as many groups as are said.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_process_new_as(
    thread: *mut scalefs_thread,
    who: *const scalefs_credentials,
) -> *mut scalefs_process {
    // SAFETY: the caller's promise.
    let made = unsafe {
        scalefs_thread::attached(thread).and_then(|thread| Ok(scalefs_process::new(&thread, credentials_of(who)?)))
    };
    made.unwrap_or(core::ptr::null_mut())
}

/// Does something with a process between its calls.
///
/// # Safety
/// As `call` says.
unsafe fn between_calls(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    body: impl FnOnce(&Attached<'_>, &Process) -> Result<i64, Errno>,
) -> i64 {
    // SAFETY: the caller's promise.
    let done = unsafe {
        scalefs_thread::attached(thread).and_then(|thread| {
            let of = scalefs_process::of(process, &thread)?;
            match thread.transaction_of(process)? {
                None => body(&thread, of),
                Some(_) => reason::not_in_a_transaction(),
            }
        })
    };
    done.unwrap_or_else(|errno| -i64::from(errno.number()))
}

/// Makes a child with the same descriptors, memory, mask and working directory; *child becomes its handle, for
/// scalefs_process_exit at the end. -EAGAIN or -ENOMEM, and there is none.
///
/// # Safety
/// See scalefs_open; there is room for the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_fork(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    child: *mut *mut scalefs_process,
) -> c_int {
    // SAFETY: the caller's promise.
    let result = unsafe {
        between_calls(thread, process, |thread, of| {
            let child = place(child)?;
            let forked = thread.between_calls(|owned, core| of.fork(owned.file_system(), core, &scalefs::Outside))?;
            child.write(scalefs_process::give_out(thread, forked));
            Ok(0)
        })
    };
    result as c_int
}

/// # Safety
/// Paths end with NUL.
unsafe fn action_of<'p>(action: &scalefs_action) -> Result<FileAction<'p>, Errno> {
    // SAFETY: the caller's promise.
    let path = || unsafe { bytes(action.path) };
    match action.action {
        SCALEFS_ACTION_OPEN => {
            let (flags, options) = opening(action.flags)?;
            let is_plain = options == DescriptorOptions { status: options.status, ..DescriptorOptions::PLAIN };
            known(is_plain.then_some(()))?;
            let (number, permissions) = (descriptor(action.number)?, action.mode);
            Ok(FileAction::Open { number, path: path()?, flags, status: options.status, permissions })
        }
        SCALEFS_ACTION_CLOSE => Ok(FileAction::Close(descriptor(action.number)?)),
        SCALEFS_ACTION_DUPLICATE => {
            Ok(FileAction::Duplicate { number: descriptor(action.number)?, target: descriptor(action.target)? })
        }
        SCALEFS_ACTION_CHDIR => Ok(FileAction::ChangeDirectory(path()?)),
        _ => reason::invalid("an action of spawn that there is not"),
    }
}

/// Makes a child as for a new program: with the caller's mask and working directory, the descriptors that exec does not close,
/// no memory, and what the actions do, one after the other (posix_spawn). flags is 0 or SCALEFS_SPAWN_NOTHING. who is NULL, or
/// who it is, which user 0 alone may say. *child becomes its handle, for scalefs_process_exit at the end.
///
/// # Safety
/// See scalefs_fork; there are so many actions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_spawn(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    actions: *const scalefs_action,
    action_count: u32,
    flags: u32,
    who: *const scalefs_credentials,
    child: *mut *mut scalefs_process,
) -> c_int {
    // SAFETY: the caller's promise.
    let result = unsafe {
        between_calls(thread, process, |thread, of| {
            let child = place(child)?;
            known((flags & !SCALEFS_SPAWN_NOTHING == 0).then_some(()))?;
            let inherited = if flags == 0 { Inherited::Surviving } else { Inherited::Nothing };
            let given: &[scalefs_action] = several(actions, action_count, MOST_ACTIONS)?;
            let actions = given.iter().map(|action| action_of(action)).collect::<Result<Vec<_>, Errno>>()?;
            let credentials = if who.is_null() { None } else { Some(credentials_of(who)?) };
            let options = SpawnOptions { inherited, credentials: credentials.as_ref() };
            let spawned = thread.call(of, |call| spawn(call, &actions, options))?;
            child.write(scalefs_process::give_out(thread, spawned));
            Ok(0)
        })
    };
    result as c_int
}

/// Begins a new program: gives up all memory, and closes the descriptors that exec closes.
///
/// # Safety
/// See scalefs_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_exec(thread: *mut scalefs_thread, process: *mut scalefs_process) -> c_int {
    // SAFETY: the caller's promise.
    let result = unsafe {
        between_calls(thread, process, |thread, of| {
            thread.between_calls(|owned, core| {
                of.exec(owned.file_system(), core, &scalefs::Outside);
                Ok(0)
            })
        })
    };
    result as c_int
}

/// As scalefs_process_exit; whoever waits for the process is told this status, from 0 to 255.
///
/// # Safety
/// As for scalefs_process_exit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_process_exit_with(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    status: c_int,
) -> c_int {
    // As POSIX `_exit`: the lowest eight bits.
    let ended = Ended::Exited(status as u8);
    // SAFETY: the caller's promise.
    let exited =
        unsafe { scalefs_thread::attached(thread).and_then(|thread| scalefs_process::exit(process, &thread, ended)) };
    exited.map_or_else(|errno| -errno.number(), |()| 0)
}

/// Looks for a child that has ended, that of this number or SCALEFS_ANY_CHILD, and forgets it; returns its number and sets
/// *status, unless status is NULL, as waitpid does. 0 if all go on, -ECHILD if there is none.
///
/// # Safety
/// See scalefs_open; there is room for the status.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_wait(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    child: i64,
    status: *mut c_int,
) -> i64 {
    // SAFETY: the caller's promise.
    unsafe {
        call(thread, process, |call| {
            let which = match u64::try_from(child) {
                Ok(number) => Which::Child(ProcessNumber(number)),
                Err(_) if child == i64::from(SCALEFS_ANY_CHILD) => Which::Any,
                Err(_) => return reason::invalid("the number of a child is below 0, and not SCALEFS_ANY_CHILD"),
            };
            let Some((number, ended)) = wait(call, which)? else { return Ok(0) };
            if !status.is_null() {
                status.write(ended.wait_status());
            }
            Ok(number.0 as i64)
        })
    }
}

/// The number of a process, above 0, which no other of its instance has or will have.
///
/// # Safety
/// See scalefs_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_getpid(thread: *mut scalefs_thread, process: *mut scalefs_process) -> i64 {
    // SAFETY: the caller's promise.
    unsafe { between_calls(thread, process, |_, of| Ok(of.number().0 as i64)) }
}

/// The number of its parent; 0 if it has none, or if that has ended.
///
/// # Safety
/// See scalefs_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_getppid(thread: *mut scalefs_thread, process: *mut scalefs_process) -> i64 {
    // SAFETY: the caller's promise.
    unsafe { between_calls(thread, process, |_, of| Ok(of.parent().map_or(0, |parent| parent.0 as i64))) }
}
