//! What one domain of several does: it asks all others, serves them, and changes what they keep.
//!
//! Each domain has a number that only rises, and answers with it. A domain that was answered keeps it, and is notified when it has
//! changed: once the notices are sent, a domain that looks at them keeps nothing older.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use messages::{Asked, Came, Class, DomainNumber, Endpoint, NOTICE_FORGET_ALL, SendError, Ticket, Transport};

/// The state of a domain, driven by [`Talker::step`].
pub struct Talker<T> {
    pub endpoint: Endpoint<T>,
    value: u64,
    /// By domain: the number that it was answered, while it keeps it.
    kept: Vec<Option<u64>>,
    tickets: Vec<(DomainNumber, u64, Ticket)>,
    asked: u64,
    pub answered: u64,
    seed: u64,
    pub served: u64,
    truth: Truth,
}

/// By domain: the number of which all others have been notified.
pub type Truth = Arc<[AtomicU64]>;

pub fn truth(domain_count: usize) -> Truth {
    (0..domain_count).map(|_| AtomicU64::new(0)).collect()
}

fn bytes_of(number: u64, length: usize) -> Vec<u8> {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.extend((0..length).map(|index| (number as usize * 31 + index) as u8));
    bytes
}

impl<T: Transport> Talker<T> {
    pub fn new(transport: T, truth: &Truth) -> Talker<T> {
        let count = transport.domain_count();
        let seed = 77 + u64::from(transport.own().0);
        let endpoint = Endpoint::new(transport);
        Talker {
            endpoint,
            value: 1,
            kept: vec![None; count],
            tickets: Vec::new(),
            asked: 0,
            answered: 0,
            seed,
            served: 0,
            truth: Arc::clone(truth),
        }
    }

    fn draw(&mut self, limit: usize) -> usize {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) as usize % limit
    }

    fn others(&self) -> impl Iterator<Item = DomainNumber> + use<T> {
        let own = self.endpoint.transport().own();
        (0..self.endpoint.transport().domain_count() as u16).map(DomainNumber).filter(move |domain| *domain != own)
    }

    /// Serves what has come, takes replies and notices, and asks while fewer than `wanted` requests were made.
    pub fn step(&mut self, wanted: u64) {
        let mut bytes = Vec::new();
        loop {
            match self.endpoint.next_message(&mut bytes) {
                Came::Asked(asked) => self.serve(asked, &bytes),
                Came::Reply => {}
                Came::Nothing => break,
            }
        }
        let truth: Vec<u64> = self.truth.iter().map(|number| number.load(Ordering::SeqCst)).collect();
        let is_notified = self.look_at_notices();
        for (kept, truth) in self.kept.iter().zip(truth) {
            assert!(kept.is_none_or(|kept| kept >= truth), "a notice of {truth} is lost: {kept:?} is kept");
        }
        // A reply that was sent before a notice is there by now, and may be older.
        self.take_replies(!is_notified);
        if self.asked < wanted {
            let number = self.asked;
            let all: Vec<DomainNumber> = self.others().collect();
            let (domain, length) = (all[self.draw(all.len())], self.draw(200));
            match self.endpoint.ask(domain, Class::Requests, &bytes_of(number, length), 8 + 8 + 250) {
                Ok(ticket) => {
                    self.tickets.push((domain, number, ticket));
                    self.asked += 1;
                }
                Err(SendError::Full) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
    }

    /// Forgets what notices say; whether there were any.
    fn look_at_notices(&mut self) -> bool {
        let (mut bytes, mut is_notified) = (Vec::new(), false);
        for domain in self.others() {
            while self.endpoint.next_notice(domain, &mut bytes) {
                is_notified = true;
                let kept = &mut self.kept[domain.index()];
                match bytes.as_slice() {
                    [NOTICE_FORGET_ALL] => *kept = None,
                    notice => {
                        let reported = u64::from_le_bytes(notice[..8].try_into().unwrap());
                        *kept = kept.filter(|kept| *kept >= reported);
                    }
                }
            }
        }
        is_notified
    }

    fn take_replies(&mut self, are_kept: bool) {
        for (domain, number, ticket) in std::mem::take(&mut self.tickets) {
            match self.endpoint.take_reply(ticket) {
                None => self.tickets.push((domain, number, ticket)),
                Some(reply) => self.take(domain, number, &reply, are_kept),
            }
        }
    }

    fn serve(&mut self, asked: Asked, request: &[u8]) {
        let number = u64::from_le_bytes(request[..8].try_into().unwrap());
        assert_eq!(request, bytes_of(number, request.len() - 8), "a request's bytes");
        self.served += 1;
        if self.draw(3) == 0 {
            // The number changes: who keeps it hears of it first.
            self.value += 1;
            for domain in self.others() {
                self.endpoint.notify(domain, &self.value.to_le_bytes());
            }
            self.truth[self.endpoint.transport().own().index()].store(self.value, Ordering::SeqCst);
        }
        let mut reply = self.value.to_le_bytes().to_vec();
        reply.extend(bytes_of(number, self.served as usize % 250));
        self.endpoint.reply(asked, &reply).unwrap();
    }

    fn take(&mut self, domain: DomainNumber, number: u64, reply: &[u8], is_kept: bool) {
        let value = u64::from_le_bytes(reply[..8].try_into().unwrap());
        assert_eq!(reply[8..], bytes_of(number, reply.len() - 16), "a reply's bytes");
        if is_kept {
            self.kept[domain.index()] = Some(value);
        }
        self.answered += 1;
    }
}

/// A number that the caller has set.
pub fn number_from_environment(name: &str) -> Option<u64> {
    Some(std::env::var(name).ok()?.parse().expect("a number"))
}

/// When tests of full rings end: after one round, unless `FULL_RINGS_SECONDS` says longer.
pub fn end_of_full_rings() -> Instant {
    Instant::now() + Duration::from_secs(number_from_environment("FULL_RINGS_SECONDS").unwrap_or(0))
}

/// A thread for each domain, until each has `count` answers.
pub fn talk_in_threads<T: Transport>(domain_count: usize, count: u64, transport: impl Fn(usize) -> T + Sync) {
    let (done, truth) = (AtomicU64::new(0), truth(domain_count));
    std::thread::scope(|scope| {
        for number in 0..domain_count {
            let (done, truth, transport) = (&done, &truth, &transport);
            scope.spawn(move || {
                let mut talker = Talker::new(transport(number), truth);
                let mut is_done = false;
                while done.load(Ordering::SeqCst) < domain_count as u64 {
                    talker.step(count);
                    if talker.answered == count && !is_done {
                        is_done = true;
                        done.fetch_add(1, Ordering::SeqCst);
                    }
                    talker.endpoint.transport().wait();
                }
            });
        }
    });
}
