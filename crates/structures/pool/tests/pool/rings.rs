//! A ring between two domains that take turns inside of their accesses: right values, and no report.

use std::cell::Cell;
use std::rc::Rc;

use pool::emulated::turns::{Program, Turns, hand_over};
use pool::emulated::{Domain, Emulated, Numbers};
use pool::ring::{Layout, Receiver, RingError, Sender};

const LINES: usize = 6;

/// What both ends have done, for who judges them: a call counts once it has returned.
#[derive(Clone, Default)]
pub struct Done {
    pub sent: Rc<Cell<u64>>,
    pub received: Rc<Cell<u64>>,
    reported: Rc<Cell<u64>>,
    /// Counts beginnings and ends of calls in which the receiver tells what it has taken: odd inside of one.
    tellings: Rc<Cell<u64>>,
    wrong: Rc<Cell<Option<&'static str>>>,
    /// Bits of what the receiver tells go wrong: the sender may say so.
    is_damaged: bool,
}

impl Done {
    fn wrong(&self, what: &'static str) {
        if self.wrong.get().is_none() {
            self.wrong.set(Some(what));
        }
    }
}

pub fn layout(line_count: usize) -> Layout {
    Layout { at: 0, line_count, salt: 5, sender: 0, receiver: 1, patience: 1_000 }
}

/// The message with this number: its length and all of its bytes follow from it.
pub fn message(number: u64, longest: usize) -> Vec<u8> {
    let mut numbers = Numbers::new(number);
    let length = numbers.below(longest + 1);
    (0..length).map(|_| numbers.draw() as u8).collect()
}

fn lines_of(message: &[u8]) -> u64 {
    message.len().div_ceil(pool::ring::PAYLOAD_BYTES).max(1) as u64
}

fn sends(domain: Domain, layout: Layout, count: u64, done: Done) {
    let mut sender = Sender::new(domain, layout).unwrap();
    for number in 0..count {
        let message = message(number, layout.longest_message_bytes());
        loop {
            let (reported, tellings) = (done.reported.get(), done.tellings.get());
            match sender.send(&message) {
                Ok(()) => break,
                Err(RingError::Full) => {
                    let has_room = reported + layout.line_count as u64 >= sender.sent_lines() + lines_of(&message);
                    if has_room && !done.is_damaged && tellings % 2 == 0 && tellings == done.tellings.get() {
                        done.wrong("full, and the receiver had said that there is room");
                    }
                }
                Err(RingError::Damaged { .. }) if done.is_damaged => {}
                Err(_) => return done.wrong("an error of the sender"),
            }
        }
        done.sent.set(number + 1);
    }
}

fn receives(domain: Domain, layout: Layout, count: u64, done: Done) {
    let mut receiver = Receiver::new(domain, layout).unwrap();
    let mut buffer = vec![0; layout.longest_message_bytes()];
    for number in 0..count {
        let expected = message(number, buffer.len());
        loop {
            let sent = done.sent.get();
            let untold = receiver.taken_lines() + lines_of(&expected) - receiver.reported_lines();
            let tells = u64::from(untold >= layout.line_count as u64 / 2);
            done.tellings.set(done.tellings.get() + tells);
            let received = receiver.receive(&mut buffer);
            done.reported.set(receiver.reported_lines());
            done.tellings.set(done.tellings.get() + tells);
            match received {
                Ok(None) if sent > number => return done.wrong("a message that was sent is not there"),
                Ok(None) => {}
                Ok(Some(length)) if buffer[..length] == expected => break,
                Ok(Some(_)) => return done.wrong("another message"),
                Err(_) => return done.wrong("an error of the receiver"),
            }
        }
        done.received.set(number + 1);
        if done.is_damaged {
            // A while, in which the ring fills: only then does the sender look.
            (0..number % 50).for_each(|_| hand_over());
        }
    }
}

/// What a run has shown.
pub struct Run {
    pub wrong: Option<&'static str>,
    pub memory: Emulated,
    pub received: u64,
}

/// Sends messages over a small ring, for at most `steps` steps.
pub fn run(memory: Emulated, seed: u64, count: u64, steps: u64) -> Run {
    run_with(memory, seed, count, steps, None)
}

/// As [`run`], while now and then a bit of what the receiver tells goes wrong.
pub fn run_damaged(memory: Emulated, seed: u64, steps: u64) -> Run {
    let damaged = memory.clone();
    let damages: Program = Box::new(move || {
        let mut numbers = Numbers::new(seed);
        loop {
            (0..numbers.below(3)).for_each(|_| hand_over());
            damaged.damage(4, numbers.below(3) as u32);
        }
    });
    run_with(memory, seed, u64::MAX, steps, Some(damages))
}

