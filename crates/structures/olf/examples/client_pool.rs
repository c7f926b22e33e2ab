//! A pool of connections: `idle` by host, and who waits for one. To take a connection, or else to wait, is one decision, and
//! so is to hand one on, or else to put it back: there is never an idle connection of a host for which somebody waits.
//!
//! `cargo run --release -p olf --example client_pool`

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use olf::{Arc, Domain, Here, Limits, Link, Map, Stop, links};

/// To a host.
pub struct Connection {
    host: u32,
    pool: Link,
    used: AtomicU32,
}

/// For a connection to a host.
pub struct Waiter {
    host: u32,
    pool: Link,
    was_called: AtomicBool,
}

links! {
    /// Idle connections by host.
    pub Idle: Connection { link: pool, key: host as u32 }
    /// Who waits, by host.
    pub Waiting: Waiter { link: pool, key: host as u32 }
}

/// Connections that no one uses, and clients that have none.
pub struct Pool<'d> {
    idle: Map<'d, Idle>,
    waiting: Map<'d, Waiting>,
}

impl<'d> Pool<'d> {
    /// Takes a connection to the waiter's host, or lets it wait; nothing if another one waits already.
    fn take(&self, here: &Here<'d>, waiter: &Arc<'d, Waiter>) -> Result<Option<Arc<'d, Connection>>, Stop> {
        here.atomically(|a| match a.remove(&self.idle, &waiter.host) {
            Ok(connection) => Ok(Some(connection.to_arc().ok_or(Stop::Again)?)),
            Err(Stop::Absent) => {
                let held = a.hold(waiter);
                a.insert(&self.waiting, held)?;
                Ok(None)
            }
            Err(other) => Err(other),
        })
    }

    /// Puts a connection back; calls who waits for it, who then takes it.
    fn give(&self, here: &Here<'d>, connection: &Arc<'d, Connection>) {
        let called = here.atomically(|a| {
            let waiter = match a.remove(&self.waiting, &connection.host) {
                Ok(waiter) => Some(waiter.to_arc().ok_or(Stop::Again)?),
                Err(Stop::Absent) => None,
                Err(other) => return Err(other),
            };
            let held = a.hold(connection);
            a.insert(&self.idle, held)?;
            Ok(waiter)
        });
        if let Some(waiter) = called.expect("a connection that is not idle") {
            waiter.was_called.store(true, Ordering::Release);
        }
    }

    /// Whether a host has an idle connection and a waiter at one moment.
    fn is_wrong(&self, here: &Here<'d>, host: u32) -> bool {
        let both =
            here.atomically(|a| Ok::<_, Stop>(a.contains(&self.idle, &host)? && a.contains(&self.waiting, &host)?));
        both.expect("two looks")
    }
}

/// Two clients use the one connection so often each; returns how often it was used.
///
/// # Panics
/// If the pool is ever wrong.
pub fn use_often(times: u32) -> u32 {
    let domain = Domain::with(Limits { threads: 3, lists: 2 }).expect("a domain");
    let pool = Pool { idle: Map::new(&domain).expect("a map"), waiting: Map::new(&domain).expect("a map") };
    let here = domain.enter().expect("a thread");
    let connection = Arc::new(&domain, Connection { host: 7, pool: Link::new(), used: AtomicU32::new(0) });
    pool.give(&here, &connection);
    let client = || {
        let here = domain.enter().expect("a thread");
        let waiter = Arc::new(&domain, Waiter { host: 7, pool: Link::new(), was_called: AtomicBool::new(false) });
        let mut used = 0;
        while used < times {
            assert!(!pool.is_wrong(&here, 7), "idle, and somebody waits");
            match pool.take(&here, &waiter) {
                Ok(Some(connection)) => {
                    connection.used.fetch_add(1, Ordering::Relaxed);
                    used += 1;
                    pool.give(&here, &connection);
                    connection.end(&here);
                }
                Ok(None) => {
                    while !waiter.was_called.swap(false, Ordering::Acquire) {
                        std::thread::yield_now();
                    }
                }
                Err(Stop::Exists | Stop::Listed) => std::thread::yield_now(),
                Err(other) => panic!("{other}"),
            }
        }
    };
    std::thread::scope(|scope| {
        let clients = [0, 1].map(|_| scope.spawn(client));
        clients.into_iter().for_each(|client| client.join().expect("a client"));
    });
    connection.used.load(Ordering::Relaxed)
}

#[allow(dead_code, reason = "the tests call the above")]
fn main() {
    println!("used {} times", use_often(10_000));
}
