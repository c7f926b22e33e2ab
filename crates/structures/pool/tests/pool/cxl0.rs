//! A second opinion on what a read may return and what a crash may leave: CXL0 (Assa and others, arXiv 2407.16300).
//!
//! CXL0 is a model of memory that machines share: a value lies in memory and perhaps in caches. A store goes into the machine's own
//! cache, values propagate from caches to memory at any time (silently), a flush waits until its line has, a load returns the
//! newest store, and a crash takes the caches of a machine and leaves memory. In it caches are coherent: so a program that keeps
//! our discipline must read on the emulator exactly what CXL0 lets it read. After a crash, memory may hold what was flushed
//! or any later store of the line, and nothing else.
//!
//! The rules are written down here from summaries of the paper, for lines with one writer at a time.

use pool::emulated::{Domain, Emulated, Numbers};
use pool::{LINE_BYTES, Memory};

const LINES: usize = 4;
const DOMAINS: usize = 3;

/// A line in CXL0.
#[derive(Clone, Default)]
struct Line {
    /// What memory may hold: the value that was flushed, and each later one.
    possible: Vec<u64>,
}

impl Line {
    fn store(&mut self, value: u64) {
        self.possible.push(value);
    }

    fn flush(&mut self) {
        self.possible.drain(..self.possible.len() - 1);
    }

    fn load(&self) -> u64 {
        *self.possible.last().unwrap()
    }
}

fn read(domain: &Domain, line: usize) -> u64 {
    let mut bytes = [0; 8];
    domain.read(line * LINE_BYTES, &mut bytes).unwrap();
    u64::from_le_bytes(bytes)
}

/// What a run has met.
#[derive(Default)]
struct Met {
    loads: u64,
    crashes: u64,
    /// Crashes after which memory had a value that was not flushed, or lacked the newest one.
    early: u64,
    lost: u64,
}

/// Random stores, hand-overs and crashes, all in order as the discipline has it.
fn run(seed: u64, met: &mut Met) {
    let memory = Emulated::new(LINES * LINE_BYTES, DOMAINS, seed).unwrap();
    let domains: Vec<Domain> = (0..DOMAINS).map(|number| memory.domain(number)).collect();
    let mut model = vec![Line { possible: vec![0] }; LINES];
    let mut numbers = Numbers::new(!seed);
    let (mut owners, mut messages) = ([0; LINES], 0);
    for value in 1..400 {
        let line = numbers.below(LINES);
        let at = line * LINE_BYTES;
        let owner = owners[line];
        match numbers.below(8) {
            0..4 => {
                domains[owner].write(at, &u64::to_le_bytes(value)).unwrap();
                model[line].store(value);
            }
            4..7 => {
                let is_dirty = model[line].possible.len() > 1;
                if is_dirty {
                    domains[owner].write_back(at, 8).unwrap();
                    domains[owner].drain().unwrap();
                }
                model[line].flush();
                let next = (owner + 1 + numbers.below(DOMAINS - 1)) % DOMAINS;
                messages += 1;
                domains[owner].sent(0, messages);
                domains[next].received(0, messages);
                domains[next].invalidate(at, 8).unwrap();
                assert_eq!(read(&domains[next], line), model[line].load(), "seed {seed}");
                owners[line] = next;
                met.loads += 1;
            }
            _ => {
                memory.crash(owner);
                met.crashes += 1;
                for (number, of_model) in model.iter_mut().enumerate().filter(|(number, _)| owners[*number] == owner) {
                    let left = u64::from_le_bytes(memory.below(number)[..8].try_into().unwrap());
                    assert!(of_model.possible.contains(&left), "seed {seed}: {left} of {:?}", of_model.possible);
                    met.early += u64::from(left != of_model.possible[0]);
                    met.lost += u64::from(left != of_model.load());
                    of_model.possible = vec![left];
                }
                // What it had written is as if it had never been, or as if it had been flushed: all begins again.
                return;
            }
        }
    }
}

/// Runs from many seeds; how many.
pub fn search() -> u64 {
    let mut met = Met::default();
    let seeds = 400;
    (0..seeds).for_each(|seed| run(seed, &mut met));
    assert!(met.loads > 500 && met.crashes > 300 && met.early > 20 && met.lost > 20);
    println!("{} loads, {} crashes, of {} lines early, of {} lost", met.loads, met.crashes, met.early, met.lost);
    seeds
}

#[test]
fn reads_and_crashes_are_those_of_cxl0() {
    search();
}
