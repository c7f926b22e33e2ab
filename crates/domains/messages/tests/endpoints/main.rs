//! Endpoints over the simulated transport: order, back-pressure, reserved replies, notices, virtual time.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use messages::simulated::{Disorder, Latencies, Network, RingSizes, Served, Simulated, Stall, simulate};
use messages::{Asked, Came, Class, DomainNumber, Endpoint, NOTICE_FORGET_ALL, SendError, Transport};

#[cfg(fuzzing)]
mod planted;

/// No one to let serve.
struct Nobody;

impl Served for Nobody {
    fn serve_others(&self, _: DomainNumber) {}
}

fn pair(sizes: RingSizes) -> [Endpoint<Simulated<'static>>; 2] {
    let network = Rc::new(Network::new(2, Latencies::NONE, sizes, Disorder::default()));
    [0, 1].map(|number| Endpoint::new(Simulated::outside(Rc::clone(&network), DomainNumber(number), Rc::new(Nobody))))
}

/// Something that is asked; replies that come before it are kept.
fn next_request<T: Transport>(endpoint: &Endpoint<T>, request: &mut Vec<u8>) -> Option<Asked> {
    loop {
        match endpoint.next_message(request) {
            Came::Asked(asked) => return Some(asked),
            Came::Reply => {}
            Came::Nothing => return None,
        }
    }
}

const FIRST: DomainNumber = DomainNumber(0);
const SECOND: DomainNumber = DomainNumber(1);

#[test]
fn replies_come_to_their_requests_in_any_order() {
    let [client, server] = pair(RingSizes::default());
    let tickets = [1_u8, 2, 3].map(|byte| client.ask(SECOND, Class::Requests, &[byte], 8).unwrap());
    let mut request = Vec::new();
    let mut asked = Vec::new();
    while let Some(one) = next_request(&server, &mut request) {
        asked.push((one, request[0]));
    }
    assert_eq!(asked.iter().map(|(_, byte)| *byte).collect::<Vec<_>>(), [1, 2, 3]);
    for (one, byte) in asked.into_iter().rev() {
        server.reply(one, &[byte * 10]).unwrap();
    }
    assert_eq!(tickets.map(|ticket| client.take_reply(ticket)), [Some(vec![10]), Some(vec![20]), Some(vec![30])]);
}

#[test]
fn prepares_go_ahead_of_requests() {
    let [client, server] = pair(RingSizes::default());
    let _ = client.ask(SECOND, Class::Requests, b"r", 8).unwrap();
    let _ = client.ask(SECOND, Class::Prepares, b"p", 8).unwrap();
    let mut request = Vec::new();
    next_request(&server, &mut request).unwrap();
    assert_eq!(request, b"p");
}

/// A reply always finds room, as what could not be answered is not asked.
pub fn ask_more_than_can_be_answered() {
    let [client, server] = pair(RingSizes([4, 4, 64, 64]));
    let mut tickets = Vec::new();
    let refusal = loop {
        match client.ask(SECOND, Class::Requests, b"?", 100) {
            Ok(ticket) => tickets.push(ticket),
            Err(why) => break why,
        }
    };
    assert_eq!(refusal, SendError::Full);
    let mut request = Vec::new();
    while let Some(asked) = next_request(&server, &mut request) {
        server.reply(asked, &[7; 100]).expect("its place was reserved");
    }
    assert!(tickets.iter().all(|ticket| client.take_reply(*ticket) == Some(vec![7; 100])));
    assert!(client.ask(SECOND, Class::Requests, b"?", 100).is_ok(), "places are free again");
    assert_eq!(client.ask(SECOND, Class::Requests, b"?", 1000), Err(SendError::TooLong));
}

