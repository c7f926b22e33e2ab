//! A maildir whose reader finds what it has listed (thesis on TxOS, chapter 6): the listing and all messages are of one moment,
//! though others deliver, and mark messages as seen by renaming them.
//!
//! `cargo run -p transact --example mail -- 2000` delivers so many messages meanwhile.

use std::io;
use std::thread;

use scalefs::FileSystem;
use transact::Transactions as _;

mod door;
use door::{Between, Door};

/// Messages in the mailbox at a time.
const KEPT: u64 = 8;

/// Delivers one, marks another as seen, and removes an old one.
fn deliver(files: &FileSystem, message: u64) -> io::Result<()> {
    let root = files.root()?;
    Door::write(&root, &format!("tmp/{message}"), format!("message {message}").as_bytes())?;
    root.rename(format!("tmp/{message}"), format!("cur/{message}:2,"))?;
    let of = |age| message.checked_sub(age);
    if let Some(seen) = of(KEPT / 2) {
        root.rename(format!("cur/{seen}:2,"), format!("cur/{seen}:2,S"))?;
    }
    if let Some(old) = of(KEPT) {
        root.remove_file(format!("cur/{old}:2,S"))?;
    }
    Ok(())
}

/// Lists the mailbox, reads all messages after a pause, and lists it again: whether all was there, and stayed so.
fn read_all(calls: &dyn Door, pause: &dyn Fn()) -> io::Result<bool> {
    let listed = calls.names("cur")?;
    pause();
    for name in &listed {
        match calls.read(&format!("cur/{name}")) {
            Ok(message) => assert!(message.starts_with(b"message "), "a message is there whole"),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(listed == calls.names("cur")?)
}

/// How many looks there were, and how many found that the mailbox changed under them.
fn run(messages: u64, are_together: bool) -> io::Result<(u64, u64)> {
    let files = door::files()?;
    ["tmp", "cur"].iter().try_for_each(|directory| files.root()?.create_dir(directory))?;
    let look = |pause: &dyn Fn()| match are_together {
        true => files.transaction(|t| read_all(&**t, pause)),
        false => read_all(&files.root()?, pause),
    };
    let between = Between::default();
    let (mut looks, mut changed) = (0, 0);
    thread::scope(|scope| {
        let delivers = scope.spawn(|| between.change(0..messages, |message| deliver(&files, message)));
        between.look(|pause| match look(pause) {
            Ok(stayed) => {
                (looks, changed) = (looks + 1, changed + u64::from(!stayed));
                Ok(())
            }
            // Others came in between a hundred times.
            Err(error) if error.raw_os_error() == Some(posix_calls::Errno::ECANCELED.number()) => Ok(()),
            Err(error) => Err(error),
        })?;
        delivers.join().expect("it does not panic")
    })?;
    Ok((looks, changed))
}

fn main() -> io::Result<()> {
    let messages = door::rounds(2_000);
    for (words, are_together) in [("in transactions", true), ("without", false)] {
        let (looks, changed) = run(messages, are_together)?;
        println!("{words}: of {looks} looks {changed} saw the mailbox change under them");
    }
    Ok(())
}
