//! The beginning of every program of the tree: this one is executed, finds its seat, and loads the other.

use core::sync::atomic::Ordering;

use scalefs::{OpenFlags, Start, data, names};
use shared_instance::{AttachError, BASE, Control, take_over};

use crate::elf::MAX_SEGMENTS;
use crate::execute::{MASK_VARIABLE, SEAT_VARIABLE};
use crate::home::Home;
use crate::instance::{self, Here};
use crate::loaded::{self, Loaded};
use crate::numbers;
use crate::paths::{PROGRAM_NUMBER, PROGRAM_PATH};
use crate::shared;
use crate::signals;
use crate::system::{self, die, number};
use crate::threads::Thread;

static HOME: Home = Home::empty();

const READ_WRITE: u64 = 3;
const MAP_SHARED: u64 = 1;
const MAP_FIXED_NOREPLACE: u64 = 0x10_0000;
const PR_SET_NAME: u64 = 15;
const PR_SET_SYSCALL_USER_DISPATCH: u64 = 59;
const DISPATCH_ON: u64 = 1;
const NAME_BYTES: usize = 16;

const AT_NULL: u64 = 0;
const AT_PHDR: u64 = 3;
const AT_PHENT: u64 = 4;
const AT_PHNUM: u64 = 5;
const AT_BASE: u64 = 7;
const AT_ENTRY: u64 = 9;
const AT_RANDOM: u64 = 25;
const AT_HWCAP2: u64 = 26;
/// In what the kernel tells of the processor (Linux: `HWCAP2_FSGSBASE`).
const FSGSBASE: u64 = 2;
const AT_EXECFN: u64 = 31;
const AT_SYSINFO_EHDR: u64 = 33;

unsafe extern "C" {
    /// The beginning of this program and the end of its text, from the linker.
    static __executable_start: u8;
    static etext: u8;
}

/// The stack with which a program begins: count, arguments, variables, and what the kernel tells.
struct Stack {
    top: *mut u64,
}

impl Stack {
    fn word(&self, index: usize) -> u64 {
        // SAFETY: the kernel's words, up to the last of what it tells.
        unsafe { *self.top.add(index) }
    }

    fn set(&self, index: usize, value: u64) {
        // SAFETY: as above.
        unsafe { *self.top.add(index) = value };
    }

    fn first_variable(&self) -> usize {
        self.word(0) as usize + 2
    }

    /// Where what the kernel tells begins.
    fn told(&self) -> usize {
        let mut index = self.first_variable();
        while self.word(index) != 0 {
            index += 1;
        }
        index + 1
    }

    fn find(&self, kind: u64) -> Option<u64> {
        let mut index = self.told();
        while self.word(index) != AT_NULL {
            if self.word(index) == kind {
                return Some(self.word(index + 1));
            }
            index += 2;
        }
        None
    }

    fn tell(&self, kind: u64, value: u64) {
        let mut index = self.told();
        while self.word(index) != AT_NULL {
            if self.word(index) == kind {
                self.set(index + 1, value);
            }
            index += 2;
        }
    }

    /// The variables that are ours, by their place.
    fn ours(&self) -> impl Iterator<Item = usize> {
        let variables = self.first_variable()..self.told() - 1;
        variables.filter(|index| text_at(self.word(*index)).starts_with(SEAT_NAME))
    }

    /// Takes our variables out, of which there are two: the rest moves up by as much, so that the stack stays aligned.
    fn without_ours(self) -> Stack {
        let end = self.told() - 1;
        let mut to = end;
        for index in (0..end).rev() {
            let is_ours = index >= self.first_variable() && text_at(self.word(index)).starts_with(SEAT_NAME);
            if !is_ours {
                to -= 1;
                self.set(to, self.word(index));
            }
        }
        // SAFETY: words of the same stack.
        Stack { top: unsafe { self.top.add(to) } }
    }
}

/// What our variables' names begin with.
const SEAT_NAME: &[u8] = b"SCALEFS_SEAT";

/// A text that the kernel has put above the stack.
fn text_at<'t>(at: u64) -> &'t [u8] {
    // SAFETY: it ends with zero, and stays for as long as the process.
    unsafe { core::ffi::CStr::from_ptr(at as *const core::ffi::c_char) }.to_bytes()
}

/// The seat and the number of the memory, as our variable has them.
fn seat_of(stack: &Stack) -> (usize, u64) {
    let unknown = || -> ! { die(&["this program is started by `scalefs run`, not by hand"]) };
    if stack.ours().count() != 2 {
        unknown();
    }
    let value = stack.ours().find_map(|index| text_at(stack.word(index)).strip_prefix(SEAT_VARIABLE));
    let mut numbers = value.unwrap_or_else(|| unknown()).split(|byte| *byte == b',').map(|digits| {
        if digits.is_empty() || digits.len() > 9 || !digits.iter().all(u8::is_ascii_digit) {
            unknown();
        }
        digits.iter().fold(0_u64, |number, digit| number * 10 + u64::from(digit - b'0'))
    });
    match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(seat), Some(memory), None) => (seat as usize, memory),
        _ => unknown(),
    }
}