/// Who waits for the last words of one that has ended does not wait for those who go on.
#[test]
fn messages_of_one_domain_are_taken_alone() {
    let network = Rc::new(Network::new(3, Latencies::NONE, RingSizes::default(), Disorder::default()));
    let end = |number| Endpoint::new(Simulated::outside(Rc::clone(&network), DomainNumber(number), Rc::new(Nobody)));
    let [server, ended, other] = [0, 1, 2].map(end);
    for (client, class, message) in
        [(&other, Class::Prepares, b"o"), (&ended, Class::Requests, b"r"), (&ended, Class::Prepares, b"p")]
    {
        let _ = client.ask(FIRST, class, message, 8).unwrap();
    }
    let mut message = Vec::new();
    for expected in [b"p", b"r"] {
        assert!(matches!(server.next_message_of(SECOND, &mut message), Came::Asked(asked) if asked.from == SECOND));
        assert_eq!(message, expected);
    }
    assert!(matches!(server.next_message_of(SECOND, &mut message), Came::Nothing));
    assert_eq!(next_request(&server, &mut message).unwrap().from, DomainNumber(2));
}

#[test]
fn a_reply_has_its_place_before_it_is_asked_for() {
    ask_more_than_can_be_answered();
}

/// One that gets too many notices is asked to forget all, and that arrives.
pub fn tell_more_than_there_is_room_for() {
    let [owner, reader] = pair(RingSizes([4, 4, 4, 4]));
    let mut notice = Vec::new();
    for round in 0..5_u8 {
        for number in 0..9 {
            owner.notify(SECOND, &[round, number]);
        }
        let mut seen = Vec::new();
        while reader.next_notice(FIRST, &mut notice) {
            seen.push(notice.clone());
        }
        assert_eq!(seen.len(), 4);
        assert_eq!(seen.last(), Some(&vec![NOTICE_FORGET_ALL]), "the last place is for that");
    }
}

#[test]
fn no_notice_is_lost() {
    tell_more_than_there_is_room_for();
}

#[test]
fn posts_that_find_no_room_come_later_and_in_order() {
    let [client, server] = pair(RingSizes([4, 4, 4, 4]));
    for byte in 0..20 {
        client.post(SECOND, Class::Requests, &[byte]);
    }
    assert_eq!(client.ask(SECOND, Class::Requests, b"last", 8), Err(SendError::Full), "it would overtake posts");
    let (mut request, mut seen) = (Vec::new(), Vec::new());
    while seen.len() < 20 {
        while let Some(asked) = next_request(&server, &mut request) {
            assert!(!asked.wants_reply());
            seen.push(request[0]);
        }
        client.flush();
    }
    assert!(seen.into_iter().eq(0..20));
}

/// Domains that ask each other with full rings all get their answers, at the same times whenever it is repeated.
fn ask_around(domain_count: usize, asks: u64, disorder: Disorder) -> (u64, u64) {
    let latencies = Latencies::of_machine("x86").unwrap();
    let network = Rc::new(Network::new(domain_count, latencies, RingSizes([4, 6, 3, 3]), disorder));
    let answers = Rc::new(Cell::new(0));
    let order = Rc::new(RefCell::new(0_u64));
    let lives: Vec<_> = (0..domain_count)
        .map(|number| {
            let (answers, order) = (Rc::clone(&answers), Rc::clone(&order));
            move |transport: Simulated<'_>| {
                let endpoint = Endpoint::new(transport);
                let serve = || {
                    let mut request = Vec::new();
                    match endpoint.next_message(&mut request) {
                        Came::Asked(asked) => endpoint.reply(asked, &request).is_ok(),
                        Came::Reply => true,
                        Came::Nothing => false,
                    }
                };
                for ask in 0..asks {
                    let to = DomainNumber(
                        ((number as u64 + 1 + ask % (domain_count as u64 - 1)) % domain_count as u64) as u16,
                    );
                    let message = ask.to_le_bytes();
                    let ticket = loop {
                        match endpoint.ask(to, Class::Requests, &message, 8) {
                            Ok(ticket) => break ticket,
                            Err(SendError::Full) if serve() => {}
                            Err(SendError::Full) => endpoint.transport().wait(),
                            Err(SendError::TooLong) => panic!("eight bytes fit"),
                        }
                    };
                    let reply = loop {
                        if let Some(reply) = endpoint.take_reply(ticket) {
                            break reply;
                        }
                        if !serve() {
                            endpoint.transport().wait();
                        }
                    };
                    assert_eq!(reply, message);
                    answers.set(answers.get() + 1);
                    let mixed = (*order.borrow() ^ number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    order.replace(mixed.rotate_left(7));
                }
                endpoint.transport().end_program();
                while endpoint.transport().has_programs() {
                    if !serve() {
                        endpoint.transport().wait();
                    }
                }
            }
        })
        .collect();
    assert_eq!(simulate(&network, lives), Ok(()));
    assert_eq!(answers.get(), asks * domain_count as u64);
    (network.latest_ns(), order.take())
}

