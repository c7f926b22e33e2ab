//! What transactions are to others, and others to them: plain calls beside them, writers beside a large commit, and a large
//! transaction against writers of what it reads.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use scalefs::FileSystem;
use transact::Transactions as _;

use crate::{files, print, processor_ns_of};

const CALLS: usize = 10_000;

/// Runs something while a thread does something else again and again.
fn beside<T>(
    files: &FileSystem,
    other: impl Fn(&FileSystem, u64) -> io::Result<()> + Sync,
    work: impl FnOnce() -> T,
) -> T {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0.. {
                other(files, round).expect("it is alone in its directory");
                if stop.load(Relaxed) {
                    break;
                }
            }
        });
        let done = work();
        stop.store(true, Relaxed);
        done
    })
}

/// Plain calls in a directory of their own, while another thread works in another: in transactions, or plainly, too.
pub fn plain_beside_transactions(samples: usize) -> io::Result<()> {
    let files = files()?;
    let root = files.root()?;
    ["mine", "theirs"].iter().try_for_each(|directory| root.create_dir(directory))?;
    root.create("mine/there")?;
    let plainly = |files: &FileSystem, _| {
        let root = files.root()?;
        (0..10).try_for_each(|n| root.create(format!("theirs/{n}")).map(drop))?;
        (0..10).try_for_each(|n| root.remove_file(format!("theirs/{n}")))
    };
    let together = |files: &FileSystem, _| {
        files.transaction(|t| (0..10).try_for_each(|n| t.create(format!("theirs/{n}"))))?;
        files.transaction(|t| (0..10).try_for_each(|n| t.remove_file(format!("theirs/{n}"))))
    };
    let changes = || {
        processor_ns_of(|| {
            for n in 0..CALLS / 2 {
                let name = format!("mine/{}", n % 100);
                root.create(&name).and_then(|_| root.remove_file(&name)).expect("no one else is here");
            }
        })
    };
    let looks = || processor_ns_of(|| (0..CALLS).for_each(|_| drop(root.metadata("mine/there"))));
    let ratios: Vec<[f64; 2]> = (0..samples)
        .map(|_| {
            let [changes_plain, looks_plain] = beside(&files, plainly, || [changes(), looks()]);
            let [changes_beside, looks_beside] = beside(&files, together, || [changes(), looks()]);
            [changes_beside / changes_plain, looks_beside / looks_plain]
        })
        .collect();
    let of = |part: usize| ratios.iter().map(|ratio| ratio[part]).collect::<Vec<_>>();
    print("plain create and unlink beside transactions, of beside plain calls", "", &of(0));
    print("plain stat beside transactions, of beside plain calls", "", &of(1));
    Ok(())
}

fn longest(longest_ns: &mut f64, call: impl FnOnce()) {
    let start = Instant::now();
    call();
    *longest_ns = longest_ns.max(start.elapsed().as_nanos() as f64);
}

/// The longest call of a writer of other names while 10,000 names are made by one transaction, and beside an idle one.
pub fn writers_beside_a_large_commit(samples: usize) -> io::Result<()> {
    let mut waits = [Vec::new(), Vec::new()];
    for _ in 0..samples {
        for (are_many, waits) in [true, false].into_iter().zip(&mut waits) {
            let files = files()?;
            let root = files.root()?;
            ["mine", "theirs"].iter().try_for_each(|directory| root.create_dir(directory))?;
            let done = AtomicBool::new(false);
            let mut longest_ns = 0.0;
            thread::scope(|scope| {
                let large = scope.spawn(|| {
                    let made = match are_many {
                        true => files.transaction(|t| (0..CALLS).try_for_each(|n| t.create(format!("theirs/{n}")))),
                        false => {
                            thread::sleep(Duration::from_millis(20));
                            Ok(())
                        }
                    };
                    done.store(true, Relaxed);
                    made
                });
                while !done.load(Relaxed) {
                    longest(&mut longest_ns, || drop(root.create("mine/f")));
                    longest(&mut longest_ns, || drop(root.remove_file("mine/f")));
                }
                large.join().expect("it does not panic")
            })?;
            waits.push(longest_ns / 1e6);
        }
    }
    print("longest call of a writer beside a transaction of 10,000 names", "ms", &waits[0]);
    print("longest call of a writer beside none (control)", "ms", &waits[1]);
    Ok(())
}

/// A transaction that looks at 10,000 names, against two threads that make and remove some of them.
pub fn large_against_writers(samples: usize) -> io::Result<()> {
    let (mut attempts, mut waits) = (Vec::new(), Vec::new());
    for _ in 0..samples {
        let files = files()?;
        files.root()?.create_dir("d")?;
        let (runs, done) = (AtomicU32::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            let writers: Vec<_> = (0..2)
                .map(|writer| {
                    let (files, done) = (&files, &done);
                    scope.spawn(move || {
                        let root = files.root().expect("there are few descriptors");
                        let mut longest_ns = 0.0;
                        for n in (0..CALLS / 2).cycle() {
                            let name = format!("d/{}", 2 * n + writer);
                            longest(&mut longest_ns, || drop(root.create(&name)));
                            longest(&mut longest_ns, || drop(root.remove_file(&name)));
                            if done.load(Relaxed) {
                                break;
                            }
                        }
                        longest_ns / 1e6
                    })
                })
                .collect();
            let outcome = files.transaction(|t| {
                runs.fetch_add(1, Relaxed);
                (0..CALLS).try_for_each(|n| t.exists(format!("d/{n}")).map(drop))?;
                t.create("done")
            });
            done.store(true, Relaxed);
            waits.extend(writers.into_iter().map(|writer| writer.join().expect("it does not panic")));
            // Who never commits has tried once more than that.
            attempts.push(f64::from(runs.load(Relaxed) + u32::from(outcome.is_err())));
        });
    }
    print("attempts of a transaction of 10,000 calls against two writers of what it reads", "", &attempts);
    print("longest call of such a writer", "ms", &waits);
    Ok(())
}
