//! What each call does, alone: results, errors, and that nothing is left behind.

mod support;

use std::collections::VecDeque;

use proptest::prelude::*;
use sockets::{MAX_MESSAGE_BYTES, MAX_NAME_BYTES, Name, Order, Received, SLOT_COUNT, Socket, SocketError};
use support::Instance;
use sync::Spin;

const BOTH: [Order; 2] = [Order::Ordered, Order::Unordered];

fn name(text: &str) -> Name {
    Name::new(text.as_bytes()).expect("a name")
}

#[test]
fn a_pair_carries_messages_both_ways_whole_and_in_order() {
    let instance = Instance::new(2, 64);
    let (sockets, core) = (instance.sockets(), instance.core(0));
    for order in BOTH {
        let [one, other] = sockets.pair(&core, order).unwrap();
        let mut bytes = [0; 16];
        for message in [b"first".as_slice(), b"", b"third"] {
            sockets.send(&core, &one, message, &Spin).unwrap();
        }
        for message in [b"first".as_slice(), b"", b"third"] {
            let received = sockets.receive(&core, &other, &mut bytes, &Spin).unwrap();
            assert_eq!((received.length_bytes, received.from), (message.len(), Name::NONE));
            assert_eq!(&bytes[..message.len()], message);
        }
        assert_eq!(sockets.receive(&core, &other, &mut bytes, &Spin), Err(SocketError::WouldBlock));
        sockets.send(&core, &other, b"back", &Spin).unwrap();
        assert_eq!(sockets.receive(&core, &one, &mut bytes, &Spin).unwrap().length_bytes, 4);
        sockets.close(&core, one, &Spin);
        assert_eq!(sockets.send(&core, &other, b"x", &Spin), Err(SocketError::Refused));
        assert_eq!(sockets.receive(&core, &other, &mut bytes, &Spin), Err(SocketError::WouldBlock));
        sockets.close(&core, other, &Spin);
    }
}

#[test]
fn what_does_not_fit_the_buffer_is_lost_and_its_length_told() {
    let instance = Instance::new(1, 64);
    let (sockets, core) = (instance.sockets(), instance.core(0));
    let [one, other] = sockets.pair(&core, Order::Ordered).unwrap();
    let long = [7; MAX_MESSAGE_BYTES];
    sockets.send(&core, &one, &long, &Spin).unwrap();
    sockets.send(&core, &one, b"next", &Spin).unwrap();
    let too_long = [7; MAX_MESSAGE_BYTES + 1];
    assert_eq!(sockets.send(&core, &one, &too_long, &Spin), Err(SocketError::TooLong));
    let mut bytes = [0; 4];
    let received = sockets.receive(&core, &other, &mut bytes, &Spin).unwrap();
    assert_eq!((received.length_bytes, bytes), (MAX_MESSAGE_BYTES, [7; 4]));
    assert_eq!(sockets.receive(&core, &other, &mut bytes, &Spin).unwrap().length_bytes, 4);
    assert_eq!(&bytes, b"next");
    [one, other].into_iter().for_each(|socket| sockets.close(&core, socket, &Spin));
}

#[test]
fn a_full_ring_refuses_and_that_of_another_core_does_not() {
    let instance = Instance::new(2, 64);
    let sockets = instance.sockets();
    let cores = [instance.core(0), instance.core(1)];
    for order in BOTH {
        let [one, other] = sockets.pair(&cores[0], order).unwrap();
        for number in 0..SLOT_COUNT {
            sockets.send(&cores[0], &one, &[number as u8], &Spin).unwrap();
        }
        assert_eq!(sockets.send(&cores[0], &one, b"x", &Spin), Err(SocketError::WouldBlock));
        let elsewhere = sockets.send(&cores[1], &one, b"x", &Spin);
        assert_eq!(elsewhere.is_ok(), order == Order::Unordered);
        let mut bytes = [0; 1];
        sockets.receive(&cores[0], &other, &mut bytes, &Spin).unwrap();
        assert_eq!(bytes, [0], "from the own ring, in order");
        sockets.send(&cores[0], &one, b"y", &Spin).unwrap();
        [one, other].into_iter().for_each(|socket| sockets.close(&cores[0], socket, &Spin));
    }
}

