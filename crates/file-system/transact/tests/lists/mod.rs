//! Lists that change with transactions: both, or none, and calls inside closures of lists.

use std::cell::Cell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use olf::{Arc, Domain, Here, Limits, Link, Part, Sorted, Stop};
use plain::{Plain, Process};
use posix_calls::{Credentials, Errno};
use scalefs::FileSystem;
use transact::{Sharing, Transactional, Transactions};

use super::{errno, exists, files};

struct Order {
    number: u32,
    link: Link,
}

olf::links! {
    ByNumber: Order { link: link, key: number as u32 }
}

type Orders<'d> = [Sorted<'d, ByNumber>; 2];

fn domain(files: &FileSystem) -> Domain {
    Domain::with(Limits { threads: 3, lists: 2 }).unwrap().together_with(files.keeper())
}

/// Orders of these numbers stand in the first list.
fn orders<'d>(domain: &'d Domain, here: &Here<'d>, count: u32) -> Orders<'d> {
    let orders = [0, 1].map(|_| Sorted::new(domain).unwrap());
    for number in 0..count {
        assert!(orders[0].insert(here, Arc::new(domain, Order { number, link: Link::new() })).is_ok());
    }
    orders
}

/// An order goes to the other list.
fn pass<'p, 'd>(here: &'p Here<'d>, orders: &'p Orders<'d>, from: usize, number: u32) -> io::Result<Part<'p, 'd>> {
    let part = here.part(|a| {
        let order = a.remove(&orders[from], &number)?;
        a.insert(&orders[1 - from], order)
    });
    part.map(|(part, ())| part).map_err(|stop: Stop| io::Error::other(stop))
}

/// Whether an order is paid, as a transaction sees it.
fn is_paid<'p, 'd>(here: &'p Here<'d>, orders: &'p Orders<'d>, number: u32) -> (Part<'p, 'd>, bool) {
    let looked = here.part(|a| Ok::<_, Stop>((a.contains(&orders[0], &number)?, a.contains(&orders[1], &number)?)));
    let (part, (is_open, is_paid)) = looked.unwrap();
    assert!(is_open != is_paid, "an order is in one of the lists");
    (part, is_paid)
}

/// Each payment writes a receipt, or takes it back.
#[test]
fn an_order_is_paid_when_there_is_a_receipt() {
    let files = files();
    let domain = domain(&files);
    let here = domain.enter().unwrap();
    let orders = orders(&domain, &here, 3);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let here = domain.enter().unwrap();
            for round in 0..300 {
                let (number, from) = (round % 3, round as usize / 3 % 2);
                let paid = files.transaction(|t| {
                    let receipt = format!("receipt-{number}");
                    if from == 0 {
                        t.create(receipt)?
                    } else {
                        t.remove_file(receipt)?
                    }
                    t.take_part(pass(&here, &orders, from, number)?);
                    Ok(())
                });
                paid.unwrap();
            }
            stop.store(true, Ordering::Relaxed);
        });
        scope.spawn(|| {
            // Calls of the lists alone see each order in one of them.
            let here = domain.enter().unwrap();
            while !stop.load(Ordering::Relaxed) {
                let (one, other) = here.snapshot(|s| (s.count(&orders[0]), s.count(&orders[1])));
                assert_eq!(one + other, 3);
                here.maintain();
            }
        });
        let mut looks = 0;
        while !stop.load(Ordering::Relaxed) || looks == 0 {
            let number = looks % 3;
            let agrees = files.transaction(|t| {
                let has_receipt = t.exists(format!("receipt-{number}"))?;
                let (part, is_paid) = is_paid(&here, &orders, number);
                t.take_part(part);
                Ok(has_receipt == is_paid)
            });
            match agrees {
                Ok(agrees) => assert!(agrees, "a receipt without its payment, or the other way round"),
                Err(error) => assert_eq!(errno(&error), Some(Errno::ECANCELED.number())),
            }
            looks += 1;
        }
    });
    assert_eq!((0..3).filter(|number| orders[1].contains(&here, number)).count(), 0, "an even number of payments");
}

