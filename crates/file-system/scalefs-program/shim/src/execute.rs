//! exec: the next program of a process is this loader again, which finds in the process's seat what it is to load.
//!
//! ```text
//! the file: in the tree, or the kernel's ─┬─ `#!`: the interpreter, with the path as an argument; at most four times
//!                                         ├─ a program for x86-64: what it is called by, the process of the instance ─► the seat
//!                                         └─ anything else: refused
//! execveat(loader) with the arguments, and the seat as the first of the variables
//! ```

use scalefs::{
    DataOperations, Errno, NumberChoice, OnExec, OpenFlags, Start, StatusFlags, data, data::DescriptorOptions,
};
use shared_instance::Entry;

use crate::attributes;
use crate::constants::*;
use crate::dispatch::Answer;
use crate::elf;
use crate::guarded;
use crate::instance::{self, Here};
use crate::numbers;
use crate::paths::{self, Buffer, From, MAX_PATH_BYTES, Place};
use crate::system::{self, number};
use crate::threads::Thread;

/// At most as many scripts may be the interpreters of each other (Linux: `exec_binprm`).
const MAX_SCRIPTS: usize = 5;
/// Bytes of a file that say what it is (Linux: `BINPRM_BUF_SIZE`).
pub(crate) const HEAD_BYTES: usize = 256;
/// Arguments and variables at most.
const MAX_STRINGS: usize = 1 << 20;
const READ_WRITE: u64 = 3;
const PRIVATE_ANONYMOUS: u64 = 0x22;
const SET_USER: u32 = 0o4000;
const SET_GROUP: u32 = 0o2000;

/// The beginning of the variable by which a loader finds its seat.
pub(crate) const SEAT_VARIABLE: &[u8] = b"SCALEFS_SEAT=";
/// That of a second one, without which the stack would not be aligned: the supervisor says in it which signals are blocked.
pub(crate) const MASK_VARIABLE: &[u8] = b"SCALEFS_SEAT2=";

/// What a script adds: its interpreter, one argument perhaps, and the path of the script.
struct Script {
    interpreter: Buffer,
    interpreter_bytes: usize,
    argument: [u8; HEAD_BYTES],
    argument_bytes: usize,
}

/// execve, execveat.
pub(crate) fn execute(
    thread: &mut Thread,
    call: (u64, [u64; 6]),
    (directory, index): (u64, usize),
    (arguments, variables): (u64, u64),
    flags: u64,
) -> Answer {
    match try_execute(thread, (directory, call.1[index]), (arguments, variables), flags) {
        Ok(()) => Answer::Done(0),
        Err(errno) => Answer::number(errno),
    }
}

fn try_execute(
    thread: &mut Thread,
    (directory, path): (u64, u64),
    (arguments, variables): (u64, u64),
    flags: u64,
) -> Result<(), i32> {
    let mut given: Buffer = [0; MAX_PATH_BYTES];
    let mut length = guarded::read_text(&mut given, path).map_err(Errno::number)?.len();
    if length == 0 {
        if flags & AT_EMPTY_PATH == 0 {
            return Err(Errno::ENOENT.number());
        }
        let mut text = [0; 40];
        paths::name_of_number(directory, &mut text);
        length = text.iter().position(|byte| *byte == 0).unwrap_or(0);
        given[..length].copy_from_slice(&text[..length]);
    }
    let mut scripts = 0;
    let mut script: Option<Script> = None;
    let mut program: Buffer = [0; MAX_PATH_BYTES];
    let (mut path, mut directory): (Buffer, u64) = (given, directory);
    let mut path_bytes = length;
    let program_bytes = loop {
        let mut head = [0_u8; HEAD_BYTES];
        let (program_bytes, head_bytes) = look(thread, directory, &path[..path_bytes], &mut head, &mut program)?;
        let head = &head[..head_bytes];
        let Some(line) = head.strip_prefix(b"#!") else {
            elf::check_head(head)?;
            break program_bytes;
        };
        scripts += 1;
        if scripts > MAX_SCRIPTS || script.is_some() && scripts > 1 {
            // A script whose interpreter is one: rare, and refused as Linux refuses too many.
            return Err(Errno::ELOOP.number());
        }
        let read = script_of(line).ok_or(ENOEXEC)?;
        path = read.interpreter;
        path_bytes = read.interpreter_bytes;
        directory = paths::WORKING_DIRECTORY;
        script = Some(read);
    };
    begin(thread, &program[..program_bytes], script.as_ref(), &given[..length], (arguments, variables))
}

