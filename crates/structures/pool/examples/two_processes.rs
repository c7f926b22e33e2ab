//! Two processes and one pool: a message goes there, and one comes back. `cargo run -p pool --features files --example two_processes`

use std::error::Error;
use std::path::Path;
use std::process::Command;

use pool::file::{Pool, create, path_of};
use pool::ring::{Layout, Receiver, Sender};

const LINES: usize = 16;

/// The ring from this domain to the other one: each way has one.
fn ring(pool: &Pool, sender: usize) -> Layout {
    let at = pool.first_free() + sender * Layout::bytes(LINES);
    Layout { at, line_count: LINES, salt: 1 + sender as u32, sender, receiver: 1 - sender, patience: 1 << 20 }
}

/// Waits for a message.
fn receive<M: pool::Memory>(receiver: &mut Receiver<M>) -> Result<String, Box<dyn Error>> {
    let mut message = [0; 256];
    loop {
        if let Some(length) = receiver.receive(&mut message)? {
            return Ok(String::from_utf8_lossy(&message[..length]).into_owned());
        }
        std::thread::yield_now();
    }
}

/// What the second process does.
fn other(path: &Path) -> Result<(), Box<dyn Error>> {
    let pool = Pool::join(path, 1)?;
    let mut receiver = Receiver::new(pool.memory(), ring(&pool, 0))?;
    let mut sender = Sender::new(pool.memory(), ring(&pool, 1))?;
    let question = receive(&mut receiver)?;
    Ok(sender.send(format!("process {} has read: {question}", std::process::id()).as_bytes())?)
}

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(path) = std::env::args_os().nth(1) {
        return other(Path::new(&path));
    }
    let path = path_of(&format!("pool-example-{}", std::process::id()));
    create(&path, 1 << 16, 2)?;
    let answered = (|| {
        let pool = Pool::join(&path, 0)?;
        let mut sender = Sender::new(pool.memory(), ring(&pool, 0))?;
        let mut receiver = Receiver::new(pool.memory(), ring(&pool, 1))?;
        let mut child = Command::new(std::env::current_exe()?).arg(&path).spawn()?;
        sender.send(format!("process {} says hello", std::process::id()).as_bytes())?;
        println!("{}", receive(&mut receiver)?);
        child.wait()?;
        Ok(())
    })();
    std::fs::remove_file(&path)?;
    answered
}
