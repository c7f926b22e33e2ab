//! A ring of two lines, explored whole: every order of steps, and every write-back, eviction and fetch of both caches.

use std::cell::Cell;
use std::rc::Rc;

use pool::LINE_BYTES;
use pool::emulated::explore::{Explored, World, explore};
use pool::emulated::turns::{Program, Turns};
use pool::emulated::{Domain, Emulated};
use pool::ring::{Layout, PAYLOAD_BYTES, Receiver, RingError, Sender};

const LINES: usize = 2;
const LIMIT: usize = 3_000_000;

fn layout() -> Layout {
    Layout { at: 0, line_count: LINES, salt: 3, sender: 0, receiver: 1, patience: u32::MAX }
}

/// Its bytes are in both halves of its line.
fn message(number: u64) -> [u8; PAYLOAD_BYTES] {
    [number as u8 + 1; PAYLOAD_BYTES]
}

fn sends(domain: Domain, count: u64, sent: Rc<Cell<u64>>) {
    let mut sender = Sender::new(domain.clone(), layout()).unwrap();
    for number in 0..count {
        loop {
            // All that it keeps; it has looked at no line for long.
            domain.at_rest(1 + number * 64 + sender.taken_lines());
            match sender.send(&message(number)) {
                Ok(()) => break,
                Err(RingError::Full) => {}
                Err(error) => panic!("{error}"),
            }
        }
        sent.set(number + 1);
    }
    domain.at_rest(0);
}

fn receives(domain: Domain, count: u64, sent: Rc<Cell<u64>>) {
    let mut receiver = Receiver::new(domain.clone(), layout()).unwrap();
    for number in 0..count {
        let mut bytes = [0; PAYLOAD_BYTES];
        loop {
            // What was sent decides what is right, so it is a part of the state.
            domain.at_rest(1 + (number * 64 + receiver.reported_lines()) * 64 + sent.get());
            let there = sent.get() > number;
            match receiver.receive(&mut bytes).unwrap() {
                None => assert!(!there, "message {number} was sent and is not there"),
                Some(length) => {
                    assert!(length == PAYLOAD_BYTES && bytes == message(number), "another message");
                    break;
                }
            }
        }
    }
    domain.at_rest(0);
}

/// Explores a ring over which `count` messages go.
pub fn ring(count: u64) -> Explored {
    let begin = || {
        let memory = Emulated::in_steps(Layout::bytes(LINES), 2, LINE_BYTES / 2).unwrap();
        let sent = Rc::new(Cell::new(0));
        let (sender, receiver) = (memory.domain(0), memory.domain(1));
        let (of_sender, of_receiver) = (Rc::clone(&sent), Rc::clone(&sent));
        let programs: Vec<Program> = vec![
            Box::new(move || sends(sender, count, of_sender)),
            Box::new(move || receives(receiver, count, of_receiver)),
        ];
        let end = Box::new(move || assert_eq!(sent.get(), count));
        World { memory, turns: Turns::new(programs), end }
    };
    // No move of a line that no message comes to changes anything.
    explore(begin, 0..LINES.min(count as usize) + 1, LIMIT)
}

#[test]
fn a_ring_is_right_in_every_state() {
    // `POOL_MESSAGES=3` (half a minute with optimisation): lines are written over.
    let explored = ring(std::env::var("POOL_MESSAGES").map_or(1, |count| count.parse().unwrap()));
    assert!(explored.ends > 0 && explored.states > 100, "{explored:?}");
    println!("{explored:?}");
}
