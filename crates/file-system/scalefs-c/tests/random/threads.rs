//! Threads that take turns: each call is made by one of them, which is a core for as long as it likes.

use std::sync::mpsc::{Receiver, Sender, channel};

use call_language::{Operation, Outcome};
use scalefs_c::*;

use crate::door::Caller;
use crate::more::More;

/// What a thread is to do.
#[derive(Clone, Debug)]
pub enum Job {
    /// A call of a user, one way or the other.
    Call(usize, Operation, bool),
    /// A call that only this test knows.
    More(usize, More),
    /// Begins a transaction of a user.
    Begin(usize),
    /// Ends it: all of it happens.
    Commit(usize),
    /// Ends it: nothing happens.
    Abort(usize),
    /// Goes on as another core.
    Move(u32),
    /// Does what is left to do.
    Maintain,
}

/// Handles that all threads use.
#[derive(Clone, Copy)]
pub struct Shared {
    pub instance: *mut scalefs_instance,
    pub users: [*mut scalefs_process; 3],
}
// SAFETY: instances and processes may be used by several threads.
unsafe impl Send for Shared {}

/// The test's end of a thread.
pub struct Thread {
    jobs: Sender<Job>,
    outcomes: Receiver<Outcome>,
    running: Option<std::thread::JoinHandle<()>>,
}

impl Thread {
    /// Starts it as a core.
    pub fn start(shared: Shared, core: u32) -> Thread {
        let ((jobs, to_do), (done, outcomes)) = (channel(), channel());
        let running = std::thread::spawn(move || work(shared, core, &to_do, &done));
        Thread { jobs, outcomes, running: Some(running) }
    }

    /// Lets it do something, and waits for that.
    pub fn ask(&self, job: Job) -> Outcome {
        self.jobs.send(job).unwrap();
        self.outcomes.recv().expect("the thread is there")
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        // Without jobs it detaches and ends.
        self.jobs = channel().0;
        if let Some(running) = self.running.take() {
            let _ = running.join();
        }
    }
}

fn attach(shared: Shared, core: u32) -> *mut scalefs_thread {
    // SAFETY: the instance outlives its threads.
    let thread = unsafe { scalefs_attach(shared.instance, core) };
    assert!(!thread.is_null(), "core {core}");
    thread
}

fn work(shared: Shared, core: u32, to_do: &Receiver<Job>, done: &Sender<Outcome>) {
    let mut thread = attach(shared, core);
    let answer = |returned: i32| if returned < 0 { Err(-returned) } else { Ok(call_language::Answer::Done) };
    for job in to_do {
        let caller = |user: usize, is_other_way| Caller { thread, process: shared.users[user], is_other_way };
        // SAFETY: the handle is this thread's own.
        let outcome = unsafe {
            match job {
                Job::Call(user, operation, is_other_way) => caller(user, is_other_way).make(&operation),
                Job::More(user, operation) => caller(user, false).make_more(&operation),
                Job::Begin(user) => answer(scalefs_xbegin(thread, shared.users[user], SCALEFS_TX_DEFAULTS)),
                Job::Commit(user) => answer(scalefs_xend(thread, shared.users[user])),
                Job::Abort(user) => answer(scalefs_xabort(thread, shared.users[user])),
                Job::Move(core) => {
                    scalefs_detach(thread);
                    thread = attach(shared, core);
                    answer(0)
                }
                Job::Maintain => {
                    scalefs_maintain(thread);
                    answer(0)
                }
            }
        };
        if done.send(outcome).is_err() {
            break;
        }
    }
    // SAFETY: as above.
    unsafe { scalefs_detach(thread) };
}
