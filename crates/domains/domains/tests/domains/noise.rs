//! Messages that no domain of ours sends: an owner answers, or refuses, and goes on.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use call_language::Random;
use domains::{Decisions, Domain, Limits, OneThread, OwnLines, OwnPages, Process};
use messages::simulated::{Disorder, Latencies, Network, RingSizes, Served, Simulated};
use messages::{Class, DomainNumber, Endpoint};
use posix_calls::data::{self, DescriptorOptions};
use posix_calls::{Credentials, OpenFlags, Start, attributes};

use crate::random::number_from_environment;

/// The owner, which serves while the other end waits.
#[derive(Default)]
struct Owner(RefCell<Weak<Domain<Simulated<'static>>>>);

impl Served for Owner {
    fn serve_others(&self, _: DomainNumber) {
        if let Some(owner) = self.0.borrow().upgrade() {
            while owner.serve() {}
        }
    }
}

/// A message of fields as there are some: numbers, objects that are there or not, bytes.
fn any_message(random: &mut Random) -> Vec<u8> {
    // Of each kind, and of two that there are not.
    let mut message = vec![random.below(52) as u8];
    for _ in 0..random.below(7) {
        match random.below(9) {
            0..=3 => {
                let home = [0, 0, 0, 1, 2, 255, 0xffff][random.below(7)];
                let number = [1, 1, 2, 3, 4, 5, 6, 7, 0xffff][random.below(9)];
                message.extend((home << 48 | number as u64).to_le_bytes());
            }
            4 => message.push(random.below(3) as u8),
            5 => message.extend((random.below(5000) as u32).to_le_bytes()),
            6 => message.extend([0, 1, 4096, u64::MAX, u64::MAX >> 1][random.below(5)].to_le_bytes()),
            7 => {
                let name: &[u8] = [&b"a"[..], b"b", b"", &[0; 300]][random.below(4)];
                message.extend((name.len() as u32).to_le_bytes());
                message.extend(name);
            }
            _ => message.extend([0; 10]),
        }
    }
    message
}

fn hear(seed: u64) {
    let random = &mut Random::new(seed);
    let rings = RingSizes::default();
    let network = Rc::new(Network::new(2, Latencies::NONE, rings, Disorder::default()));
    let others = Rc::new(Owner::default());
    let end = |number| Simulated::outside(Rc::clone(&network), DomainNumber(number), others.clone());
    let lines: Rc<dyn Decisions> = Rc::new(OwnLines::new(2));
    let limits = Limits { split_above: 2, ..Limits::default() };
    let owner = Rc::new(Domain::new(end(0), lines, || 0, limits));
    owner.use_pages(Rc::new(OwnPages::new(2, 4)));
    others.0.replace(Rc::downgrade(&owner));
    let process = Process::new(Credentials::SUPERUSER);
    let flags = OpenFlags::CREATE | OpenFlags::READ | OpenFlags::WRITE;
    let fd = |name: &[u8]| {
        let options = DescriptorOptions::PLAIN;
        owner.call(&process, |call| data::open(call, Start::WorkingDirectory, name, flags, 0o600, options)).unwrap()
    };
    fd(b"a");
    owner.call(&process, |call| data::pipe(call, DescriptorOptions::PLAIN)).unwrap();
    let noisy = Endpoint::new(end(1));
    for _ in 0..200 {
        let class = random.pick(&[Class::Requests, Class::Prepares]);
        match random.below(4) {
            0 => noisy.post(DomainNumber(0), class, &any_message(random)),
            1 => noisy.notify(DomainNumber(0), &any_message(random)),
            _ => {
                let _ = noisy.ask(DomainNumber(0), class, &any_message(random), 80);
            }
        }
        while owner.serve() {}
    }
    // It may have done what it was asked to, as any owner does; calls go on.
    let _ = owner.begin(&process);
    for number in process.descriptors() {
        let _ = owner.call(&process, |call| data::read(call, number, &mut [0; 10]));
    }
}

#[test]
fn what_no_domain_says_is_answered_or_refused() {
    let rounds = number_from_environment("DOMAINS_CALLS").unwrap_or(3_000) / 10;
    (0..rounds).for_each(hear);
}

#[test]
fn a_process_that_names_owners_that_are_not_arrives_and_finds_nothing() {
    let file_system = OneThread::new(2, Limits::default(), || 0);
    let domain = file_system.domain(1);
    let process = Process::new(Credentials::SUPERUSER);
    let flags = OpenFlags::CREATE | OpenFlags::READ;
    let open = |domain: &domains::OfOneThread, process: &Process| {
        let options = DescriptorOptions::PLAIN;
        domain.call(process, |call| data::open(call, Start::WorkingDirectory, b"a", flags, 0o600, options))
    };
    open(&domain, &process).unwrap();
    let sent = process.fork(&domain).unwrap().leave(&domain).unwrap();
    for place in 0..sent.len() {
        let mut wrong = sent.clone();
        wrong[place] ^= 0x81;
        let Ok(arrived) = Process::arrive(&domain, &wrong) else { continue };
        for number in arrived.descriptors() {
            let _ = domain.call(&arrived, |call| data::read(call, number, &mut [0; 10]));
        }
        let _ = domain.call(&arrived, |call| {
            attributes::stat(
                call,
                Start::WorkingDirectory,
                b"a",
                posix_calls::Follow::Symlinks,
                posix_calls::Fields::ALL,
            )
        });
    }
}