/// The signals that the first program of a tree begins with blocked; a later one has those of the program before.
fn mask_of(stack: &Stack) -> Option<u64> {
    let value = stack.ours().find_map(|index| text_at(stack.word(index)).strip_prefix(MASK_VARIABLE))?;
    let digits = value.iter().map(|digit| u64::from(digit.wrapping_sub(b'0')));
    (!value.is_empty()).then(|| digits.fold(0_u64, |mask, digit| mask.wrapping_mul(10).wrapping_add(digit)))
}

/// Maps the memory of the instance.
fn map(memory: u64) -> &'static Control {
    let mut status = [0_u64; 18];
    if system::call(number::FSTAT, [memory, status.as_mut_ptr() as u64, 0, 0, 0, 0]) < 0 {
        die(&["the memory of the instance is not open: its number was closed"]);
    }
    let bytes = status[6];
    if (bytes as usize) < size_of::<Control>() {
        die(&["the memory of the instance is too short"]);
    }
    let arguments = [BASE as u64, bytes, READ_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, memory, 0];
    if system::call(number::MMAP, arguments) != BASE as i64 {
        die(&["the addresses of the instance are taken in this process"]);
    }
    // Files of others do not belong into a file of what a program had in memory when it failed.
    const MADV_DONTDUMP: u64 = 16;
    system::call(number::MADVISE, [BASE as u64, bytes, MADV_DONTDUMP, 0, 0, 0]);
    // SAFETY: mapped just now, for good.
    match unsafe { Control::attach() } {
        Ok(control) if control.sizes.total_bytes() as u64 <= bytes => control,
        Ok(_) => die(&["the memory of the instance is too short"]),
        Err(AttachError::NoInstance) => die(&["there is no instance in the memory that was handed on"]),
        Err(AttachError::OtherBuild) => die(&["another build of scalefs made the instance: run the same one"]),
    }
}

/// Lets the kernel hand all calls to us but those of this text.
pub(crate) fn arm() {
    let (start, end) = (&raw const __executable_start as u64, &raw const etext as u64);
    let start = start & !0xfff;
    let arguments = [PR_SET_SYSCALL_USER_DISPATCH, DISPATCH_ON, start, end - start, 0, 0];
    if system::call(number::PRCTL, arguments) < 0 {
        die(&["the kernel has no dispatch of system calls: Linux 5.11 or newer is needed, built with it"]);
    }
}

/// Lets it hand us none, until the next program.
pub(crate) fn disarm() {
    const DISPATCH_OFF: u64 = 0;
    system::call(number::PRCTL, [PR_SET_SYSCALL_USER_DISPATCH, DISPATCH_OFF, 0, 0, 0, 0]);
}

/// Begins: returns in `result` where the program starts, and its stack.
pub(crate) extern "C" fn begin(top: *mut u64, result: *mut [u64; 2]) {
    let stack = Stack { top };
    let (seat_number, memory) = seat_of(&stack);
    let mask = mask_of(&stack);
    let control = map(memory);
    let may_set_gs = stack.find(AT_HWCAP2).is_some_and(|bits| bits & FSGSBASE != 0);
    let is_old = cfg!(feature = "planted-faults") && control.is_planted("shim: the processor lets no one set gs");
    if !may_set_gs || is_old {
        die(&["the processor or the kernel lets no program set the register gs (fsgsbase): use scalefs mount"]);
    }
    // SAFETY: all of it is mapped, for good, and was made before the first program began.
    let Some((arena, file_system)) = (unsafe { control.instance() }) else {
        die(&["another build of scalefs made the instance: run the same one"]);
    };
    let Some((seat, owner)) = control.seats.get(seat_number).and_then(|seat| Some((seat, seat.owner()?))) else {
        die(&["the seat of the process is free: it was taken for dead"]);
    };
    let clock = stack.find(AT_SYSINFO_EHDR).map_or(0, clock_in);
    instance::set(control, arena, file_system, clock);
    HOME.sit(seat_number, owner);
    seat.set_lender(None);
    seat.set_process(owner, system::call(number::GETPID, [0; 6]) as i32);
    let thread = Thread::begin_first(&HOME);
    signals::begin();
    shared::begin(owner);
    signals::unblock_ours();
    // Threads of the program before may have been in calls.
    // SAFETY: exec has ended them all, and this one is at no core.
    unsafe { take_over((arena, file_system), owner, owner, &Here, drop) };
    let (entry, program) = seat.entry();
    HOME.set_program(program);
    thread.credentials = entry.credentials;
    HOME.works_inside.store(entry.works_inside, Ordering::Relaxed);
    numbers::begin(&HOME);
    {
        let core = instance::lease(&HOME);
        let Some(process) = file_system.receive(&core, entry.process, &Here) else {
            die(&["the process of the instance is not there: it was taken for dead"]);
        };
        if !instance::planted("shim: exec closes nothing") {
            process.exec(file_system, &core, &Here);
        }
        process.for_each_descriptor(file_system, &core, |number| numbers::begin_ours(&HOME, number));
        {
            let objects = file_system.begin(&core, process.context(), &Here);
            let opened = names::open(&objects, Start::WorkingDirectory, control.mount_point(), OpenFlags::NONE, 0);
            instance::set_top(
                opened.unwrap_or_else(|_| die(&["the directory of the tree may not be searched"])).handle,
            );
        }
        HOME.set_process(process);
    }
    if HOME.program() != PROGRAM_PATH {
        // That of the program before.
        let _ = instance::call(thread, |call| data::close(call, PROGRAM_NUMBER));
    }
    set_name(HOME.program());
    let stack = stack.without_ours();
    let random = stack.find(AT_RANDOM).map_or(0, |at| {
        // SAFETY: sixteen bytes of the kernel's.
        unsafe { (at as *const u64).read_unaligned() }
    });
    let entry = load(thread, &stack, random);
    arm();
    if let Some(mask) = mask {
        signals::set_mask(mask);
    }
    // SAFETY: room of the caller's.
    unsafe { *result = [entry, stack.top as u64] };
}

