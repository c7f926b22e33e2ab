//! Whose turn it is. One thread runs, the others sleep until it is their turn; the one that runs chooses who goes on.
//!
//! All that is here is guarded by the turn: who has it, and no one else, touches it. A turn is passed on by a word of
//! the thread that gets it, so what was done before is seen by it.

use std::cell::{Cell, UnsafeCell};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use transfer_marks as mark;

use crate::options::Options;
use crate::reason::Reason;
use crate::system;

/// Most threads at a time.
const MOST_THREADS: usize = 1024;
/// So often all that wait may look again, without an operation that begins or ends in between.
const MOST_LOOKS: u32 = 100;

/// What a thread does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// There is no thread in this place.
    Free,
    /// It can go on.
    Ready,
    /// It waits, for this.
    Waits(Reason),
    /// It has ended.
    Ended,
}

/// What a new thread is to run.
pub type Start = (extern "C-unwind" fn(*mut c_void) -> *mut c_void, *mut c_void);

/// A thread.
#[derive(Clone, Copy)]
pub struct Thread {
    /// What it does.
    pub state: State,
    /// As the C library knows it; zero if that is not known.
    pub handle: libc::pthread_t,
    /// As Linux knows it.
    pub number: u32,
    /// Its core, once it has marked an operation and all cores were there.
    pub core: Option<usize>,
    /// It is in an operation.
    pub in_operation: bool,
    /// It was woken since no one could go on, not by what it waits for.
    pub was_asked: bool,
    /// What it is to run.
    pub start: Option<Start>,
}

const NONE: Thread =
    Thread { state: State::Free, handle: 0, number: 0, core: None, in_operation: false, was_asked: false, start: None };

/// How far the measurement is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Not all cores have marked an operation.
    Gathering,
    /// They make operations.
    Running,
}

/// A barrier: where it lies, how many it waits for, and how many have come.
pub struct Barrier {
    /// Its address.
    pub address: usize,
    /// It waits for this many.
    pub wanted: u32,
    /// This many have come in this round.
    pub come: u32,
    /// How many rounds there were.
    pub round: u32,
}

/// All that the turn guards.
pub struct Scheduler {
    /// What was asked for.
    pub options: Options,
    /// All threads, in the order in which they were made.
    pub threads: Box<[Thread]>,
    /// Barriers that were made.
    pub barriers: Vec<Barrier>,
    /// How many places are or were in use.
    pub count: usize,
    /// See there.
    pub phase: Phase,
    /// Operations that have ended.
    pub ended: u64,
    looks: u32,
    draw: u64,
}

struct Guarded(UnsafeCell<Option<Scheduler>>);

// SAFETY: who has the turn touches it, and no one else.
unsafe impl Sync for Guarded {}

static SCHEDULER: Guarded = Guarded(UnsafeCell::new(None));
/// Threads take turns.
static ACTIVE: AtomicBool = AtomicBool::new(false);
/// The thread that has the turn is in this library, where it is not interrupted.
static INSIDE: AtomicBool = AtomicBool::new(false);
/// Place of the thread that has the turn.
static HOLDER: AtomicUsize = AtomicUsize::new(0);
/// Linux's number of it, once it runs, and how many turns there were: for the clock (`interruptions`).
static RUNS: AtomicU32 = AtomicU32::new(0);
static TURNS: AtomicU64 = AtomicU64::new(0);

#[repr(align(64))]
struct Turn(AtomicU32);

/// Not zero: it is this thread's turn.
static TURN: [Turn; MOST_THREADS] = [const { Turn(AtomicU32::new(0)) }; MOST_THREADS];

thread_local! {
    /// The thread's place; none in a thread that takes no turns.
    static PLACE: Cell<Option<usize>> = const { Cell::new(None) };
}

/// This thread becomes the first one, and has the turn.
pub fn begin(options: Options) {
    let draw = options.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let (phase, count) = (Phase::Gathering, 1);
    let mut threads = vec![NONE; MOST_THREADS].into_boxed_slice();
    threads[0] = Thread { state: State::Ready, number: system::thread_number(), ..NONE };
    RUNS.store(threads[0].number, Ordering::Relaxed);
    let scheduler = Scheduler { options, threads, barriers: Vec::new(), count, phase, ended: 0, looks: 0, draw };
    // SAFETY: called once, before any other thread is there.
    unsafe { *SCHEDULER.0.get() = Some(scheduler) };
    PLACE.set(Some(0));
    ACTIVE.store(true, Ordering::Release);
}

/// From now on threads of this process run as they like.
pub fn leave_for_good() {
    ACTIVE.store(false, Ordering::Release);
}

/// How many turns there were, and Linux's number of the thread that has the turn now.
pub fn now() -> (u64, u32) {
    (TURNS.load(Ordering::Relaxed), RUNS.load(Ordering::Relaxed))
}

/// This thread has the turn, and is in this library, where it is not interrupted.
pub struct Inside {
    /// Its place.
    pub place: usize,
}

impl Inside {
    /// `None` if the thread takes no turns, or is in here already.
    pub fn now() -> Option<Inside> {
        let place = PLACE.get().filter(|_| ACTIVE.load(Ordering::Acquire))?;
        // Who has the turn alone passes it on: so it stays this thread's if it is.
        let is_ours = HOLDER.load(Ordering::Relaxed) == place && !INSIDE.swap(true, Ordering::Relaxed);
        is_ours.then_some(Inside { place })
    }

