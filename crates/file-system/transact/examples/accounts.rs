//! Three files that belong together are changed together: who reads them finds the same users in each.
//!
//! `cargo run -p transact --example accounts -- 1000` adds so many users, while another thread reads.

use std::io;
use std::thread;

use scalefs::FileSystem;
use transact::Transactions as _;

mod door;
use door::{Between, Door};

const FILES: [&str; 3] = ["passwd", "shadow", "group"];
/// The files hold the users of late.
const KEPT: u64 = 20;

/// Each file is written anew beside the old one, and takes its place.
fn write_users(calls: &dyn Door, last: u64) -> io::Result<()> {
    let users: String = (last.saturating_sub(KEPT)..=last).map(|user| format!("user{user}\n")).collect();
    for file in FILES {
        calls.write(&format!("etc/{file}.new"), users.as_bytes())?;
        calls.rename(&format!("etc/{file}.new"), &format!("etc/{file}"))?;
    }
    Ok(())
}

/// Whether all three have the same users, with a pause after the first.
fn agree(calls: &dyn Door, pause: &dyn Fn()) -> io::Result<bool> {
    let read = |file| calls.read(&format!("etc/{file}"));
    let [first, others @ ..] = FILES;
    let users = read(first)?;
    pause();
    others.into_iter().try_fold(true, |agrees, file| Ok(agrees && read(file)? == users))
}

/// Lets one thread add users, another read; how often the files did not agree.
fn run(users: u64, are_together: bool) -> io::Result<(u64, u64)> {
    let files = door::files()?;
    files.root()?.create_dir("etc")?;
    write_users(&files.root()?, 0)?;
    let add = |files: &FileSystem, user| match are_together {
        true => files.transaction(|t| write_users(&**t, user)),
        false => write_users(&files.root()?, user),
    };
    let look = |files: &FileSystem, pause: &dyn Fn()| match are_together {
        true => files.transaction(|t| agree(&**t, pause)),
        false => agree(&files.root()?, pause),
    };
    let between = Between::default();
    let (mut looks, mut differed) = (0, 0);
    thread::scope(|scope| {
        let adds = scope.spawn(|| between.change(1..users + 1, |user| add(&files, user)));
        between.look(|pause| match look(&files, pause) {
            Ok(agrees) => {
                (looks, differed) = (looks + 1, differed + u64::from(!agrees));
                Ok(())
            }
            // The writer came in between a hundred times.
            Err(error) if error.raw_os_error() == Some(posix_calls::Errno::ECANCELED.number()) => Ok(()),
            Err(error) => Err(error),
        })?;
        adds.join().expect("it does not panic")
    })?;
    Ok((looks, differed))
}

fn main() -> io::Result<()> {
    let users = door::rounds(1_000);
    for (words, are_together) in [("in transactions", true), ("without", false)] {
        let (looks, differed) = run(users, are_together)?;
        println!("{words}: of {looks} looks {differed} found files that do not belong together");
    }
    Ok(())
}