fn run_with(memory: Emulated, seed: u64, count: u64, steps: u64, damages: Option<Program>) -> Run {
    let done = Done { is_damaged: damages.is_some(), ..Done::default() };
    let (sender, receiver) = (memory.domain(0), memory.domain(1));
    let (of_sender, of_receiver) = (done.clone(), done.clone());
    let mut programs: Vec<Program> = vec![
        Box::new(move || sends(sender, layout(LINES), count, of_sender)),
        Box::new(move || receives(receiver, layout(LINES), count, of_receiver)),
    ];
    programs.extend(damages);
    if Turns::new(programs).run(seed, steps) {
        memory.end();
    }
    Run { wrong: done.wrong.get(), memory, received: done.received.get() }
}

/// `POOL_CALLS=10000000`: at least that number of calls on memory.
pub fn calls_wanted() -> u64 {
    std::env::var("POOL_CALLS").map_or(0, |count| count.parse().unwrap())
}

pub fn adverse(seed: u64) -> Emulated {
    Emulated::new(Layout::bytes(LINES), 2, seed).unwrap()
}

#[test]
fn a_ring_is_right_under_every_adversary() {
    let (mut calls, wanted) = (0, calls_wanted());
    for seed in 0.. {
        if seed >= 20 && calls >= wanted {
            break;
        }
        let run = run(adverse(seed), seed, u64::MAX, 20_000);
        assert_eq!(run.wrong, None, "seed {seed}");
        assert_eq!(run.memory.report_count(), 0, "seed {seed}: {}", run.memory.reports()[0]);
        assert!(run.received > 20, "seed {seed}: {} messages", run.received);
        calls += run.memory.step();
    }
    println!("{calls} calls on memory");
}

#[test]
fn wrong_bits_in_what_was_taken_lose_nothing() {
    for seed in 0..20 {
        let run = run_damaged(adverse(seed), seed, 20_000);
        assert_eq!(run.wrong, None, "seed {seed}");
    }
}

#[test]
fn every_wrong_bit_of_a_line_is_noticed() {
    for bit in 0..8 * pool::LINE_BYTES {
        let memory = Emulated::calm(Layout::bytes(LINES), 2).unwrap();
        let ring = Layout { patience: 5, ..layout(LINES) };
        let mut sender = Sender::new(memory.domain(0), ring).unwrap();
        let mut receiver = Receiver::new(memory.domain(1), ring).unwrap();
        let mut buffer = [0; 256];
        sender.send(b"one line").unwrap();
        assert_eq!(receiver.receive(&mut buffer), Ok(Some(8)));
        sender.send(&[7; 100]).unwrap();
        let at = 2 * pool::LINE_BYTES;
        memory.damage(at + bit / 8, bit as u32 % 8);
        let looks: Vec<_> = (0..5).map(|_| receiver.receive(&mut buffer)).collect();
        assert_eq!(looks[4], Err(RingError::Damaged { at }), "bit {bit}");
        assert!(looks[..4].iter().all(|look| *look == Ok(None)), "bit {bit}: {looks:?}");
        // A bit that comes back right was on its way.
        memory.damage(at + bit / 8, bit as u32 % 8);
        assert_eq!(receiver.receive(&mut buffer), Ok(Some(100)), "bit {bit}");
    }
}

#[test]
fn what_does_not_fit_is_refused_and_loses_nothing() {
    let memory = Emulated::calm(Layout::bytes(LINES), 2).unwrap();
    let mut sender = Sender::new(memory.domain(0), layout(LINES)).unwrap();
    let mut receiver = Receiver::new(memory.domain(1), layout(LINES)).unwrap();
    let longest = layout(LINES).longest_message_bytes();
    assert_eq!(sender.send(&vec![0; longest + 1]), Err(RingError::TooLong { length: longest + 1, limit: longest }));
    assert_eq!(sender.send(&vec![1; longest]), Ok(()));
    assert_eq!(receiver.receive(&mut [0; 8]), Err(RingError::TooLong { length: longest, limit: 8 }));
    assert_eq!(receiver.receive(&mut vec![0; longest]), Ok(Some(longest)));
    assert_eq!(sender.send(&[]), Ok(()));
    assert_eq!(receiver.receive(&mut []), Ok(Some(0)));
    for layout in [Layout { at: 8, ..layout(LINES) }, layout(1)] {
        let error = Sender::new(memory.domain(0), layout).unwrap_err();
        assert_eq!(error, RingError::Layout { at: layout.at, line_count: layout.line_count });
    }
    let past = Sender::new(memory.domain(0), layout(LINES + 1)).unwrap_err();
    assert!(matches!(past, RingError::Memory(pool::Fault::OutOfBounds { .. })));
}
