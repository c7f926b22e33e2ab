//! Threads: those that a program makes take turns from their first instruction to the end of their own destructors.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

use libc::{pthread_attr_t, pthread_key_t, pthread_t};
use preload::next;

use crate::reason::Reason;
use crate::scheduler::{Inside, State, leave_for_good};
use crate::system;

type Function = extern "C-unwind" fn(*mut c_void) -> *mut c_void;

/// A thread's value of it has a destructor, which runs however the thread ends.
static KEY: OnceLock<pthread_key_t> = OnceLock::new();
/// The C library runs destructors so often if they set values; ours is to be last.
const ROUNDS: usize = 3;

/// Before threads take turns.
pub fn prepare() {
    let mut key = 0;
    // SAFETY: the place is ours, and the function is a destructor. After fork there is one thread, which takes no turns.
    unsafe {
        libc::pthread_key_create(&raw mut key, Some(end_of_thread));
        libc::pthread_atfork(None, None, Some(in_child));
    }
    KEY.get_or_init(|| key);
}

extern "C" fn in_child() {
    leave_for_good();
}

fn set_rounds(rounds: usize) {
    if let Some(key) = KEY.get() {
        // SAFETY: the key was made; the value is a number.
        unsafe { libc::pthread_setspecific(*key, ptr::without_provenance(rounds)) };
    }
}

/// What the C library runs in a new thread. It unwinds if the thread ends by pthread_exit.
extern "C-unwind" fn run(place: *mut c_void) -> *mut c_void {
    set_rounds(ROUNDS);
    let start = Inside::first(place.addr()).own().start.take();
    start.map_or(ptr::null_mut(), |(function, argument)| function(argument))
}

extern "C" fn end_of_thread(rounds: *mut c_void) {
    match rounds.addr() {
        1 => {
            if let Some(mut inside) = Inside::now() {
                if inside.own().in_operation {
                    system::refuse("a thread ends inside an operation: expected COMMUTANT_SCALE_END() before");
                }
                let place = inside.place;
                inside.own().state = State::Ended;
                inside.wake(Reason::Thread(place), usize::MAX);
                inside.scheduler().progress();
                inside.hand_over_for_good();
            }
        }
        rounds => set_rounds(rounds - 1),
    }
}

#[unsafe(no_mangle)]
extern "C" fn pthread_create(
    handle: *mut pthread_t,
    attributes: *const pthread_attr_t,
    function: Function,
    argument: *mut c_void,
) -> c_int {
    let Some(mut inside) = Inside::now() else {
        return next!(pthread_create(
            handle: *mut pthread_t, attributes: *const pthread_attr_t, function: Function, argument: *mut c_void
        ));
    };
    let place = inside.scheduler().add((function, argument));
    let (function, argument): (Function, _) = (run, ptr::without_provenance_mut(place));
    let result = next!(pthread_create(
        handle: *mut pthread_t, attributes: *const pthread_attr_t, function: Function, argument: *mut c_void
    ));
    let threads = &mut inside.scheduler().threads;
    if result == 0 {
        // SAFETY: the C library has written it.
        let handle = unsafe { *handle };
        // It may be that of a thread that is gone.
        threads.iter_mut().filter(|thread| thread.handle == handle).for_each(|thread| thread.handle = 0);
        threads[place].handle = handle;
    } else {
        threads[place].state = State::Free;
    }
    result
}

#[unsafe(no_mangle)]
extern "C-unwind" fn pthread_join(handle: pthread_t, value: *mut *mut c_void) -> c_int {
    if let Some(mut inside) = Inside::now()
        && let Some(place) = inside.scheduler().threads.iter().position(|thread| thread.handle == handle)
    {
        while inside.scheduler().threads[place].state != State::Ended {
            inside.wait(Reason::Thread(place));
        }
        inside.scheduler().threads[place].state = State::Free;
        inside.scheduler().threads[place].handle = 0;
    }
    next!(pthread_join(handle: pthread_t, value: *mut *mut c_void))
}