#[test]
fn a_seed_repeats_a_run_and_another_changes_it() {
    let disorder = |seed| Disorder { seed, longer_percent: 50, pause_one_in: 20, longest_pause_ns: 5_000 };
    let first = ask_around(5, 50, disorder(7));
    assert_eq!(ask_around(5, 50, disorder(7)), first);
    assert_ne!(ask_around(5, 50, disorder(8)), first);
}

#[test]
fn all_256_domains_get_their_answers() {
    ask_around(256, 20, Disorder::default());
}

type Life = Box<dyn FnOnce(Simulated<'_>)>;

/// A round trip takes what its file says, step by step.
#[test]
fn a_round_trip_takes_the_time_of_its_steps() {
    let latencies = Latencies::of_machine("cxl").unwrap();
    let network = Rc::new(Network::new(2, latencies, RingSizes::default(), Disorder::default()));
    let took = Rc::new(Cell::new(0));
    let noted = Rc::clone(&took);
    let client = move |transport: Simulated<'_>| {
        let endpoint = Endpoint::new(transport);
        // The other has gone to sleep by then.
        endpoint.transport().pause(100_000);
        let start = endpoint.transport().now_ns();
        let ticket = endpoint.ask(SECOND, Class::Requests, b"?", 8).unwrap();
        while endpoint.take_reply(ticket).is_none() {
            endpoint.transport().wait();
        }
        noted.set(endpoint.transport().now_ns() - start);
        endpoint.transport().end_program();
    };
    let server = |transport: Simulated<'_>| {
        let endpoint = Endpoint::new(transport);
        endpoint.transport().end_program();
        let mut request = Vec::new();
        while endpoint.transport().has_programs() {
            match next_request(&endpoint, &mut request) {
                Some(asked) => endpoint.reply(asked, b"!").unwrap(),
                None => endpoint.transport().wait(),
            }
        }
    };
    let lives: Vec<Life> = vec![Box::new(client), Box::new(server)];
    assert_eq!(simulate(&network, lives), Ok(()));
    let one_way = latencies.send + latencies.send_line + latencies.receive + latencies.receive_line;
    // Who sleeps has looked in vain once more; so has who looked for its reply at once.
    assert!((2 * one_way..=2 * one_way + 4 * latencies.poll).contains(&took.get()), "{} ns", took.get());
}

#[test]
fn who_waits_for_nothing_is_named() {
    let network = Rc::new(Network::new(2, Latencies::NONE, RingSizes::default(), Disorder::default()));
    let life = |transport: Simulated<'_>| transport.wait();
    assert_eq!(simulate(&network, vec![life, life]), Err(Stall { waiting: vec![FIRST, SECOND] }));
}

#[test]
fn files_of_latencies_are_read_or_refused_in_a_line() {
    for (name, _) in messages::simulated::KNOWN_MACHINES {
        assert!(Latencies::of_machine(name).is_ok(), "{name}");
    }
    let (_, good) = messages::simulated::KNOWN_MACHINES[0];
    for (change, expected) in [
        (("drain = 10", ""), "drain is missing: add a line drain = NANOSECONDS"),
        (("drain = 10", "drain = fast"), "drain: expected nanoseconds from 0 to 1000000000, got \"fast\""),
        (("drain = 10", "drain = 10\ndrain = 11"), "drain is there twice: keep one"),
        (("drain = 10", "rain = 10"), "rain: expected one of send, send_line"),
        (("drain = 10", "drain"), "expected NAME = NANOSECONDS, got \"drain\""),
    ] {
        let error = Latencies::parse(&good.replace(change.0, change.1)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let error = Latencies::of_machine("vax").unwrap_err().to_string();
    assert_eq!(error, "machine vax: expected one of x86, cxl, scc, hare");
}
