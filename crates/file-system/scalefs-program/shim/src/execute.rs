//! exec: the next program of a process is this loader again, which finds in the process's seat what it is to load.
//!
//! ```text
//! the file: in the tree, or the kernel's ─┬─ `#!`: the interpreter, with the path as an argument; at most five times
//!                                         ├─ a program for x86-64: what it is called by, the process of the instance ─► the seat
//!                                         └─ anything else: refused
//! execveat(loader) with the arguments, and the seat as the first of the variables
//! ```

use scalefs::data::DescriptorOptions;
use scalefs::{DataOperations, Errno, Follow, Kind, NumberChoice, OnExec, StatusFlags, data, directories, handles};
use shared_instance::Entry;

use crate::constants::*;
use crate::decimal::Decimal;
use crate::dispatch::Answer;
use crate::elf;
use crate::guarded;
use crate::instance::{self, Here};
use crate::names::on_tree;
use crate::numbers;
use crate::paths::{self, Buffer, From, MAX_PATH_BYTES, PROGRAM_NUMBER, PROGRAM_PATH, Place};
use crate::running;
use crate::signals;
use crate::stand_ins;
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

/// What a script adds: its interpreter, and one argument perhaps.
#[derive(Clone, Copy)]
struct Script {
    interpreter: [u8; HEAD_BYTES],
    interpreter_bytes: usize,
    argument: [u8; HEAD_BYTES],
    argument_bytes: usize,
}

/// What a script is called by for its interpreter (Linux: `alloc_bprm`).
struct Name {
    text: [u8; MAX_PATH_BYTES + 32],
    length: usize,
}

impl Name {
    fn new() -> Name {
        Name { text: [0; MAX_PATH_BYTES + 32], length: 0 }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.text[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }

    fn bytes(&self) -> &[u8] {
        &self.text[..self.length]
    }
}

/// What was found of a file that is to be executed.
#[derive(Clone, Copy)]
struct Looked {
    /// How long its true path is.
    program_bytes: usize,
    /// How many of its first bytes were read.
    head_bytes: usize,
    /// Where it has no path for the next program: under which number of ours it is open, until that has it or exec fails.
    kept: Option<u32>,
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
    let (given, mut path): (u64, Buffer) = (path, [0; MAX_PATH_BYTES]);
    let mut path_bytes = guarded::read_text(&mut path, given).map_err(Errno::number)?.len();
    let mut name = Name::new();
    let is_below = directory as u32 != paths::WORKING_DIRECTORY as u32 && path[0] != b'/';
    if is_below {
        name.push(b"/dev/fd/");
        name.push(Decimal::of(u64::from(directory as u32)).digits());
    }
    if is_below && path_bytes > 0 {
        name.push(b"/");
    }
    name.push(&path[..path_bytes]);
    if path_bytes == 0 {
        if flags & AT_EMPTY_PATH == 0 {
            return Err(Errno::ENOENT.number());
        }
        if thread.home().numbers.is_closed(directory) {
            return Err(Errno::EBADF.number());
        }
        let mut text = [0; 40];
        paths::name_of_number(directory, &mut text);
        path_bytes = text.iter().position(|byte| *byte == 0).unwrap_or(0);
        path[..path_bytes].copy_from_slice(&text[..path_bytes]);
    }
    let mut scripts =
        [Script { interpreter: [0; HEAD_BYTES], interpreter_bytes: 0, argument: [0; HEAD_BYTES], argument_bytes: 0 };
            MAX_SCRIPTS];
    let mut script_count = 0;
    let mut program: Buffer = [0; MAX_PATH_BYTES];
    let (mut directory, mut follow) = (directory, follow_of(flags));
    let Looked { program_bytes, kept, .. } = loop {
        let mut head = [0_u8; HEAD_BYTES];
        let looked = look(thread, (directory, follow), &path[..path_bytes], &mut head, &mut program)?;
        let head = &head[..looked.head_bytes];
        let Some(line) = head.strip_prefix(b"#!") else {
            elf::check_head(head).inspect_err(|_| close_kept(thread, looked.kept))?;
            break looked;
        };
        close_kept(thread, looked.kept);
        if is_below && script_count == 0 && is_closed_by_exec(thread, directory) {
            // The interpreter would not find it (Linux: `BINPRM_FLAGS_PATH_INACCESSIBLE`).
            return Err(Errno::ENOENT.number());
        }
        let read = script_of(line).ok_or(ENOEXEC)?;
        *scripts.get_mut(script_count).ok_or(Errno::ELOOP.number())? = read;
        script_count += 1;
        path[..HEAD_BYTES].copy_from_slice(&read.interpreter);
        path_bytes = read.interpreter_bytes;
        directory = paths::WORKING_DIRECTORY;
        follow = Follow::Symlinks;
    };
    let program = (&program[..program_bytes], kept);
    let begun = begin(thread, program, &scripts[..script_count], name.bytes(), (arguments, variables));
    close_kept(thread, kept);
    begun
}

fn close_kept(thread: &Thread, kept: Option<u32>) {
    if let Some(number) = kept {
        close_in_tree(thread, number);
    }
}

fn follow_of(flags: u64) -> Follow {
    if flags & AT_SYMLINK_NOFOLLOW != 0 { Follow::Nothing } else { Follow::Symlinks }
}

/// Whether exec closes a number.
fn is_closed_by_exec(thread: &Thread, number: u64) -> bool {
    const GET_FLAGS: u64 = 1;
    if thread.home().numbers.is_ours(number) {
        return instance::call(thread, |call| data::on_exec(call, number as u32)) == Ok(OnExec::Close);
    }
    system::call(number::FCNTL, [number, GET_FLAGS, 0, 0, 0, 0]) & 1 != 0
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
        interpreter: [0; HEAD_BYTES],
        interpreter_bytes: interpreter.len(),
        argument: [0; HEAD_BYTES],
        argument_bytes: argument.len(),
    };
    script.interpreter[..interpreter.len()].copy_from_slice(interpreter);
    script.argument[..argument.len()].copy_from_slice(argument);
    Some(script)
}