/// The interpreter and the argument of a script's first line.
fn script_of(line: &[u8]) -> Option<Script> {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    let end = line.iter().position(|byte| *byte == b'\n').unwrap_or(line.len());
    let line = line[..end].trim_ascii();
    let split = line.iter().position(is_space).unwrap_or(line.len());
    let (interpreter, argument) = (&line[..split], line[split..].trim_ascii());
    if interpreter.is_empty() {
        return None;
    }
    let mut script = Script {
        interpreter: [0; MAX_PATH_BYTES],
        interpreter_bytes: interpreter.len(),
        argument: [0; HEAD_BYTES],
        argument_bytes: argument.len(),
    };
    script.interpreter[..interpreter.len()].copy_from_slice(interpreter);
    script.argument[..argument.len()].copy_from_slice(argument);
    Some(script)
}

/// Reads the first bytes of what is to be executed, and writes its true path; returns how long both are.
fn look(
    thread: &mut Thread,
    directory: u64,
    path: &[u8],
    head: &mut [u8; HEAD_BYTES],
    program: &mut Buffer,
) -> Result<(usize, usize), i32> {
    let mut copy: Buffer = [0; MAX_PATH_BYTES];
    copy[..path.len()].copy_from_slice(path);
    let path = &copy[..path.len()];
    if path == b"/proc/self/exe" {
        let own = thread.home().program();
        copy = [0; MAX_PATH_BYTES];
        copy[..own.len()].copy_from_slice(own);
        let length = own.len();
        return look_at(thread, directory, &copy[..length], head, program);
    }
    look_at(thread, directory, path, head, program)
}

fn look_at(
    thread: &mut Thread,
    directory: u64,
    path: &[u8],
    head: &mut [u8; HEAD_BYTES],
    program: &mut Buffer,
) -> Result<(usize, usize), i32> {
    match paths::place(thread, directory, path).map_err(Errno::number)? {
        Place::Tree(from, path) => match look_in_tree(thread, from, path, head, program) {
            Err(errno) if errno == Errno::ENOENT.number() => {
                match paths::way_out(thread, from, path, scalefs::Follow::Symlinks).map_err(Errno::number)? {
                    Some(elsewhere) => look_in_kernel(thread, paths::WORKING_DIRECTORY, elsewhere, head, program),
                    None => Err(errno),
                }
            }
            looked => looked,
        },
        Place::Kernel => look_in_kernel(thread, directory, path, head, program),
        Place::KernelAt(elsewhere) => look_in_kernel(thread, paths::WORKING_DIRECTORY, elsewhere, head, program),
    }
}

fn look_in_tree(
    thread: &mut Thread,
    from: From,
    path: &[u8],
    head: &mut [u8; HEAD_BYTES],
    program: &mut Buffer,
) -> Result<(usize, usize), i32> {
    let number = open_in_tree(thread, from, path).map_err(Errno::number)?;
    let read = instance::call(thread, |call| {
        attributes::may_execute(call, number)?;
        data::read_at(call, number, head, 0)
    });
    close_in_tree(thread, number);
    let read = read.map_err(Errno::number)?;
    let mut length = 0;
    if from == From::Top {
        let top = instance::control().mount_point();
        program[..top.len()].copy_from_slice(top);
        program[top.len()] = b'/';
        length = top.len() + 1;
    } else if path.first() != Some(&b'/') {
        if from != From::Working {
            return Err(Errno::ENOENT.number());
        }
        length = instance::call(thread, |call| {
            scalefs::directories::working_directory_path(call.objects(), program).map(<[u8]>::len)
        })
        .map_err(Errno::number)?;
        program.copy_within(MAX_PATH_BYTES - length.., 0);
        program[length] = b'/';
        length += 1;
    }
    if length + path.len() >= MAX_PATH_BYTES {
        return Err(Errno::ENAMETOOLONG.number());
    }
    program[length..length + path.len()].copy_from_slice(path);
    Ok((length + path.len(), read))
}

