//! Accounts that lose no money: each coin is an item, an account is a list, a payment moves a coin. An auditor who looks
//! into two accounts at one moment finds every coin in exactly one of them.
//!
//! `cargo run --release -p olf --example coins`

use std::sync::atomic::{AtomicBool, Ordering};

use olf::{Arc, Domain, Limits, Link, Sorted, Stop, links};

/// One unit of money.
pub struct Coin {
    number: u32,
    account: Link,
}

links! {
    /// Coins by number.
    pub InAccount: Coin { link: account, key: number as u32 }
}

const COINS: u32 = 10;

/// Two payers move all coins to and fro, so often each, while an auditor looks; returns how many audits there were.
///
/// # Panics
/// If a coin is in no account, or in both.
pub fn pay_and_audit(payments: u32) -> u64 {
    let domain = Domain::with(Limits { threads: 4, lists: 2 }).expect("a domain");
    let accounts = [0, 1].map(|_| Sorted::<InAccount>::new(&domain).expect("a list"));
    let here = domain.enter().expect("a thread");
    for number in 0..COINS {
        let coin = Arc::new(&domain, Coin { number, account: Link::new() });
        accounts[0].insert(&here, coin).expect("a new coin");
    }
    let ends = AtomicBool::new(false);
    let audits = std::thread::scope(|scope| {
        let auditor = scope.spawn(|| {
            let here = domain.enter().expect("a thread");
            let mut audits = 0;
            while !ends.load(Ordering::Relaxed) {
                for coin in 0..COINS {
                    let places = here.atomically(|a| {
                        Ok::<_, Stop>([a.contains(&accounts[0], &coin)?, a.contains(&accounts[1], &coin)?])
                    });
                    let [one, two] = places.expect("two looks");
                    assert!(one != two, "coin {coin} is in {} accounts", u8::from(one) + u8::from(two));
                    audits += 1;
                }
            }
            audits
        });
        let pay = |from: usize| {
            let here = domain.enter().expect("a thread");
            for payment in 0..payments {
                // Somebody else may have been quicker, or the coin is on its way back: then nothing is paid.
                let _ = accounts[from].move_to(&accounts[1 - from], &here, &(payment % COINS));
            }
        };
        let payers = [0, 1].map(|from| scope.spawn(move || pay(from)));
        payers.into_iter().for_each(|payer| payer.join().expect("a payer"));
        ends.store(true, Ordering::Relaxed);
        auditor.join().expect("an auditor")
    });
    let mut found = 0;
    accounts.iter().for_each(|account| account.for_each(&here, |_| found += 1));
    assert_eq!(found, COINS, "coins in the end");
    audits
}

#[allow(dead_code, reason = "the tests call the above")]
fn main() {
    println!("{} audits, all coins are there", pay_and_audit(100_000));
}