    /// A new thread waits for its first turn in its place.
    pub fn first(place: usize) -> Inside {
        PLACE.set(Some(place));
        await_turn(place);
        let mut inside = Inside { place };
        let number = system::thread_number();
        inside.own().number = number;
        RUNS.store(number, Ordering::Relaxed);
        inside
    }

    /// All that the turn guards.
    pub fn scheduler(&mut self) -> &mut Scheduler {
        // SAFETY: this thread has the turn, and there is one of `Inside` at a time, which is borrowed.
        unsafe { (*SCHEDULER.0.get()).as_mut() }.expect("set before threads take turns")
    }

    /// This thread.
    pub fn own(&mut self) -> &mut Thread {
        let place = self.place;
        &mut self.scheduler().threads[place]
    }

    /// Lets a thread go on, which is drawn; returns when it is this one's turn again. Says whether it was another one.
    pub fn hand_over(&mut self) -> bool {
        let own = *self.own();
        if own.in_operation {
            mark::nobody();
        }
        let next = self.scheduler().choose();
        if next != self.place {
            pass(next);
            await_turn(self.place);
            RUNS.store(own.number, Ordering::Relaxed);
        }
        if let (true, Some(core)) = (own.in_operation, own.core) {
            mark::turn(core, mark::OPERATION);
        }
        next != self.place
    }

    /// The same of a thread that has ended.
    pub fn hand_over_for_good(mut self) {
        let scheduler = self.scheduler();
        let is_over = |thread: &Thread| matches!(thread.state, State::Free | State::Ended);
        if scheduler.threads.iter().all(is_over) {
            return leave_for_good();
        }
        let next = scheduler.choose();
        PLACE.set(None);
        std::mem::forget(self);
        pass(next);
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.store(false, Ordering::Relaxed);
    }
}

fn await_turn(place: usize) {
    // Acquire pairs with the release in `pass`.
    while TURN[place].0.swap(0, Ordering::Acquire) == 0 {
        system::wait(&TURN[place].0, 0);
    }
}

fn pass(place: usize) {
    TURNS.fetch_add(1, Ordering::Relaxed);
    HOLDER.store(place, Ordering::Relaxed);
    TURN[place].0.store(1, Ordering::Release);
    system::wake(&TURN[place].0);
}

impl Scheduler {
    /// A place for a new thread.
    pub fn add(&mut self, start: Start) -> usize {
        let is_free =
            |thread: &Thread| thread.state == State::Free || thread.state == State::Ended && thread.handle == 0;
        let free = self.threads[..self.count].iter().position(is_free);
        let place = free.unwrap_or(self.count);
        if place == MOST_THREADS {
            system::refuse(&format!("expected at most {MOST_THREADS} threads at a time"));
        }
        self.count = self.count.max(place + 1);
        self.threads[place] = Thread { state: State::Ready, start: Some(start), ..NONE };
        self.progress();
        place
    }

    /// Something happened that no waiting thread does by itself.
    pub fn progress(&mut self) {
        self.looks = 0;
    }

    fn choose(&mut self) -> usize {
        let is_ready = |thread: &&Thread| thread.state == State::Ready;
        let mut ready = self.threads[..self.count].iter().filter(is_ready).count();
        if ready == 0 {
            ready = self.ask_all();
        }
        let wanted = self.below(ready);
        let mut places = (0..self.count).filter(|place| self.threads[*place].state == State::Ready);
        places.nth(wanted).expect("fewer than are ready")
    }

    /// No one can go on: all look again, since what they wait for may have come in a way that is not known here. Says
    /// how many.
    fn ask_all(&mut self) -> usize {
        self.looks += 1;
        let gathers = self.phase == Phase::Gathering && self.threads.iter().any(is_gathering);
        if self.looks > MOST_LOOKS || gathers && self.looks > 2 {
            self.refuse_all();
        }
        let mut count = 0;
        for thread in &mut self.threads[..self.count] {
            if matches!(thread.state, State::Waits(reason) if !matches!(reason, Reason::AllCores)) {
                (thread.state, thread.was_asked) = (State::Ready, true);
                count += 1;
            }
        }
        if count == 0 {
            self.refuse_all();
        }
        count
    }

    /// Ends the process if some cores wait for the first operations of others, of which there are none.
    pub fn refuse_few(&self) {
        let gathered = self.threads.iter().filter(|thread| is_gathering(thread)).count();
        if gathered > 0 {
            let cores = self.options.cores;
            system::refuse(&format!(
                "expected {cores} threads with marked operations, one for each core, got {gathered}"
            ));
        }
    }

    fn refuse_all(&self) -> ! {
        self.refuse_few();
        let waiting = self.threads[..self.count].iter().enumerate();
        let words = waiting.filter_map(|(place, thread)| match (thread.state, thread.core) {
            (State::Waits(reason), Some(core)) => Some(format!("core {core} for {reason}")),
            (State::Waits(reason), None) => Some(format!("thread {place} for {reason}")),
            _ => None,
        });
        system::refuse(&format!("all threads wait: {}", words.collect::<Vec<_>>().join(", ")));
    }

    fn below(&mut self, count: usize) -> usize {
        // xorshift64*
        self.draw ^= self.draw >> 12;
        self.draw ^= self.draw << 25;
        self.draw ^= self.draw >> 27;
        ((u128::from(self.draw.wrapping_mul(0x2545_F491_4F6C_DD1D)) * count as u128) >> 64) as usize
    }
}

fn is_gathering(thread: &Thread) -> bool {
    thread.state == State::Waits(Reason::AllCores)
}
