//! A directory service on flat files that lasts (thesis on TxOS, section 6.1): clients add people to groups and delete them, each
//! in one transaction. All that was answered is there again, and no person is without a group.
//!
//! `cargo run --release -p durable --example lasting_directory -- 16 50` lets 16 clients make 50 requests each.

use std::io::{self, ErrorKind};
use std::thread;
use std::time::{Duration, Instant};

use durable::Durable;
use transact::Scope;

/// Groups that all clients share.
const GROUPS: u64 = 4;

/// Adds an entry below its group: written next to its place, then moved there.
fn add(t: &Scope<'_>, group: &str, person: &str) -> io::Result<()> {
    if !t.exists(format!("{group}.ldif"))? {
        return Err(ErrorKind::NotFound.into());
    }
    let file = format!("{group}/{person}.ldif");
    if t.exists(&file)? {
        return Err(ErrorKind::AlreadyExists.into());
    }
    t.write(format!("{file}.new"), format!("dn: uid={person},{group}\ncn: {person}\n"))?;
    t.rename(format!("{file}.new"), &file)
}

/// Lets clients add and delete; says how long it took.
fn serve(service: &Durable, clients: u64, requests: u64) -> io::Result<Duration> {
    for group in 0..GROUPS {
        let group = format!("ou={group}");
        service.transaction(|t| {
            t.create_dir(&group)?;
            t.write(format!("{group}.ldif"), "objectClass: organizationalUnit\n")
        })?;
    }
    let began = Instant::now();
    thread::scope(|scope| {
        let client = |client: u64| {
            for request in 0..requests {
                let group = format!("ou={}", (client + request / 2) % GROUPS);
                let person = format!("uid={client}-{}", request / 2);
                // Every other person stays.
                match request % 4 {
                    1 => service.transaction(|t| t.remove_file(format!("{group}/{person}.ldif")))?,
                    3 => service.transaction(|t| t.append(format!("{group}/{person}.ldif"), "mail: there\n"))?,
                    _ => service.transaction(|t| add(t, &group, &person))?,
                }
            }
            Ok(())
        };
        let running: Vec<_> = (0..clients).map(|number| scope.spawn(move || client(number))).collect();
        running.into_iter().try_for_each(|client| client.join().expect("it does not panic"))
    })
    .map(|()| began.elapsed())
}

fn main() -> io::Result<()> {
    let mut numbers = std::env::args().skip(1).map(|number| number.parse().map_err(io::Error::other));
    let clients = numbers.next().transpose()?.unwrap_or(16);
    let requests = numbers.next().transpose()?.unwrap_or(50);
    let folder = std::env::temp_dir().join(format!("lasting-directory-{}", std::process::id()));
    let service = Durable::open(&folder)?;
    let took = serve(&service, clients, requests)?;
    service.close()?;
    let again = Durable::open(&folder)?;
    let people =
        (0..GROUPS).map(|group| again.transaction(|t| t.names(format!("ou={group}"))).map(|names| names.len()));
    let people = people.sum::<io::Result<usize>>()?;
    drop(again);
    std::fs::remove_dir_all(&folder)?;
    let answered = clients * requests;
    println!("requests a second: {:.0}", answered as f64 / took.as_secs_f64());
    println!("people after {answered} requests and another opening: {people}");
    Ok(())
}