#[test]
fn messages_of_a_core_that_went_off_line_are_found() {
    let instance = Instance::new(3, 64);
    let sockets = instance.sockets();
    let core = instance.core(0);
    let [one, other] = sockets.pair(&core, Order::Unordered).unwrap();
    for number in [1, 2] {
        let other_core = instance.core(number);
        sockets.send(&other_core, &one, &[number as u8], &Spin).unwrap();
    }
    let mut found = Vec::new();
    let mut bytes = [0; 1];
    while sockets.receive(&core, &other, &mut bytes, &Spin).is_ok() {
        found.push(bytes[0]);
    }
    assert_eq!(found, [1, 2]);
    [one, other].into_iter().for_each(|socket| sockets.close(&core, socket, &Spin));
}

#[test]
fn names_last_as_long_as_their_sockets() {
    let instance = Instance::new(1, 64);
    let (sockets, core) = (instance.sockets(), instance.core(0));
    let [a, b] = [name("a"), name("b")];
    let [server, client] = [Order::Ordered, Order::Unordered].map(|order| sockets.socket(&core, order).unwrap());
    assert_eq!(sockets.send_to(&core, &client, &a, b"x", &Spin), Err(SocketError::Refused));
    assert_eq!(sockets.send(&core, &client, b"x", &Spin), Err(SocketError::NotConnected));
    sockets.bind(&core, &server, &a, &Spin).unwrap();
    assert_eq!(sockets.bind(&core, &server, &b, &Spin), Err(SocketError::HasName));
    assert_eq!(sockets.bind(&core, &client, &a, &Spin), Err(SocketError::NameInUse));
    assert_eq!(sockets.bind(&core, &client, &Name::NONE, &Spin), Err(SocketError::NotConnected));
    sockets.bind(&core, &client, &b, &Spin).unwrap();
    sockets.send_to(&core, &client, &a, b"question", &Spin).unwrap();
    let mut bytes = [0; 16];
    let received = sockets.receive(&core, &server, &mut bytes, &Spin).unwrap();
    assert_eq!(received, Received { length_bytes: 8, from: b });
    sockets.send_to(&core, &server, &received.from, b"answer", &Spin).unwrap();
    assert_eq!(sockets.receive(&core, &client, &mut bytes, &Spin).unwrap().from, a);
    sockets.close(&core, server, &Spin);
    assert!(!sockets.is_bound(&core, &a) && sockets.is_bound(&core, &b));
    assert_eq!(sockets.send_to(&core, &client, &a, b"x", &Spin), Err(SocketError::Refused));
    sockets.close(&core, client, &Spin);
    let longest = "n".repeat(MAX_NAME_BYTES);
    assert!(Name::new(longest.as_bytes()).is_some());
    assert!(
        Name::new(&[0; MAX_NAME_BYTES + 1]).is_none() && Name::new(b"").is_none() && Name::new(&[0; 300]).is_none()
    );
}

#[test]
fn a_named_socket_of_a_pair_hears_its_peer_only() {
    let instance = Instance::new(1, 64);
    let (sockets, core) = (instance.sockets(), instance.core(0));
    let [one, other] = sockets.pair(&core, Order::Ordered).unwrap();
    let stranger = sockets.socket(&core, Order::Ordered).unwrap();
    sockets.bind(&core, &one, &name("one"), &Spin).unwrap();
    assert_eq!(sockets.send_to(&core, &stranger, &name("one"), b"x", &Spin), Err(SocketError::NotPermitted));
    sockets.send_to(&core, &other, &name("one"), b"x", &Spin).unwrap();
    [one, other, stranger].into_iter().for_each(|socket| sockets.close(&core, socket, &Spin));
}

#[test]
fn nothing_stays_when_all_sockets_are_closed() {
    let instance = Instance::new(3, 64);
    let (sockets, core) = (instance.sockets(), instance.core(0));
    instance.settle(&core);
    let before = (instance.world().live_bytes(), instance.pool().free_pages());
    for order in BOTH {
        let [one, other] = sockets.pair(&core, order).unwrap();
        let named = sockets.socket(&core, order).unwrap();
        sockets.bind(&core, &named, &name("n"), &Spin).unwrap();
        for number in [0, 1, 2] {
            let mine = (number > 0).then(|| instance.core(number));
            let core = mine.as_ref().unwrap_or(&core);
            sockets.send(core, &one, b"stays", &Spin).unwrap();
            sockets.send_to(core, &one, &name("n"), b"stays", &Spin).unwrap();
        }
        [one, named, other].into_iter().for_each(|socket| sockets.close(&core, socket, &Spin));
        instance.settle(&core);
        assert_eq!((instance.world().live_bytes(), instance.pool().free_pages()), before);
    }
}