fn load(thread: &mut Thread, stack: &Stack, random: u64) -> u64 {
    let mut path = [0_u8; 4096];
    let program = HOME.program();
    path[..program.len()].copy_from_slice(program);
    let path = &path[..program.len()];
    let cannot = |path: &[u8], errno: i32| -> ! {
        let reason = match errno {
            2 => "it is not there",
            8 => "it is no program for x86-64",
            12 => "there is no memory",
            17 => "its addresses are taken",
            13 => "it may not be read",
            _ => "the system refuses",
        };
        die(&["loading ", core::str::from_utf8(path).unwrap_or("?"), ": ", reason])
    };
    let loaded = loaded::load(thread, path, true, random).unwrap_or_else(|errno| cannot(path, errno));
    let Loaded { entry, table, segment_count, interpreter, .. } = loaded;
    debug_assert!(segment_count <= MAX_SEGMENTS);
    stack.tell(AT_PHDR, table);
    stack.tell(AT_PHENT, 56);
    stack.tell(AT_PHNUM, segment_count as u64);
    stack.tell(AT_ENTRY, entry);
    stack.tell(AT_EXECFN, HOME.program().as_ptr() as u64);
    let Some((path, length)) = interpreter else {
        stack.tell(AT_BASE, 0);
        return entry;
    };
    let path = &path[..length];
    let interpreter = loaded::load(thread, path, false, random).unwrap_or_else(|errno| cannot(path, errno));
    stack.tell(AT_BASE, interpreter.base);
    interpreter.entry
}

/// The process is called as its program.
fn set_name(program: &[u8]) {
    let base = program.iter().rposition(|byte| *byte == b'/').map_or(program, |slash| &program[slash + 1..]);
    let mut name = [0_u8; NAME_BYTES];
    let length = base.len().min(NAME_BYTES - 1);
    name[..length].copy_from_slice(&base[..length]);
    system::call(number::PRCTL, [PR_SET_NAME, name.as_ptr() as u64, 0, 0, 0, 0]);
}

/// The kernel's function that tells the time, in its page of code that every process has; zero if it is not found.
fn clock_in(page: u64) -> usize {
    const DYNAMIC: u32 = 2;
    const SYMBOL_TABLE: u64 = 6;
    const STRING_TABLE: u64 = 5;
    const HASH_TABLE: u64 = 4;
    const SYMBOL_BYTES: u64 = 24;
    const NAME: &[u8] = b"__vdso_clock_gettime\0";
    let word = |at: u64| {
        // SAFETY: the kernel's page, a program whose tables it describes itself.
        unsafe { (at as *const u64).read_unaligned() }
    };
    // SAFETY: as above.
    let half = |at: u64| unsafe { (at as *const u32).read_unaligned() };
    let (table, count) = (page + word(page + 32), half(page + 56) & 0xffff);
    let (mut base, mut dynamic) = (None, None);
    for index in 0..u64::from(count) {
        let at = table + 56 * index;
        match half(at) {
            1 if base.is_none() => base = Some(page.wrapping_sub(word(at + 16)).wrapping_add(word(at + 8))),
            DYNAMIC => dynamic = Some(word(at + 16)),
            _ => {}
        }
    }
    let (Some(base), Some(dynamic)) = (base, dynamic) else { return 0 };
    let (mut symbols, mut strings, mut hash) = (0, 0, 0);
    let mut at = base.wrapping_add(dynamic);
    while word(at) != 0 {
        let value = base.wrapping_add(word(at + 8));
        match word(at) {
            SYMBOL_TABLE => symbols = value,
            STRING_TABLE => strings = value,
            HASH_TABLE => hash = value,
            _ => {}
        }
        at += 16;
    }
    if symbols == 0 || strings == 0 || hash == 0 {
        return 0;
    }
    for index in 0..u64::from(half(hash + 4)) {
        let symbol = symbols + SYMBOL_BYTES * index;
        let name = strings + u64::from(half(symbol));
        // SAFETY: as above; the comparison ends where the names differ.
        let is_it =
            NAME.iter().enumerate().all(|(index, byte)| unsafe { *((name + index as u64) as *const u8) } == *byte);
        if is_it {
            return base.wrapping_add(word(symbol + 8)) as usize;
        }
    }
    0
}