/// Opens a file of the tree for reading, under a number that is closed again soon.
pub(crate) fn open_in_tree(thread: &mut Thread, from: From, path: &[u8]) -> Result<u32, Errno> {
    let reserved = numbers::reserve(thread.home(), 0)?;
    let options = DescriptorOptions {
        status: StatusFlags::NONE,
        number: NumberChoice::LowestFrom(reserved.number),
        on_exec: OnExec::Close,
    };
    let number = instance::call(thread, |call| {
        let start: Start<_> = paths::start(call, from)?;
        data::open(call, start, path, OpenFlags::READ, 0, options)
    })?;
    reserved.keep();
    Ok(number)
}

/// Closes what [`open_in_tree`] has opened.
pub(crate) fn close_in_tree(thread: &Thread, number: u32) {
    let _ = instance::call(thread, |call| data::close(call, number));
    thread.home().numbers.free(number);
}

fn look_in_kernel(
    thread: &mut Thread,
    directory: u64,
    path: &[u8],
    head: &mut [u8; HEAD_BYTES],
    program: &mut Buffer,
) -> Result<(usize, usize), i32> {
    const X_OK: u64 = 1;
    const OPENAT: u64 = 257;
    let at = paths::for_kernel(thread.room(), path);
    let file = system::try_call(OPENAT, [directory, at, O_RDONLY | O_CLOEXEC, 0, 0, 0])?;
    let looked = (|| {
        system::try_call(number::FACCESSAT, [directory, at, X_OK, 0, 0, 0])?;
        check_status(file)?;
        let arguments = [file, head.as_mut_ptr() as u64, HEAD_BYTES as u64, 0, 0, 0];
        let read = system::try_call(number::PREAD, arguments)? as usize;
        let mut text = [0; 40];
        paths::name_of_number(file, &mut text);
        let arguments = [text.as_ptr() as u64, program.as_mut_ptr() as u64, MAX_PATH_BYTES as u64, 0, 0, 0];
        let length = system::try_call(number::READLINK, arguments)? as usize;
        Ok((length.min(MAX_PATH_BYTES - 1), read))
    })();
    system::call(number::CLOSE, [file, 0, 0, 0, 0, 0]);
    looked
}

/// Only regular files are executed, and those with set-id bits only where they change nothing: we cannot give what they give.
fn check_status(file: u64) -> Result<(), i32> {
    const GETEUID: u64 = 107;
    const GETEGID: u64 = 108;
    let mut status = [0_u64; 18];
    system::try_call(number::FSTAT, [file, status.as_mut_ptr() as u64, 0, 0, 0, 0])?;
    let (mode, user, group) = (status[3] as u32, (status[3] >> 32) as u32, status[4] as u32);
    if u64::from(mode) & S_IFMT != S_IFREG {
        return Err(Errno::EACCES.number());
    }
    let is_other_user = mode & SET_USER != 0 && system::call(GETEUID, [0; 6]) as u32 != user;
    let is_other_group = mode & (SET_GROUP | 0o10) == SET_GROUP | 0o10 && system::call(GETEGID, [0; 6]) as u32 != group;
    if is_other_user || is_other_group { Err(Errno::EPERM.number()) } else { Ok(()) }
}

/// How many pointers a list of the program's has before its end.
fn count(list: u64) -> Result<usize, i32> {
    if list == 0 {
        return Ok(0);
    }
    for index in 0..MAX_STRINGS {
        if guarded::read_value::<u64>(list + 8 * index as u64).map_err(Errno::number)? == 0 {
            return Ok(index);
        }
    }
    Err(E2BIG)
}

/// Lists for the kernel, in fresh memory, and what they lead to that is ours.
struct Lists {
    memory: u64,
    bytes: u64,
    used: usize,
}

impl Lists {
    fn new(bytes: usize) -> Result<Lists, i32> {
        let bytes = bytes.next_multiple_of(4096) as u64;
        let memory = system::try_call(number::MMAP, [0, bytes, READ_WRITE, PRIVATE_ANONYMOUS, u64::MAX, 0])?;
        Ok(Lists { memory, bytes, used: 0 })
    }

