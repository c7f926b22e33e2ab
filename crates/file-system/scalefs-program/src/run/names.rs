//! The name of a tree, under which `scalefs status` and `scalefs stop` reach who looks after it: a socket without a file, which is there
//! as long as somebody listens.
//!
//! ```text
//! @scalefs/USER/NAME   one request a connection: status, check or stop, and a line end; what comes back ends with the connection
//! ```
//! Both sides ask the system who the other one is: anybody may listen under a name that looks like another user's.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

use shared_instance::peer;

const LONGEST_NAME: usize = 64;
/// So long a request may take to come.
const PATIENCE: Duration = Duration::from_millis(200);
const SOCKETS: &str = "/proc/net/unix";

/// What is asked of who looks after a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// A line of numbers, and where the tree is seen.
    Status,
    /// Whether all is whole.
    Check,
    /// To end all processes.
    Stop,
}

impl Request {
    const ALL: [Request; 3] = [Request::Status, Request::Check, Request::Stop];

    fn word(self) -> &'static str {
        match self {
            Request::Status => "status",
            Request::Check => "check",
            Request::Stop => "stop",
        }
    }
}

fn user() -> u32 {
    nix::unistd::geteuid().as_raw()
}

fn prefix(user: u32) -> String {
    format!("scalefs/{user}/")
}

fn address(name: &str) -> Result<SocketAddr, String> {
    SocketAddr::from_abstract_name(format!("{}{name}", prefix(user()))).map_err(|error| format!("{name}: {error}"))
}

/// Whether a tree can be called so.
pub(crate) fn check(name: &str) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    match !name.is_empty() && name.len() <= LONGEST_NAME && name.bytes().all(is_plain) {
        true => Ok(()),
        false => {
            Err(format!("--instance: expected up to {LONGEST_NAME} letters, digits, dots or dashes, got {name:?}"))
        }
    }
}

/// Takes a name for a tree.
pub(super) fn listen(name: &str) -> Result<UnixListener, String> {
    let listener = UnixListener::bind_addr(&address(name)?).map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            format!("--instance {name}: there is such a tree: take another name, or scalefs stop it")
        }
        _ => format!("--instance {name}: {error}"),
    })?;
    listener.set_nonblocking(true).map_err(|error| format!("--instance {name}: {error}"))?;
    Ok(listener)
}

/// What is asked for at a name, if somebody asks who may.
pub(super) fn asked(listener: &UnixListener) -> Option<(Request, UnixStream)> {
    let (stream, _) = listener.accept().ok()?;
    let (_, asking) = peer(stream.as_fd()).ok()?;
    if asking != user() && asking != 0 {
        return None;
    }
    stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(PATIENCE))).ok()?;
    let mut line = String::new();
    BufReader::new((&stream).take(16)).read_line(&mut line).ok()?;
    let request = Request::ALL.into_iter().find(|request| line.trim_end() == request.word())?;
    Some((request, stream))
}

/// Asks who looks after a tree, and returns all that it says until it has ended with that.
pub(crate) fn ask(name: &str, request: Request) -> Result<String, String> {
    let wrong = |error: std::io::Error| format!("the tree {name}: {error}");
    let mut stream = UnixStream::connect_addr(&address(name)?)
        .map_err(|_| format!("there is no tree {name}: scalefs status lists those that are"))?;
    let (process, listening) = peer(stream.as_fd()).map_err(wrong)?;
    if listening != user() {
        return Err(format!("process {process} of user {listening} has taken the name {name}, and is not asked"));
    }
    writeln!(stream, "{}", request.word()).map_err(wrong)?;
    let mut said = Vec::new();
    stream.read_to_end(&mut said).map_err(wrong)?;
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// The names of the user's trees, sorted.
pub(crate) fn all() -> Result<Vec<String>, String> {
    let text = std::fs::read(SOCKETS).map_err(|error| format!("{SOCKETS}: {error}"))?;
    Ok(names_in(&String::from_utf8_lossy(&text), user()))
}

/// The names in the list of sockets, whose last column is the address.
fn names_in(sockets: &str, user: u32) -> Vec<String> {
    let start = format!("@{}", prefix(user));
    let named = sockets.lines().filter_map(|line| line.split_whitespace().nth(7)?.strip_prefix(&start));
    let mut names: Vec<String> = named.filter(|name| check(name).is_ok()).map(str::to_owned).collect();
    names.sort_unstable();
    // Each connection is listed, too.
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for name in ["a", "Build-2.x_y", &"n".repeat(64)] {
            assert_eq!(check(name), Ok(()));
        }
        for name in ["", "a/b", "a b", "\u{e9}", &"n".repeat(65)] {
            assert!(check(name).is_err_and(|said| said.contains("letters, digits")), "{name:?}");
        }
    }

    #[test]
    fn names_are_found_in_the_list_of_sockets() {
        let list = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0: 2 0 10000 0001 01 1 @scalefs/7/two\n0: 3 0 0 0001 03 2 @scalefs/7/two\n\
            0: 2 0 10000 0001 01 3 @scalefs/77/other\n0: 2 0 10000 0001 01 4 @scalefs/7/one\n0: 2 0 0 1 01 5 /run/x\n0: 2 0 0 1 01 6\n";
        assert_eq!(names_in(list, 7), ["one", "two"]);
    }

    #[test]
    fn a_request_reaches_who_listens_and_a_name_is_taken_once() {
        let name = format!("test-{}", std::process::id());
        let listener = listen(&name).expect("no one else has it");
        assert!(listen(&name).is_err_and(|said| said.contains("there is such a tree")));
        assert!(all().expect("Linux").contains(&name));
        let asking = std::thread::spawn({
            let name = name.clone();
            move || ask(&name, Request::Stop)
        });
        let answered = loop {
            if let Some((request, mut stream)) = asked(&listener) {
                stream.write_all(b"done").expect("it listens");
                break request;
            }
        };
        assert_eq!((answered, asking.join().expect("it ends")), (Request::Stop, Ok("done".to_owned())));
        // What is no request is not answered.
        let mut other = UnixStream::connect_addr(&address(&name).expect("plain")).expect("it listens");
        other.write_all(b"status please\n").expect("it listens");
        assert!(asked(&listener).is_none());
        drop(listener);
        assert!(ask(&name, Request::Status).is_err_and(|said| said.contains("there is no tree")));
    }
}
