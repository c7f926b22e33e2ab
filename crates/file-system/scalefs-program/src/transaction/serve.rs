//! The server's side: a second door for each program in a transaction, until its end.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fuser::{Config, INodeNo, Session, SessionACL};
use scalefs::{Decision, FileSystem};
use shared_instance::peer;

use super::talk;
use crate::door::{AsItIs, Caching, Door, Greeting, InTransaction};
use crate::planted::planted;

/// The name of the thread that waits for programs.
const LISTENER: &str = "transactions";
/// Where the system has no descriptor or memory left for a caller, it is asked again after this. Without the wait all of a processor would
/// go into asking, since `accept` fails at once, also if nobody calls.
const NEXT_CALLER: Duration = Duration::from_millis(20);

/// Listens for programs that want to work in a transaction, as long as this process lives.
///
/// # Errors
/// In one line. The mount itself can do without: names of this kind are for every user to take.
pub(crate) fn listen(files: &FileSystem, greeting: &Arc<Greeting>) -> Result<(), String> {
    let address = talk::address(std::process::id().cast_signed());
    let listener = address.and_then(|address| UnixListener::bind_addr(&address));
    let listener = listener.map_err(|error| format!("no transactions here, listening for them: {error}"))?;
    let (files, greeting) = (files.clone(), greeting.clone());
    let listen = move || {
        for caller in listener.incoming() {
            let Ok(stream) = caller else {
                thread::sleep(NEXT_CALLER);
                continue;
            };
            let (files, greeting) = (files.clone(), greeting.clone());
            // Every user may call: who is not served costs no thread, and where there is none, the connection ends.
            if let Ok(true) = is_served(&stream) {
                // Errors are those of the connection: who has called has gone.
                let _ = thread::Builder::new().spawn(move || serve(&files, &greeting, &stream));
            }
        }
    };
    let listening = thread::Builder::new().name(LISTENER.to_owned()).spawn(listen);
    listening.map(drop).map_err(|error| format!("no transactions here, listening for them: {error}"))
}

/// Whether who has called is of the same user; if not, the other one hears it.
fn is_served(stream: &UnixStream) -> std::io::Result<bool> {
    let (_, user) = peer(stream.as_fd())?;
    let own = nix::unistd::geteuid().as_raw();
    if user != own {
        talk::say_ready(stream, Err(format!("its server is of user {own}, and serves that one alone")))?;
    }
    Ok(user == own)
}

/// Serves one program to its end.
fn serve(files: &FileSystem, greeting: &Greeting, stream: &UnixStream) -> std::io::Result<()> {
    let Some(device) = talk::taken_over(stream)? else { return Ok(()) };
    let begun = begin(files, greeting, device);
    let view = match begun {
        Ok(view) => view,
        Err(why) => return talk::say_ready(stream, Err(why)),
    };
    talk::say_ready(stream, Ok(()))?;
    let decision = match talk::hear_decision(stream) {
        Decision::Abort if planted("transaction: what has failed happens") => Decision::Commit,
        decision => decision,
    };
    let ending = view.end(decision, |number| {
        if let Some(notifier) = greeting.notifier.get() {
            // Of the kernel's pages only those can be old that somebody has mapped.
            let _ = notifier.inval_inode(INodeNo(number), 0, 0);
        }
    });
    talk::say_ending(stream, &ending)
}

/// Begins a transaction, and answers a mount's requests by its calls.
fn begin(files: &FileSystem, greeting: &Greeting, device: OwnedFd) -> Result<Arc<InTransaction>, String> {
    if greeting.is_direct.get().is_none() {
        return Err("the kernel keeps names and data of this mount: mount it by scalefs mount --no-cache, on Linux 6.6 or newer"
            .to_owned());
    }
    let failed = |error: std::io::Error| format!("beginning a transaction: {error}");
    let view = Arc::new(InTransaction::begin(files).map_err(|errno| failed(errno.into()))?);
    if planted("transaction: calls happen at once") {
        let as_it_is = Arc::new(AsItIs::new(files).map_err(|errno| failed(errno.into()))?);
        answer(Door::new(files, as_it_is, Caching::Nothing, Arc::default()), device).map_err(failed)?;
    } else {
        answer(Door::new(files, view.clone(), Caching::Nothing, Arc::default()), device).map_err(failed)?;
    }
    Ok(view)
}

/// Answers requests until the mount is taken away.
fn answer(door: impl fuser::Filesystem, device: OwnedFd) -> std::io::Result<()> {
    let session = Session::from_fd(door, device, SessionACL::Owner, Config::default())?;
    // One thread: the calls of a transaction are made one after the other.
    thread::Builder::new().name("transaction".to_owned()).spawn(move || session.run())?;
    Ok(())
}