    fn put(&mut self, bytes: &[u8]) -> u64 {
        let at = self.memory + self.used as u64;
        assert!(self.used + bytes.len() <= self.bytes as usize, "there is room for what was counted");
        // SAFETY: fresh memory of our own, and room in it.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), at as *mut u8, bytes.len()) };
        self.used += bytes.len();
        at
    }

    fn put_text(&mut self, text: &[u8]) -> u64 {
        let at = self.put(text);
        self.put(&[0]);
        at
    }

    fn align(&mut self) {
        self.used = self.used.next_multiple_of(8);
    }
}

impl Drop for Lists {
    fn drop(&mut self) {
        system::call(number::MUNMAP, [self.memory, self.bytes, 0, 0, 0, 0]);
    }
}

fn begin(
    thread: &mut Thread,
    program: &[u8],
    script: Option<&Script>,
    given: &[u8],
    (arguments, variables): (u64, u64),
) -> Result<(), i32> {
    let (argument_count, variable_count) = (count(arguments)?, count(variables)?);
    let mut lists = Lists::new(8 * (argument_count + variable_count + 16) + 2 * MAX_PATH_BYTES + 2 * HEAD_BYTES)?;
    let mut seat_text = [0_u8; 64];
    let home = thread.home();
    let control = instance::control();
    let seat_bytes = seat_variable(&mut seat_text, home.seat_number(), control.descriptors.memory);
    let seat = lists.put_text(&seat_text[..seat_bytes]);
    let padding = lists.put_text(MASK_VARIABLE);
    let mut before = [0_u64; 3];
    let mut before_count = 0;
    if let Some(script) = script {
        before[0] = lists.put_text(&script.interpreter[..script.interpreter_bytes]);
        before_count = 1;
        if script.argument_bytes > 0 {
            before[1] = lists.put_text(&script.argument[..script.argument_bytes]);
            before_count = 2;
        }
        before[before_count] = lists.put_text(given);
        before_count += 1;
    }
    lists.align();
    let mut pointers = lists.used as u64 + lists.memory;
    let argument_list = pointers;
    for pointer in &before[..before_count] {
        lists.put(&pointer.to_le_bytes());
    }
    // The script's path stands for the first argument.
    for index in usize::from(script.is_some())..argument_count {
        let pointer = guarded::read_value::<u64>(arguments + 8 * index as u64).map_err(Errno::number)?;
        lists.put(&pointer.to_le_bytes());
    }
    if script.is_none() && argument_count == 0 {
        // Linux: a program has at least an empty name.
        lists.put(&padding.to_le_bytes());
    }
    lists.put(&0_u64.to_le_bytes());
    pointers = lists.memory + lists.used as u64;
    let variable_list = pointers;
    lists.put(&seat.to_le_bytes());
    lists.put(&padding.to_le_bytes());
    for index in 0..variable_count {
        let pointer = guarded::read_value::<u64>(variables + 8 * index as u64).map_err(Errno::number)?;
        lists.put(&pointer.to_le_bytes());
    }
    lists.put(&0_u64.to_le_bytes());
    let works_inside = home.works_inside.load(core::sync::atomic::Ordering::Relaxed);
    let offered = home.process().offer(instance::file_system());
    home.seat().set_entry(Entry { process: offered, works_inside }, program);
    let empty = [0_u8; 1];
    let loader = u64::from(control.descriptors.loader);
    let arguments = [loader, empty.as_ptr() as u64, argument_list, variable_list, AT_EMPTY_PATH, 0];
    let error = system::try_call(number::EXECVEAT, arguments);
    // It was refused: the process is ours as before.
    let core = instance::lease(home);
    let _ = instance::file_system().receive(&core, offered, &Here);
    Err(error.err().unwrap_or(ENOEXEC))
}

fn seat_variable(text: &mut [u8; 64], seat: usize, memory: u32) -> usize {
    let mut length = 0;
    let mut put = |bytes: &[u8]| {
        text[length..length + bytes.len()].copy_from_slice(bytes);
        length += bytes.len();
    };
    put(SEAT_VARIABLE);
    for (index, number) in [seat as u64, u64::from(memory)].into_iter().enumerate() {
        let (mut digits, mut left, mut start) = ([0_u8; 20], number, 20);
        loop {
            start -= 1;
            digits[start] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                break;
            }
        }
        if index > 0 {
            put(b",");
        }
        put(&digits[start..]);
    }
    length
}
