//! Rounds by turns, of one thread and of several.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Long enough for figures.
    Full,
    /// So short that figures mean nothing.
    Quick,
}

impl Effort {
    /// One of two values.
    pub fn of<T>(self, full: T, quick: T) -> T {
        if self == Effort::Full { full } else { quick }
    }
}

/// A way to do something, by its name: makes this many operations, and says how long they took.
pub type Way<'w> = (&'static str, Box<dyn FnMut(usize) -> Duration + 'w>);

/// A way whose operations are timed in a row; each gets its number.
pub fn way<'w>(name: &'static str, mut operation: impl FnMut(usize) + 'w) -> Way<'w> {
    let timed = move |count| {
        let began = Instant::now();
        (0..count).for_each(&mut operation);
        began.elapsed()
    };
    (name, Box::new(timed))
}

/// Prints the nanoseconds of an operation in each way: the quickest of many rounds, by turns.
pub fn compare(effort: Effort, what: &str, ways: &mut [Way<'_>]) {
    let (rounds, operations) = effort.of((60, 2_000), (2, 64));
    let mut least = vec![f64::MAX; ways.len()];
    for _ in 0..rounds {
        for (least, (_, run)) in least.iter_mut().zip(ways.iter_mut()) {
            *least = least.min(run(operations).as_nanos() as f64 / operations as f64);
        }
    }
    for ((way, _), nanoseconds) in ways.iter().zip(least) {
        println!(r#"{{"what": "{what}", "way": "{way}", "ns": {nanoseconds:.1}}}"#);
    }
}

/// Most threads that there can be at once.
pub const ROOM_FOR_THREADS: usize = 64;

/// How long threads go on.
#[derive(Clone, Copy, Debug)]
pub enum Span {
    /// For a time.
    For(Duration),
    /// Until `commutant scale` ends them, to which each operation is marked; without it, for some operations.
    Marked,
}

/// A way to do something in several threads: makes what they share, runs this many threads, and says how many
/// operations each has made.
pub type ThreadedWay<'w> = (&'static str, Box<dyn Fn(usize, Span) -> Vec<u64> + 'w>);

/// What is compared, and its ways.
pub type Comparison = (String, Vec<ThreadedWay<'static>>);

/// Runs threads that begin together: each makes what it needs by `begin`, and calls that until the time is over. Returns how
/// many operations each has made.
pub fn run_threads<L: FnMut()>(threads: usize, span: Span, begin: impl Fn(usize) -> L + Sync) -> Vec<u64> {
    /// This many operations between two looks at the clock's flag.
    const ROW: u64 = 16;
    /// More than `commutant scale` counts.
    const MARKED: u64 = 1 << 16;
    let (together, is_over) = (Barrier::new(threads + 1), AtomicBool::new(false));
    let work = |number: usize| {
        let mut operation = begin(number);
        let mut done = 0;
        together.wait();
        if let Span::Marked = span {
            (0..MARKED).for_each(|_| scale_annotation::operation(&mut operation));
            return MARKED;
        }
        while !is_over.load(Ordering::Relaxed) {
            (0..ROW).for_each(|_| operation());
            done += ROW;
        }
        done
    };
    let work = &work;
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|number| scope.spawn(move || work(number))).collect();
        together.wait();
        if let Span::For(time) = span {
            std::thread::sleep(time);
        }
        is_over.store(true, Ordering::Relaxed);
        running.into_iter().map(|thread| thread.join().expect("a thread")).collect()
    })
}

/// Prints, for each way and number of threads, the nanoseconds of an operation times the number of threads, of the best of
/// some rounds by turns.
pub fn compare_threads(effort: Effort, what: &str, threads: &[usize], ways: &[ThreadedWay<'_>]) {
    let (rounds, time) = effort.of((12, Duration::from_millis(25)), (1, Duration::from_millis(2)));
    let mut least = vec![vec![f64::MAX; ways.len()]; threads.len()];
    for _ in 0..rounds {
        for (count, least) in threads.iter().zip(&mut least) {
            for (least, (_, run)) in least.iter_mut().zip(ways) {
                let operations: u64 = run(*count, Span::For(time)).iter().sum();
                *least = least.min(time.as_nanos() as f64 * *count as f64 / operations as f64);
            }
        }
    }
    for (count, least) in threads.iter().zip(least) {
        for ((way, _), nanoseconds) in ways.iter().zip(least) {
            println!(r#"{{"what": "{what}", "way": "{way}", "threads": {count}, "ns": {nanoseconds:.1}}}"#);
        }
    }
}

/// Prints the least share that a thread had of the operations of the thread that made most, in any of some stretches.
pub fn fairness(effort: Effort, what: &str, ways: &[ThreadedWay<'_>]) {
    let (stretches, time) = effort.of((3, Duration::from_secs(1)), (1, Duration::from_millis(5)));
    for (way, run) in ways {
        let shares = (0..stretches).map(|_| {
            let made = run(2, Span::For(time));
            let (least, most) = (made.iter().min(), made.iter().max());
            *least.expect("two") as f64 / *most.expect("two") as f64
        });
        let least = shares.fold(f64::MAX, f64::min);
        println!(r#"{{"what": "{what}", "way": "{way}", "share": {least:.3}}}"#);
    }
}
