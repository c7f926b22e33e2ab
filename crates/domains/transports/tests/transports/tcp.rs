//! TCP between threads, and what a peer must not do.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};

use messages::{Class, DomainNumber, Transport};
use transports::{Tcp, TcpError};

use crate::talk::talk_in_threads;

const LINES: [usize; 4] = [2, 8, 4, 6];

fn listeners(count: usize) -> (Vec<TcpListener>, Vec<SocketAddr>) {
    let listeners: Vec<_> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let addresses = listeners.iter().map(|listener| listener.local_addr().unwrap()).collect();
    (listeners, addresses)
}

#[cfg(not(shuttle))]
#[test]
fn threads_talk_over_tcp() {
    let (listeners, addresses) = listeners(3);
    talk_in_threads(3, 300, |number| {
        Tcp::connect(DomainNumber(number as u16), &listeners[number], &addresses, LINES).unwrap()
    });
}

/// A domain with one peer, which the test plays.
fn played() -> (Tcp, TcpStream) {
    let (listeners, addresses) = listeners(2);
    let mut peer = TcpStream::connect(addresses[0]).unwrap();
    peer.write_all(b"domains1\x01\x00").unwrap();
    (Tcp::connect(DomainNumber(0), &listeners[0], &addresses, LINES).unwrap(), peer)
}

/// Sends bytes as the peer, and looks until something has come or gone wrong.
fn after(bytes: &[u8]) -> Result<Vec<u8>, TcpError> {
    let (domain, mut peer) = played();
    peer.write_all(bytes).unwrap();
    let mut message = Vec::new();
    loop {
        if domain.receive_from(DomainNumber(1), Class::Requests, &mut message) {
            return Ok(message);
        }
        if let Some(error) = domain.take_error() {
            return Err(error);
        }
        domain.wait();
    }
}

fn frame(class: u8, taken: u32, message: &[u8]) -> Vec<u8> {
    let mut frame = ((1 + 16 + 8 * 4 + message.len()) as u32).to_le_bytes().to_vec();
    frame.push(class);
    frame.extend([taken, 0, 0, 0].iter().flat_map(|number| number.to_le_bytes()));
    frame.extend([0; 32]);
    frame.extend(message);
    frame
}

#[test]
fn what_no_domain_of_ours_says_ends_the_connection() {
    assert_eq!(after(&frame(3, 0, b"hello")).unwrap(), b"hello");
    let wrong = [
        frame(4, 0, b"a class that is not"),
        frame(3, 1, b"more is taken than was sent"),
        frame(0xff, 0, b"bytes where there are none"),
        frame(3, 0, &[0; 600]),
        vec![0; 64],
        vec![0xff; 64],
    ];
    for bytes in wrong {
        assert!(matches!(after(&bytes), Err(TcpError::Damaged(DomainNumber(1)))), "{bytes:?}");
    }
    let (domain, peer) = played();
    drop(peer);
    while domain.receive(&[Class::Requests], &mut Vec::new()).is_none() {
        if let Some(error) = domain.take_error() {
            assert_eq!(error.to_string(), "domain 1 has ended its connection: join again once it is there");
            return;
        }
    }
}

#[test]
fn a_stranger_is_refused() {
    for greeting in [&b"domains2\x01\x00"[..], b"domains1\x00\x00", b"domains1\x07\x00", b"GET / HTTP/1.1"] {
        let (listeners, addresses) = listeners(2);
        TcpStream::connect(addresses[0]).unwrap().write_all(greeting).unwrap();
        let refused = Tcp::connect(DomainNumber(0), &listeners[0], &addresses, LINES);
        assert!(matches!(refused, Err(TcpError::Stranger)));
    }
}

#[test]
fn a_message_waits() {
    a_message_waits_for_those_that_its_sender_knew_of();
}

pub fn a_message_waits_for_those_that_its_sender_knew_of() {
    let (listeners, addresses) = listeners(3);
    let mut peers: Vec<TcpStream> = (1..3_u16)
        .map(|number| {
            let mut peer = TcpStream::connect(addresses[0]).unwrap();
            peer.write_all(b"domains1").unwrap();
            peer.write_all(&number.to_le_bytes()).unwrap();
            peer
        })
        .collect();
    let domain = Tcp::connect(DomainNumber(0), &listeners[0], &addresses, LINES).unwrap();
    let frame = |from_one: u64, message: &[u8]| {
        let mut known = [0_u64; 9];
        known[3] = from_one;
        let mut frame = ((1 + 16 + 8 * 9 + message.len()) as u32).to_le_bytes().to_vec();
        frame.push(3);
        frame.extend([0; 16]);
        frame.extend(known.iter().flat_map(|number| number.to_le_bytes()));
        frame.extend(message);
        frame
    };
    // Domain 2 has heard that domain 1 has sent a message here; that is late.
    peers[1].write_all(&frame(1, b"second")).unwrap();
    let mut message = Vec::new();
    for _ in 0..50 {
        assert_eq!(domain.receive(&[Class::Requests], &mut message), None);
        domain.wait();
    }
    peers[0].write_all(&frame(0, b"first")).unwrap();
    let mut received = Vec::new();
    while received.len() < 2 {
        if domain.receive(&[Class::Requests], &mut message).is_some() {
            received.push(String::from_utf8(message.clone()).unwrap());
        }
    }
    received.sort();
    assert_eq!(received, ["first", "second"]);
}
