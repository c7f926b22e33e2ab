//! A log of one domain that two others read, slowly now and then.

use std::cell::Cell;
use std::rc::Rc;

use pool::emulated::turns::{Program, Turns, hand_over};
use pool::emulated::{Domain, Emulated, Numbers};
use pool::log::{LogError, LogLayout, LogReader, LogWriter, RECORD_BYTES};

const ENTRIES: usize = 2;

#[derive(Clone, Default)]
struct Done {
    appended: Rc<Cell<u64>>,
    /// Counts beginnings and ends of calls: odd inside of one.
    appends: Rc<Cell<u64>>,
    /// Of the last call that discards, begun or ended.
    discarded: Rc<Cell<u64>>,
    read: Rc<Cell<u64>>,
    wrong: Rc<Cell<Option<&'static str>>>,
}

impl Done {
    fn wrong(&self, what: &'static str) {
        if self.wrong.get().is_none() {
            self.wrong.set(Some(what));
        }
    }
}

fn layout() -> LogLayout {
    LogLayout { at: 0, entry_count: ENTRIES, salt: 9, writer: 0, patience: 1_000 }
}

fn record(number: u64) -> Vec<u8> {
    let mut numbers = Numbers::new(number);
    let length = numbers.below(RECORD_BYTES + 1);
    (0..length).map(|_| numbers.draw() as u8).collect()
}

fn writes(domain: Domain, count: u64, done: Done) {
    let mut numbers = Numbers::new(count);
    let mut writer = LogWriter::new(domain, layout()).unwrap();
    for number in 0..count {
        done.appends.set(done.appends.get() + 1);
        if writer.append(&record(number)).is_err() {
            return done.wrong("an error of the writer");
        }
        done.appended.set(number + 1);
        done.appends.set(done.appends.get() + 1);
        if numbers.below(8) == 0 {
            // A while, in which readers come near.
            (0..numbers.below(100)).for_each(|_| hand_over());
        }
        if numbers.below(3) == 0 {
            let first = number + 1;
            done.appends.set(done.appends.get() + 1);
            done.discarded.set(first.max(done.discarded.get()));
            if writer.discard_before(first).is_err() {
                return done.wrong("an error of the writer");
            }
            done.appends.set(done.appends.get() + 1);
        }
    }
}

fn reads(domain: Domain, done: Done) {
    let domain_number = domain.number();
    let mut numbers = Numbers::new(domain_number as u64);
    let mut reader = LogReader::new(domain, layout()).unwrap();
    let mut buffer = [0; RECORD_BYTES];
    loop {
        if domain_number == 2 && numbers.below(3) == 0 {
            // A while, in which the writer comes around.
            (0..numbers.below(60)).for_each(|_| hand_over());
        }
        let (appended, appends, position) = (done.appended.get(), done.appends.get(), reader.position());
        match reader.read(&mut buffer) {
            Ok(None) => {
                let is_quiet = appends % 2 == 0 && appends == done.appends.get();
                if is_quiet && appended > position {
                    return done.wrong("an entry that was appended is not there");
                }
            }
            Ok(Some(length)) => {
                if buffer[..length] != record(position) {
                    return done.wrong("another record");
                }
                done.read.set(done.read.get() + 1);
            }
            Err(LogError::Overtaken { lost }) => {
                // The entry after these may be overwritten at this moment.
                let oldest = position + lost;
                let begun = done.appended.get() + done.appends.get() % 2;
                let is_lost = begun >= oldest + ENTRIES as u64 || oldest <= done.discarded.get();
                if lost == 0 || !is_lost || reader.position() != oldest {
                    return done.wrong("overtaken by nothing");
                }
            }
            Err(_) => return done.wrong("an error of a reader"),
        }
    }
}

pub struct Run {
    pub wrong: Option<&'static str>,
    pub memory: Emulated,
    pub read: u64,
}

pub fn run(memory: Emulated, seed: u64, count: u64, steps: u64) -> Run {
    let done = Done::default();
    let mut programs: Vec<Program> = vec![{
        let (domain, done) = (memory.domain(0), done.clone());
        Box::new(move || writes(domain, count, done))
    }];
    for reader in 1..3 {
        let (domain, done) = (memory.domain(reader), done.clone());
        programs.push(Box::new(move || reads(domain, done)));
    }
    Turns::new(programs).run(seed, steps);
    Run { wrong: done.wrong.get(), memory, read: done.read.get() }
}

pub fn adverse(seed: u64) -> Emulated {
    Emulated::new(LogLayout::bytes(ENTRIES), 3, seed).unwrap()
}

#[test]
fn a_log_is_right_under_every_adversary() {
    let (mut calls, mut read, wanted) = (0, 0, crate::rings::calls_wanted());
    for seed in 0.. {
        if seed >= 20 && calls >= wanted {
            break;
        }
        let run = run(adverse(seed), seed, u64::MAX, 20_000);
        assert_eq!(run.wrong, None, "seed {seed}");
        assert_eq!(run.memory.report_count(), 0, "seed {seed}: {}", run.memory.reports()[0]);
        calls += run.memory.step();
        read += run.read;
    }
    assert!(read > 1000, "{read} records");
    println!("{calls} calls on memory, {read} records read");
}

#[test]
fn every_wrong_bit_of_an_entry_or_the_head_is_noticed() {
    for bit in 0..8 * 3 * pool::LINE_BYTES {
        let memory = Emulated::calm(LogLayout::bytes(ENTRIES), 3).unwrap();
        let log = LogLayout { patience: 3, ..layout() };
        let mut writer = LogWriter::new(memory.domain(0), log).unwrap();
        let mut reader = LogReader::new(memory.domain(1), log).unwrap();
        writer.append(&[7; RECORD_BYTES]).unwrap();
        memory.damage(bit / 8, bit as u32 % 8);
        let looks: Vec<_> = (0..3).map(|_| reader.read(&mut [0; RECORD_BYTES])).collect();
        let at = bit / 8 / pool::LINE_BYTES;
        let at = if at == 0 { 0 } else { pool::LINE_BYTES };
        assert_eq!(looks[2], Err(LogError::Damaged { at }), "bit {bit}: {looks:?}");
    }
}
