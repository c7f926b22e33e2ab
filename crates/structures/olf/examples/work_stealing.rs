//! Work stealing: each worker has a list of jobs, and takes the last; who has none left moves the first of another's list to its
//! own. A job is in exactly one list at every moment, so it is run once, no matter who looks when.
//!
//! `cargo run --release -p olf --example work_stealing`

use std::sync::atomic::{AtomicU32, Ordering};

use olf::{Arc, Domain, Here, Limits, List, ListLink, links};

/// Something to do.
pub struct Job {
    queue: ListLink,
    runs: AtomicU32,
}

links! {
    /// Jobs in their order.
    pub InQueue: Job { list: queue }
}

const WORKERS: usize = 3;

/// This many jobs, all of the first worker in the beginning; returns how many each has run.
///
/// # Panics
/// If a job does not run once.
pub fn run_all(jobs: u32) -> Vec<u32> {
    let domain = Domain::with(Limits { threads: WORKERS + 1, lists: WORKERS }).expect("a domain");
    let queues: Vec<_> = (0..WORKERS).map(|_| List::<InQueue>::new(&domain).expect("a list")).collect();
    let here = domain.enter().expect("a thread");
    let all: Vec<_> =
        (0..jobs).map(|_| Arc::new(&domain, Job { queue: ListLink::new(), runs: AtomicU32::new(0) })).collect();
    for job in &all {
        queues[0].push_back(&here, job.clone()).expect("a new job");
    }
    let done = AtomicU32::new(0);
    let work = |own: usize| {
        let here = domain.enter().expect("a thread");
        let mut run = 0;
        while done.load(Ordering::Relaxed) < jobs {
            let Some(job) = next(&queues, own, &here) else { continue };
            job.runs.fetch_add(1, Ordering::Relaxed);
            done.fetch_add(1, Ordering::Relaxed);
            run += 1;
            job.end(&here);
            here.maintain();
        }
        run
    };
    let run = std::thread::scope(|scope| {
        let work = &work;
        let workers: Vec<_> = (0..WORKERS).map(|own| scope.spawn(move || work(own))).collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker")).collect()
    });
    assert!(all.iter().all(|job| job.runs.load(Ordering::Relaxed) == 1), "each job runs once");
    run
}

/// A job of the worker's own list, into which one is moved from another's if it is empty.
fn next<'d>(queues: &[List<'d, InQueue>], own: usize, here: &Here<'d>) -> Option<Arc<'d, Job>> {
    if let Some(job) = queues[own].pop_back(here) {
        return Some(job);
    }
    for other in (0..queues.len()).filter(|other| *other != own) {
        let guard = here.pin();
        if let Some(job) = queues[other].front(&guard) {
            // Its owner, or another thief, may be quicker.
            let _ = queues[other].move_to_back(&queues[own], here, &job);
        }
    }
    None
}

#[allow(dead_code, reason = "the tests call the above")]
fn main() {
    println!("jobs by worker: {:?}", run_all(1_000));
}
