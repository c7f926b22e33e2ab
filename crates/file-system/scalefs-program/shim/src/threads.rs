//! Threads: the state of each, found by `gs`, with a stack for our calls.

use core::cell::Cell;
use core::mem::size_of;

use scalefs::Credentials;

use crate::entry::Frame;
use crate::home::Home;
use crate::processes;
use crate::signals;
use crate::system::{self, number};

/// Bytes of a thread's memory: a page that no one may touch, the stack, and its state at the end.
pub(crate) const THREAD_BYTES: usize = 128 << 10;
const PAGE_BYTES: usize = 4096;
const PATHS: usize = 4;
/// Calls that wait at a time, one in a handler that runs in the other, whose bytes are kept.
const KEPT: usize = 2;
const MAX_PATH_BYTES: usize = 4096;
const ARCH_SET_GS: u64 = 0x1001;
/// `PROT_READ | PROT_WRITE`, and `MAP_PRIVATE | MAP_ANONYMOUS`.
const READ_WRITE: u64 = 3;
const PRIVATE_ANONYMOUS: u64 = 0x22;

/// The state of a thread. The first fields are known to [`crate::entry`].
#[repr(C)]
pub(crate) struct Thread {
    me: *const Thread,
    pub(crate) in_call: u32,
    pub(crate) pending: u32,
    pub(crate) stack_top: u64,
    pub(crate) user_rsp: u64,
    pub(crate) ours: *const u8,
    home: *const Home,
    pub(crate) saved_mask: u64,
    /// What is known of the signal that was noted.
    pub(crate) info: [u64; 16],
    /// The call that is to be issued: number and arguments. Where it has come back: what is to be done, and its number.
    pub(crate) issued: [u64; 7],
    /// As whom its calls are made.
    pub(crate) credentials: Credentials,
    /// Calls so far.
    pub(crate) calls: Cell<u32>,
    /// What the thread has seen of how often the kernel got placeholders back.
    pub(crate) given_back: u32,
    next_path: Cell<usize>,
    /// Paths and masks that the kernel is given instead of the program's.
    paths: [[u8; MAX_PATH_BYTES]; PATHS],
    /// The same for calls that may wait: by whom each place is taken, which is the stack pointer of its call, or 0.
    taken_by: [u64; KEPT],
    next_kept: usize,
    kept: [[u8; MAX_PATH_BYTES]; KEPT],
    /// For `vfork`: what the thread of the child runs in.
    pub(crate) mask_in_child: u64,
}

/// Memory of the first thread.
#[repr(C, align(4096))]
struct Memory([u8; THREAD_BYTES]);

static mut FIRST: Memory = Memory([0; THREAD_BYTES]);

impl Thread {
    /// Where the state lies in a thread's memory.
    fn place(memory: u64) -> u64 {
        (memory + THREAD_BYTES as u64 - size_of::<Thread>() as u64) & !63
    }

    /// Lays the state out in memory of zeros.
    ///
    /// # Safety
    /// The memory is a thread's, and no one else's.
    unsafe fn lay_out(memory: u64, home: *const Home) -> *mut Thread {
        let place = Thread::place(memory);
        let thread = place as *mut Thread;
        // SAFETY: the caller's promise. Zeros are a value of all other fields.
        unsafe {
            (&raw mut (*thread).me).write(thread);
            (&raw mut (*thread).stack_top).write(place & !63);
            (&raw mut (*thread).home).write(home);
            (&raw mut (*thread).ours).write((*home).numbers.ours());
        }
        thread
    }

