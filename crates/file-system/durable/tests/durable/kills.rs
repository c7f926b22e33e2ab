//! Processes that are killed: what each of their threads has said to last is there.

use std::fs;
use std::io::{BufRead, BufReader, Write, stdout};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use durable::Durable;

use crate::disk::Draw;
use crate::tree::{part, scratch};

const THREADS: usize = 3;
const FOLDER: &str = "COMMUTANT_DURABLE_FOLDER";

fn content(round: u64) -> Vec<u8> {
    // Every tenth takes the page file.
    vec![round as u8; if round % 10 == 3 { 100_000 } else { 50 }]
}

/// The last round of a thread, and whether all that it did is there and nothing else.
fn round_of(instance: &Durable, thread: usize) -> u64 {
    instance
        .transaction(|t| {
            let folder = format!("{thread}");
            if !t.exists(&folder)? {
                return Ok(0);
            }
            let round = u64::from_le_bytes(t.read(format!("{thread}/round"))?.try_into().unwrap());
            assert_eq!(t.read(format!("{thread}/f{round}"))?, content(round));
            assert_eq!(t.names(&folder)?.len(), 2, "the round and its file alone");
            Ok(round)
        })
        .unwrap()
}

/// Not a test by itself: the process that is killed.
#[test]
fn process_that_is_killed() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let instance = &Durable::open(folder).unwrap();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                let mut round = round_of(instance, thread);
                loop {
                    let next = round + 1;
                    instance
                        .transaction(|t| {
                            let folder = format!("{thread}");
                            if next == 1 {
                                t.create_dir(&folder)?;
                            } else {
                                t.rename(format!("{thread}/f{round}"), format!("{thread}/f{next}"))?;
                            }
                            t.write(format!("{thread}/f{next}"), content(next))?;
                            t.write(format!("{thread}/round"), next.to_le_bytes())
                        })
                        .unwrap();
                    round = next;
                    let mut out = stdout().lock();
                    writeln!(out, "returned {thread} {round}").and_then(|()| out.flush()).unwrap();
                }
            });
        }
    });
}

/// Kills the process some time after it began: while it opens the instance, or commits. What it said of each thread.
fn kill_once(path: &Path, after: Duration) -> [u64; THREADS] {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kills::process_that_is_killed", "--nocapture"])
        .env(FOLDER, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let reading = thread::spawn(move || {
        let mut returned = [0; THREADS];
        for line in out.lines().map_while(Result::ok) {
            if let Some((thread, round)) = line.strip_prefix("returned ").and_then(|said| said.split_once(' ')) {
                returned[thread.parse::<usize>().unwrap()] = round.parse().unwrap();
            }
        }
        returned
    });
    thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    reading.join().unwrap()
}

/// `COMMUTANT_KILLS` says how many; by default few.
#[test]
fn what_has_returned_survives_kills() {
    let kills = std::env::var("COMMUTANT_KILLS").map_or(4, |kills| kills.parse().unwrap());
    let path = scratch("kills");
    let (mut draw, mut lasting) = (Draw(7 + part()), [0; THREADS]);
    for kill in 0..kills {
        // The first ones die while the instance is made.
        let after = Duration::from_micros(if kill % 4 == 0 { draw.below(40_000) } else { draw.below(400_000) });
        let returned = kill_once(&path, after);
        let instance = Durable::open(&path).unwrap();
        for thread in 0..THREADS {
            let (said, found) = (returned[thread].max(lasting[thread]), round_of(&instance, thread));
            assert!((said..=said + 1).contains(&found), "kill {kill}: thread {thread} said {said}, found is {found}");
            lasting[thread] = found;
        }
    }
    println!("{kills} kills, and {lasting:?} rounds");
    fs::remove_dir_all(path).unwrap();
}