/// What others have changed since the part was made lets the transaction run again; what it has made is then of no account.
#[test]
fn a_part_that_is_stale_lets_the_transaction_run_again() {
    let files = files();
    let domain = domain(&files);
    let (here, other) = (domain.enter().unwrap(), domain.enter().unwrap());
    let orders = orders(&domain, &here, 2);
    let runs = Cell::new(0);
    let outcome = files.transaction(|t| {
        runs.set(runs.get() + 1);
        t.write("receipt", format!("{}", runs.get()))?;
        t.take_part(pass(&here, &orders, 0, 1)?);
        if runs.get() == 1 {
            // Its neighbour goes.
            assert!(orders[0].remove(&other, &0).is_some());
        }
        Ok(())
    });
    outcome.unwrap();
    assert_eq!(runs.get(), 2);
    assert!(orders[1].contains(&here, &1) && !orders[0].contains(&here, &1));
    assert_eq!(files.transaction(|t| t.read("receipt")).unwrap(), b"2");
}

/// Nothing happens, in either store, and every item keeps its counts.
#[test]
fn a_transaction_that_does_not_happen_leaves_the_lists() {
    let files = files();
    let domain = domain(&files);
    let here = domain.enter().unwrap();
    let orders = orders(&domain, &here, 1);
    let refused = files.transaction(|t| {
        t.create("receipt")?;
        t.take_part(pass(&here, &orders, 0, 0)?);
        Err::<(), _>(Errno::EPERM.into())
    });
    assert_eq!(errno(&refused.unwrap_err()), Some(Errno::EPERM.number()));
    let torn = catch_unwind(AssertUnwindSafe(|| {
        files.transaction(|t| -> io::Result<()> {
            t.create("receipt")?;
            t.take_part(pass(&here, &orders, 0, 0)?);
            panic!("in the closure")
        })
    }));
    assert!(torn.is_err());
    assert!(orders[0].contains(&here, &0) && !orders[1].contains(&here, &0) && !exists(&files, "receipt"));
    // A transaction of lists alone.
    files.transaction(|t| pass(&here, &orders, 0, 0).map(|part| t.take_part(part))).unwrap();
    assert!(orders[1].contains(&here, &0));
    let order = orders[1].remove(&here, &0).unwrap();
    assert!(orders[0].insert(&here, order).is_ok(), "it stands nowhere");
}

fn said(torn: Result<impl Sized, Box<dyn std::any::Any + Send>>) -> String {
    let Err(payload) = torn else { panic!("expected a panic") };
    let text = payload.downcast_ref::<String>().cloned();
    text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).into())).expect("a line")
}

/// What cannot be is said in one line, and nothing has happened.
#[test]
fn parts_that_cannot_be_are_refused() {
    let (files, others) = (files(), files());
    let domain = domain(&files);
    let here = domain.enter().unwrap();
    let orders = orders(&domain, &here, 2);
    let torn = catch_unwind(AssertUnwindSafe(|| {
        others.transaction(|t| pass(&here, &orders, 0, 0).map(|part| t.take_part(part)))
    }));
    assert_eq!(said(torn), "expected an operation of the domain's other store, got one of a third");
    let torn = catch_unwind(AssertUnwindSafe(|| {
        files.transaction(|t| {
            t.take_part(pass(&here, &orders, 0, 0)?);
            t.take_part(pass(&here, &orders, 0, 1)?);
            Ok(())
        })
    }));
    assert_eq!(said(torn), "an operation takes one part of a domain: let one closure do all of it");
    let (plain, alone) = (Plain::default(), Domain::with(Limits { threads: 1, lists: 1 }).unwrap());
    let process = Process::new(&plain, Credentials::SUPERUSER);
    let transactions = Transactional::new(Sharing::Alone, || plain.begin(&process));
    let torn = catch_unwind(AssertUnwindSafe(|| {
        transactions.transaction(|t| {
            t.take_part(pass(&here, &orders, 0, 0).unwrap());
            Ok(())
        })
    }));
    let expected =
        "expected a transaction of the file system that decides for the lists, too; got one over another kind";
    assert_eq!(said(torn), expected);
    let torn = catch_unwind(AssertUnwindSafe(|| _ = alone.enter().unwrap().part(|_| Ok::<_, Stop>(()))));
    assert_eq!(said(torn), "the domain has no other store; give it one by `Domain::together_with`");
    assert!([0, 1].iter().all(|number| orders[0].contains(&here, number) && !orders[1].contains(&here, number)));
    orders[0].move_to(&orders[1], &here, &0).unwrap();
}