#[test]
fn whoever_runs_out_of_memory_is_told_and_nothing_is_sent() {
    let instance = Instance::new(1, 1);
    let (sockets, core) = (instance.sockets(), instance.core(0));
    let [one, other] = sockets.pair(&core, Order::Unordered).unwrap();
    core.fail_allocations_after(Some(0));
    assert_eq!(sockets.send(&core, &one, b"x", &Spin), Err(SocketError::OutOfMemory));
    assert!(sockets.pair(&core, Order::Ordered).is_err() && sockets.socket(&core, Order::Ordered).is_err());
    assert_eq!(sockets.bind(&core, &one, &name("n"), &Spin), Err(SocketError::OutOfMemory));
    core.fail_allocations_after(None);
    sockets.send(&core, &one, b"takes the only page", &Spin).unwrap();
    assert_eq!(sockets.send(&core, &one, b"x", &Spin), Err(SocketError::OutOfMemory));
    sockets.send(&core, &one, b"", &Spin).unwrap();
    let mut bytes = [0; 64];
    let lengths = [19, 0].map(|_| sockets.receive(&core, &other, &mut bytes, &Spin).unwrap().length_bytes);
    assert_eq!(lengths, [19, 0]);
    for fail_after in 0..4 {
        core.fail_allocations_after(Some(fail_after));
        if let Ok([one, other]) = sockets.pair(&core, Order::Ordered) {
            [one, other].into_iter().for_each(|socket| sockets.close(&core, socket, &Spin));
        }
    }
    core.fail_allocations_after(None);
    [one, other].into_iter().for_each(|socket| sockets.close(&core, socket, &Spin));
}

#[derive(Clone, Debug)]
enum Step {
    Send { core: usize, length: usize },
    Receive { core: usize },
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..3_usize, 0..40_usize).prop_map(|(core, length)| Step::Send { core, length }),
        (0..3_usize).prop_map(|core| Step::Receive { core }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Against one queue, or one for each core, of which the receiver's own comes first.
    #[test]
    fn a_pair_does_what_queues_do(is_ordered: bool, steps in proptest::collection::vec(any_step(), 1..200)) {
        let instance = Instance::new(3, 128);
        let sockets = instance.sockets();
        let cores = [0, 1, 2].map(|number| instance.core(number));
        let order = BOTH[usize::from(!is_ordered)];
        let [one, other]: [Socket; 2] = sockets.pair(&cores[0], order).unwrap();
        let mut queues: [VecDeque<Vec<u8>>; 3] = Default::default();
        let queue_of = |core: usize| if is_ordered { 0 } else { core };
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Send { core, length } => {
                    let message = vec![number as u8; length];
                    let queue = &mut queues[queue_of(core)];
                    let sent = sockets.send(&cores[core], &one, &message, &Spin);
                    if queue.len() == SLOT_COUNT {
                        prop_assert_eq!(sent, Err(SocketError::WouldBlock));
                    } else {
                        prop_assert_eq!(sent, Ok(()));
                        queue.push_back(message);
                    }
                }
                Step::Receive { core } => {
                    let own = queue_of(core);
                    let expected = (0..3).find_map(|further| queues[(own + further) % 3].pop_front());
                    let mut bytes = [0; 64];
                    let received = sockets.receive(&cores[core], &other, &mut bytes, &Spin);
                    prop_assert_eq!(
                        received.map(|received| bytes[..received.length_bytes].to_vec()),
                        expected.ok_or(SocketError::WouldBlock)
                    );
                }
            }
        }
        [one, other].into_iter().for_each(|socket| sockets.close(&cores[0], socket, &Spin));
    }
}

#[test]
fn each_error_says_something_else() {
    use SocketError::{HasName, NameInUse, NotConnected, NotPermitted, OutOfMemory, Refused, TooLong, WouldBlock};
    let all = [WouldBlock, Refused, NotConnected, NameInUse, HasName, NotPermitted, TooLong, OutOfMemory];
    let texts: std::collections::BTreeSet<String> = all.iter().map(SocketError::to_string).collect();
    assert_eq!(texts.len(), all.len());
    assert!(texts.iter().all(|text| text.len() > 10), "{texts:?}");
    assert!(TooLong.to_string().contains(&MAX_MESSAGE_BYTES.to_string()));
}