    /// The first thread of a program, which becomes the one that runs.
    pub(crate) fn begin_first(home: *const Home) -> &'static mut Thread {
        // SAFETY: called once, before there is another thread.
        let thread = unsafe { &mut *Thread::lay_out((&raw mut FIRST) as u64, home) };
        system::call(number::ARCH_PRCTL, [ARCH_SET_GS, thread.me as u64, 0, 0, 0, 0]);
        thread
    }

    /// A further thread; `None` without memory.
    pub(crate) fn make(home: *const Home, credentials: Credentials) -> Option<*mut Thread> {
        let arguments = [0, THREAD_BYTES as u64, READ_WRITE, PRIVATE_ANONYMOUS, u64::MAX, 0];
        let memory = system::try_call(number::MMAP, arguments).ok()?;
        system::call(number::MPROTECT, [memory, PAGE_BYTES as u64, 0, 0, 0, 0]);
        // SAFETY: fresh zeros; no one else has it yet.
        unsafe {
            let thread = Thread::lay_out(memory, home);
            (&raw mut (*thread).credentials).write(credentials);
            Some(thread)
        }
    }

    /// Where a thread's memory begins.
    fn memory(&self) -> u64 {
        (self.stack_top + size_of::<Thread>() as u64).next_multiple_of(PAGE_BYTES as u64) - THREAD_BYTES as u64
    }

    /// Gives the memory of a thread back that has not begun, or has ended.
    ///
    /// # Safety
    /// It came from [`Thread::make`], and no one uses it any more.
    pub(crate) unsafe fn free(thread: *mut Thread) {
        // SAFETY: the caller's promise.
        let memory = unsafe { (*thread).memory() };
        system::call(number::MUNMAP, [memory, THREAD_BYTES as u64, 0, 0, 0, 0]);
    }

    /// Puts a frame at the top of the thread's stack, where it leaves from, to go on with this stack of the program's.
    ///
    /// # Safety
    /// The thread has not begun.
    pub(crate) unsafe fn set_frame(thread: *mut Thread, frame: Frame, user_rsp: u64) {
        // SAFETY: the caller's promise; the stack is large enough.
        unsafe {
            let place = ((*thread).stack_top - size_of::<Frame>() as u64) as *mut Frame;
            place.write(frame);
            (*thread).user_rsp = user_rsp;
            (*thread).in_call = 1;
        }
    }

    #[inline]
    pub(crate) fn home(&self) -> &'static Home {
        // SAFETY: a home is there as long as its threads.
        unsafe { &*self.home }
    }

    /// Asks for a call to be issued.
    #[inline]
    pub(crate) fn issue(&mut self, number: u64, arguments: [u64; 6]) {
        self.issued[0] = number;
        self.issued[1..].copy_from_slice(&arguments);
    }

    /// A place for bytes that the kernel is given instead of the program's, until three more were asked for.
    pub(crate) fn room(&mut self) -> &'static mut [u8; MAX_PATH_BYTES] {
        let next = self.next_path.get();
        self.next_path.set((next + 1) % PATHS);
        let place: *mut [u8; MAX_PATH_BYTES] = &raw mut self.paths[next];
        // SAFETY: the thread's own memory, of which no other borrow is alive: each is used up before the next but two.
        unsafe { &mut *place }
    }

    /// A place as [`Thread::room`], for a call that may wait and is then made again: handlers that run until then find it taken.
    ///
    /// A handler that leaves by a jump leaves places taken: they are taken again where there is no other.
    pub(crate) fn kept_room(&mut self) -> &'static mut [u8; MAX_PATH_BYTES] {
        let taken_by = |who| self.taken_by.iter().position(|by| *by == who);
        let chosen = taken_by(self.user_rsp).or_else(|| taken_by(0)).unwrap_or(self.next_kept);
        self.next_kept = (chosen + 1) % KEPT;
        self.taken_by[chosen] = self.user_rsp;
        let place: *mut [u8; MAX_PATH_BYTES] = &raw mut self.kept[chosen];
        // SAFETY: the thread's own memory; another call's borrow has ended when that call was issued.
        unsafe { &mut *place }
    }

    /// The place of the call that comes back, if it has kept it.
    pub(crate) fn kept_of_this_call(&self) -> Option<&[u8; MAX_PATH_BYTES]> {
        self.taken_by.iter().zip(&self.kept).find(|(by, _)| **by == self.user_rsp).map(|(_, room)| room)
    }

    /// The call has come back whose place this was.
    pub(crate) fn give_back_room(&mut self) {
        let returned = self.user_rsp;
        for by in self.taken_by.iter_mut().filter(|by| **by == returned) {
            *by = 0;
        }
    }

    /// Ends the thread that runs: gives its memory back.
    pub(crate) fn end(&self) -> ! {
        unsafe extern "C" {
            fn scalefs_end_thread(memory: u64, bytes: u64) -> !;
        }
        signals::block_all();
        let first = &raw const FIRST as u64;
        // The first one's is a part of this program.
        let (memory, bytes) = if self.memory() == first { (first, 0) } else { (self.memory(), THREAD_BYTES as u64) };
        // SAFETY: nothing of the thread's is used any more.
        unsafe { scalefs_end_thread(memory, bytes) }
    }
}

/// The thread that runs.
#[inline]
pub(crate) fn this() -> &'static mut Thread {
    let thread: *mut Thread;
    // SAFETY: the first word at `gs` is the state's own address.
    unsafe { core::arch::asm!("mov {}, gs:[0]", out(reg) thread, options(nostack, readonly)) };
    // SAFETY: set when the thread began; one thread uses it.
    unsafe { &mut *thread }
}

/// The first that a thread does, or a child that shares its parent's memory.
pub(crate) extern "C" fn child() {
    processes::begin_thread(this());
}