/// Reads the first bytes of what is to be executed, and writes its true path.
fn look(
    thread: &mut Thread,
    at: (u64, Follow),
    path: &[u8],
    head: &mut [u8; HEAD_BYTES],
    program: &mut Buffer,
) -> Result<Looked, i32> {
    let mut copy: Buffer = [0; MAX_PATH_BYTES];
    copy[..path.len()].copy_from_slice(path);
    let path = &copy[..path.len()];
    if path == b"/proc/self/exe" {
        let own = thread.home().program();
        copy = [0; MAX_PATH_BYTES];
        copy[..own.len()].copy_from_slice(own);
        let length = own.len();
        return look_at(thread, at, &copy[..length], head, program);
    }
    look_at(thread, at, path, head, program)
}

fn look_at(
    thread: &mut Thread,
    (directory, follow): (u64, Follow),
    path: &[u8],
    head: &mut [u8; HEAD_BYTES],
    program: &mut Buffer,
) -> Result<Looked, i32> {
    match paths::place(thread, directory, path).map_err(Errno::number)? {
        Place::Tree(from, path) => match look_in_tree(thread, from, (path, follow), head, program) {
            Err(errno) if errno == Errno::ENOENT.number() => {
                match paths::way_out(thread, from, path, Follow::Symlinks).map_err(Errno::number)? {
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
    (path, follow): (&[u8], Follow),
    head: &mut [u8; HEAD_BYTES],
    program: &mut Buffer,
) -> Result<Looked, i32> {
    if follow == Follow::Nothing
        && stand_ins::look(thread, from, path, follow).is_ok_and(|(kind, _)| kind == Kind::Symlink)
    {
        return Err(Errno::ELOOP.number());
    }
    let number = open_in_tree(thread, from, path).map_err(Errno::number)?;
    let looked = look_at_program(thread, (from, path), number, head, program);
    if !looked.is_ok_and(|looked| looked.kept.is_some()) {
        close_in_tree(thread, number);
    }
    looked.map_err(Errno::number)
}

/// As [`look_in_tree`], of what was opened.
fn look_at_program(
    thread: &Thread,
    (from, path): (From, &[u8]),
    number: u32,
    head: &mut [u8; HEAD_BYTES],
    program: &mut Buffer,
) -> Result<Looked, Errno> {
    running::check_execution(thread, number)?;
    let head_bytes = instance::call(thread, |call| data::read_at(call, number, head, 0))?;
    if let From::Itself(_) | From::Number(_) = from
        && path.is_empty()
    {
        program[..PROGRAM_PATH.len()].copy_from_slice(PROGRAM_PATH);
        return Ok(Looked { program_bytes: PROGRAM_PATH.len(), head_bytes, kept: Some(number) });
    }
    let top = instance::control().mount_point();
    let is_plain = paths::is_plain(path) && !path.starts_with(b".");
    let is_given = from == From::Top && is_plain && top.len() + 1 + path.len() < MAX_PATH_BYTES;
    if is_given && on_tree(thread, from, |call, start| directories::is_straight(call.objects(), start, path))? {
        // As most are: no directory need be looked through for a name.
        program[..top.len()].copy_from_slice(top);
        program[top.len()] = b'/';
        program[top.len() + 1..top.len() + 1 + path.len()].copy_from_slice(path);
        return Ok(Looked { program_bytes: top.len() + 1 + path.len(), head_bytes, kept: None });
    }
    let program_bytes = on_tree(thread, from, |call, start| {
        directories::true_path(call.objects(), start, path, program).map(<[u8]>::len)
    })
    .map_err(|errno| if errno == Errno::ERANGE { Errno::ENAMETOOLONG } else { errno })?;
    program.copy_within(MAX_PATH_BYTES - program_bytes.., 0);
    Ok(Looked { program_bytes, head_bytes, kept: None })
}

/// Opens a program of the tree for reading, under a number that is closed again soon.
pub(crate) fn open_in_tree(thread: &mut Thread, from: From, path: &[u8]) -> Result<u32, Errno> {
    let reserved = numbers::reserve(thread.home(), 0)?;
    let options = DescriptorOptions {
        status: StatusFlags::NONE,
        number: NumberChoice::LowestFrom(reserved.number),
        on_exec: OnExec::Close,
    };
    let number = instance::call(thread, |call| match from {
        From::Itself(number) | From::Number(number) if path.is_empty() => {
            handles::open_program_of(call, number, options)
        }
        _ => handles::open_program(call, paths::start(call, from)?, path, options),
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
) -> Result<Looked, i32> {
    const X_OK: u64 = 1;
    const OPENAT: u64 = 257;
    let at = paths::for_kernel(thread.room(), path);
    let file = system::try_call(OPENAT, [directory, at, O_RDONLY | O_CLOEXEC, 0, 0, 0])?;
    let looked = (|| {
        system::try_call(number::FACCESSAT, [directory, at, X_OK, 0, 0, 0])?;
        check_status(file)?;
        let arguments = [file, head.as_mut_ptr() as u64, HEAD_BYTES as u64, 0, 0, 0];
        let head_bytes = system::try_call(number::PREAD, arguments)? as usize;
        let mut text = [0; 40];
        paths::name_of_number(file, &mut text);
        let arguments = [text.as_ptr() as u64, program.as_mut_ptr() as u64, MAX_PATH_BYTES as u64, 0, 0, 0];
        let length = system::try_call(number::READLINK, arguments)? as usize;
        Ok(Looked { program_bytes: length.min(MAX_PATH_BYTES - 1), head_bytes, kept: None })
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
    (program, kept): (&[u8], Option<u32>),
    scripts: &[Script],
    given: &[u8],
    (arguments, variables): (u64, u64),
) -> Result<(), i32> {
    let (argument_count, variable_count) = (count(arguments)?, count(variables)?);
    let mut lists =
        Lists::new(8 * (argument_count + variable_count + 16) + 2 * MAX_PATH_BYTES + 2 * MAX_SCRIPTS * HEAD_BYTES)?;
    let mut seat_text = [0_u8; 64];
    let home = thread.home();
    let control = instance::control();
    let seat_bytes = seat_variable(&mut seat_text, home.seat_number(), control.descriptors.memory);
    let seat = lists.put_text(&seat_text[..seat_bytes]);
    let padding = lists.put_text(MASK_VARIABLE);
    // The last script's interpreter comes first; each has its argument, and then the script.
    let mut before = [0_u64; 2 * MAX_SCRIPTS + 1];
    let mut before_count = 0;
    for script in scripts.iter().rev() {
        let argument = &script.argument[..script.argument_bytes];
        for text in [&script.interpreter[..script.interpreter_bytes], argument] {
            if !text.is_empty() {
                before[before_count] = lists.put_text(text);
                before_count += 1;
            }
        }
    }
    if !scripts.is_empty() {
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
    for index in usize::from(!scripts.is_empty())..argument_count {
        let pointer = guarded::read_value::<u64>(arguments + 8 * index as u64).map_err(Errno::number)?;
        lists.put(&pointer.to_le_bytes());
    }
    if scripts.is_empty() && argument_count == 0 {
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
    let before = kept.map(|number| put_program(thread, number)).transpose().map_err(Errno::number)?;
    let offered = home.process().offer(instance::file_system());
    home.seat().set_entry(Entry { process: offered, works_inside, credentials: thread.credentials }, program);
    let empty = [0_u8; 1];
    let loader = u64::from(control.descriptors.loader);
    let arguments = [loader, empty.as_ptr() as u64, argument_list, variable_list, AT_EMPTY_PATH, 0];
    // The next program has no handler at first, and who cuts a file that this one has mapped would end it.
    let mask = signals::block_ours();
    let error = system::try_call(number::EXECVEAT, arguments);
    signals::set_mask(mask);
    // It was refused: the process is ours as before.
    let core = instance::lease(home);
    let _ = instance::file_system().receive(&core, offered, &Here);
    drop(core);
    if let Some(before) = before {
        take_program_back(thread, before);
    }
    Err(error.err().unwrap_or(ENOEXEC))
}

/// Lets the next program find what is open under a number of ours as its own file. Returns under which number that of this program is
/// kept, if it has one there.
fn put_program(thread: &Thread, number: u32) -> Result<Option<u32>, Errno> {
    instance::call(thread, |call| {
        let behind = NumberChoice::LowestFrom(PROGRAM_NUMBER + 1);
        let before = match data::duplicate(call, PROGRAM_NUMBER, behind, OnExec::Close) {
            Err(Errno::EBADF) => None,
            before => Some(before?),
        };
        let put = data::duplicate_to(call, number, PROGRAM_NUMBER, OnExec::Keep);
        if let (Err(_), Some(before)) = (&put, before) {
            let _ = data::close(call, before);
        }
        put.map(|_| before)
    })
}

/// Exec has failed: undoes [`put_program`].
fn take_program_back(thread: &Thread, before: Option<u32>) {
    let _ = instance::call(thread, |call| match before {
        Some(before) => {
            data::duplicate_to(call, before, PROGRAM_NUMBER, OnExec::Keep)?;
            data::close(call, before)
        }
        None => data::close(call, PROGRAM_NUMBER),
    });
}

fn seat_variable(text: &mut [u8; 64], seat: usize, memory: u32) -> usize {
    let mut length = 0;
    let mut put = |bytes: &[u8]| {
        text[length..length + bytes.len()].copy_from_slice(bytes);
        length += bytes.len();
    };
    put(SEAT_VARIABLE);
    for (index, number) in [seat as u64, u64::from(memory)].into_iter().enumerate() {
        if index > 0 {
            put(b",");
        }
        put(Decimal::of(number).digits());
    }
    length
}
