//! Concurrent histories of cores that send, receive and close: what came of the calls has an order in which one queue, or one for
//! each core, gives the same; and nothing stays in the end.

mod support;

use std::collections::VecDeque;
use std::sync::Mutex;

use history::threads::lock;
use history::{Event, Made, State, expect_order, explore, overtake, play, rounds, told};
use proptest::collection::vec;
use proptest::prelude::*;
use sockets::{Order, SLOT_COUNT, Socket, SocketError};
use support::Instance;
use sync::Spin;

#[derive(Clone, Debug)]
enum Operation {
    /// A message that is told from all others.
    Send(u8),
    Receive,
    /// Of the socket that receives; once.
    Close,
}

/// A call and what it gave.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Sent(u8, Result<(), SocketError>),
    Received(Result<u8, SocketError>),
    /// Nobody is refused before the close has begun, and everybody once it has ended.
    Closed,
}

/// Queues of the threads, each on its own core; in order, the first one is all there is.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Reference {
    is_ordered: bool,
    is_open: bool,
    queues: Vec<VecDeque<u8>>,
}

impl State for Reference {
    type Step = Step;

    fn take(&mut self, thread: usize, step: &Step) -> bool {
        let own = if self.is_ordered { 0 } else { thread };
        match step {
            Step::Sent(_, Err(SocketError::Refused)) => !self.is_open,
            Step::Sent(_, Err(SocketError::WouldBlock)) => self.is_open && self.queues[own].len() == SLOT_COUNT,
            Step::Sent(message, Ok(())) => {
                let has_room = self.is_open && self.queues[own].len() < SLOT_COUNT;
                self.queues[own].push_back(*message);
                has_room
            }
            Step::Received(Err(SocketError::WouldBlock)) => self.queues.iter().all(VecDeque::is_empty),
            Step::Received(Ok(message)) => {
                let holder = self.queues.iter_mut().find(|queue| queue.front() == Some(message));
                holder.is_some_and(|queue| queue.pop_front().is_some())
            }
            Step::Closed => std::mem::replace(&mut self.is_open, false),
            Step::Sent(_, Err(_)) | Step::Received(Err(_)) => false,
        }
    }
}

/// Whether messages are ordered, what each thread does, and whether a message of the last one's core waits from the beginning.
type Plan = (bool, Vec<Vec<Operation>>, bool);

const WAITING: u8 = 200;

fn plans(number: u64) -> impl Strategy<Value = Plan> {
    let threads = 2 + number as usize % 2;
    let operation = prop_oneof![
        5 => any::<u8>().prop_map(Operation::Send),
        5 => Just(Operation::Receive),
    ];
    let plan = (any::<bool>(), vec(vec(operation, 1..6), threads), 0..4_usize, any::<bool>());
    plan.prop_map(|(is_ordered, mut plan, closer, one_waits)| {
        let messages = plan.iter_mut().flatten().filter_map(|operation| match operation {
            Operation::Send(message) => Some(message),
            _ => None,
        });
        messages.zip(1..).for_each(|(message, number)| *message = number);
        if let Some(operations) = plan.get_mut(closer) {
            // Who closes makes no other calls through the handle afterwards; nobody receives from then on.
            operations.push(Operation::Close);
            plan.iter_mut().flatten().for_each(|operation| {
                if matches!(operation, Operation::Receive) {
                    *operation = Operation::Send(99);
                }
            });
        }
        (is_ordered, plan, one_waits)
    })
}

fn check(number: u64, (is_ordered, plan, one_waits): &Plan) {
    let instance = Instance::new(4, 64);
    let sockets = instance.sockets();
    let coordinator = instance.core(3);
    instance.settle(&coordinator);
    let before = instance.world().live_bytes();
    let order = if *is_ordered { Order::Ordered } else { Order::Unordered };
    let [one, other] = sockets.pair(&coordinator, order).unwrap();
    let handle = Mutex::new(Some(other));
    let last = plan.len() - 1;
    if *one_waits {
        let message = [WAITING; 3];
        sockets.send(&instance.core(last), &one, &message[..1 + WAITING as usize % 3], &Spin).unwrap();
    }
    // The handle is closed by a plan of which nobody receives.
    let receiver = lock(&handle).as_ref().map(socket_of).unwrap();
    let made = play(plan, |thread| {
        let core = instance.core(thread);
        let (one, receiver, handle) = (&one, &receiver, &handle);
        move |operation: &Operation| match operation {
            Operation::Send(message) => {
                Step::Sent(*message, sockets.send(&core, one, &[*message; 3][..1 + *message as usize % 3], &Spin))
            }
            Operation::Receive => {
                let mut bytes = [0; 4];
                Step::Received(sockets.receive(&core, receiver, &mut bytes, &Spin).map(|received| {
                    let length = received.length_bytes;
                    let whole = bytes[..length.min(4)].iter().all(|byte| *byte == bytes[0]);
                    let right = whole && length == 1 + bytes[0] as usize % 3;
                    if right { bytes[0] } else { 0 }
                }))
            }
            Operation::Close => {
                let socket = lock(handle).take().expect("closed once");
                sockets.close(&core, socket, &Spin);
                Step::Closed
            }
        }
    });
    let history: Vec<Vec<Event<Step>>> = made
        .iter()
        .map(|made| {
            let event = |made: &Made<Operation, Step>| Event {
                steps: vec![made.outcome.clone()],
                began: made.began,
                ended: made.ended,
            };
            made.iter().map(event).collect()
        })
        .collect();
    let mut start = Reference { is_ordered: *is_ordered, is_open: true, queues: vec![VecDeque::new(); plan.len()] };
    let own = if *is_ordered { 0 } else { last };
    start.queues[own].extend(one_waits.then_some(WAITING));
    expect_order(number, &history, &start, || told(&made));
    sockets.close(&coordinator, one, &Spin);
    if let Some(other) = lock(&handle).take() {
        sockets.close(&coordinator, other, &Spin);
    }
    instance.settle(&coordinator);
    assert_eq!(instance.world().live_bytes(), before, "memory that stays");
    assert_eq!(instance.pool().free_pages(), instance.pool().total(), "pages that stay");
}

/// The same socket once more: it is closed through the first handle.
fn socket_of(socket: &Socket) -> Socket {
    // SAFETY: the socket is open, and of both handles one is closed.
    unsafe { Socket::from_address(socket.address()) }.expect("not zero")
}

#[test]
fn calls_have_an_order() {
    explore(rounds(300), plans, check);
}

#[test]
fn so_it_is_where_a_thread_is_overtaken_at_any_access() {
    overtake(history::plans(10), plans, check);
}

/// A test that cannot fail proves nothing.
#[cfg(shuttle)]
mod planted {
    use super::*;

    fn caught(fault: &'static str) {
        sync::mutant::must_be_caught(fault, || explore(0..20_000, plans, check));
    }

    #[test]
    fn slots_of_another_turn() {
        caught("sockets: a slot is looked at whosever turn it is");
    }

    #[test]
    fn early_tellers() {
        caught("sockets: a message is announced before it is there");
    }

    #[test]
    fn receivers_side_by_side() {
        caught("sockets: receivers do not wait for each other");
    }

    /// A message comes into a ring that the first thread has left, before another is taken from the one where it goes next.
    #[test]
    fn one_look_at_all_rings() {
        let plan = vec![vec![Operation::Receive], vec![Operation::Send(1)], vec![Operation::Receive]];
        sync::mutant::must_be_caught("sockets: rings are looked at once", || {
            history::repeat(40_000, (false, plan, true), check);
        });
    }
}
