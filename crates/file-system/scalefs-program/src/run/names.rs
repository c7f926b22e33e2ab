//! The name of a tree, under which `scalefs status` and `scalefs stop` reach who looks after it: a socket without a file, which is there
//! as long as somebody listens.
//!
//! ```text
//! @scalefs/USER/NAME   one request a connection: status, check or stop, and a line end; what comes back ends with the connection
//! ```
//! Both sides ask the system who the other one is: anybody may listen under a name that looks like another user's. Who does not answer in
//! time is not waited for; a check, and an end, which take as long as they take, are asked of who has just answered.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
use shared_instance::peer;

const LONGEST_NAME: usize = 64;
/// So long a request may take to come.
const PATIENCE: Duration = Duration::from_millis(200);
const SOCKETS: &str = "/proc/net/unix";
/// So long who looks after a tree may take to say that it is there.
const ANSWERS_WITHIN: Duration = Duration::from_secs(3);
/// So often a tree is asked whose supervisors end without an answer, and so long is waited in between: another takes its place.
const ATTEMPTS: usize = 100;
const PAUSE: Duration = Duration::from_millis(10);
/// What those hear who have asked for the end of a tree, when it has ended.
pub(super) const ENDED: &[u8] = b"ended\n";

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

/// Why nothing was said of a tree.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Silence {
    NoTree,
    /// Somebody else listens there.
    Foreign {
        process: i32,
        user: u32,
    },
    NoAnswer,
    Failed(String),
}

impl Silence {
    /// For who has asked for the tree of a name.
    pub(crate) fn of(self, name: &str) -> String {
        match self {
            Silence::NoTree => format!("there is no tree {name}: scalefs status lists those that are"),
            Silence::Foreign { process, user } => {
                format!("process {process} of user {user} has taken the name {name}, and is not asked")
            }
            Silence::NoAnswer => format!(
                "the tree {name} does not answer: expected that within {} s; its supervisor may be stopped",
                ANSWERS_WITHIN.as_secs()
            ),
            Silence::Failed(why) => format!("the tree {name}: {why}"),
        }
    }
}

impl From<std::io::Error> for Silence {
    fn from(error: std::io::Error) -> Silence {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Silence::NoAnswer,
            ErrorKind::ConnectionRefused => Silence::NoTree,
            _ => Silence::Failed(error.to_string()),
        }
    }
}

impl From<Errno> for Silence {
    fn from(errno: Errno) -> Silence {
        Silence::from(std::io::Error::from(errno))
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
        false => Err(format!(
            "--instance: expected up to {LONGEST_NAME} letters, digits, dots, dashes or underscores, got {name:?}"
        )),
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

/// A connection to who listens at a name of this user's, which is made, read and written within some time.
fn connected(name: &str) -> Result<UnixStream, Silence> {
    let stream = UnixStream::from(socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?);
    // The system has this limit for who waits to be connected, too.
    stream.set_write_timeout(Some(ANSWERS_WITHIN))?;
    stream.set_read_timeout(Some(ANSWERS_WITHIN))?;
    let address = UnixAddr::new_abstract(format!("{}{name}", prefix(user())).as_bytes())?;
    connect(stream.as_raw_fd(), &address)?;
    match peer(stream.as_fd())? {
        (_, listening) if listening == user() => Ok(stream),
        (process, user) => Err(Silence::Foreign { process, user }),
    }
}

/// What is said to a request; nothing if who was asked has ended first.
fn exchange(name: &str, request: Request) -> Result<Option<Vec<u8>>, Silence> {
    let mut stream = connected(name)?;
    if request != Request::Status {
        stream.set_read_timeout(None)?;
    }
    let mut said = Vec::new();
    match writeln!(stream, "{}", request.word()).and_then(|()| stream.read_to_end(&mut said)) {
        Ok(_) => {}
        Err(error) if [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe].contains(&error.kind()) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let is_answer = match request {
        Request::Status => !said.is_empty(),
        // A process of its own has looked, and may have ended by that.
        Request::Check => true,
        Request::Stop => said == ENDED,
    };
    Ok(is_answer.then_some(said))
}

/// Asks who looks after a tree, and returns all that it says until it has ended with that. If it is killed first, who takes its place
/// is asked.
pub(crate) fn ask(name: &str, request: Request) -> Result<String, Silence> {
    for attempt in 0..ATTEMPTS {
        let said = match (exchange(name, Request::Status), request) {
            (Ok(Some(_)), Request::Check | Request::Stop) => exchange(name, request),
            (said, _) => said,
        };
        match said {
            Ok(Some(said)) => return Ok(String::from_utf8_lossy(&said).into_owned()),
            Ok(None) => thread::sleep(PAUSE),
            // It was there before.
            Err(Silence::NoTree) if request == Request::Stop && attempt > 0 => return Ok(String::new()),
            Err(silence) => return Err(silence),
        }
    }
    Err(Silence::NoAnswer)
}

/// The names of the user's trees, sorted: where no one else listens, as far as that is known in time.
pub(crate) fn all() -> Result<Vec<String>, String> {
    let text = std::fs::read(SOCKETS).map_err(|error| format!("{SOCKETS}: {error}"))?;
    let mut names = names_in(&String::from_utf8_lossy(&text), user());
    names.retain(|name| !matches!(connected(name), Err(Silence::Foreign { .. } | Silence::NoTree)));
    Ok(names)
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
    use std::os::unix::process::CommandExt;
    use std::process::Stdio;

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
        let mut was_asked = false;
        let answered = loop {
            match asked(&listener) {
                Some((Request::Status, mut stream)) => stream.write_all(b"there").expect("it listens"),
                // As if who was asked were killed: the next one is asked.
                Some((Request::Stop, _)) if !was_asked => was_asked = true,
                Some((request, mut stream)) => {
                    stream.write_all(ENDED).expect("it listens");
                    break request;
                }
                None => {}
            }
        };
        let heard = String::from_utf8_lossy(ENDED).into_owned();
        assert_eq!((answered, asking.join().expect("it ends")), (Request::Stop, Ok(heard)));
        // What is no request is not answered.
        let mut other = UnixStream::connect_addr(&address(&name).expect("plain")).expect("it listens");
        other.write_all(b"status please\n").expect("it listens");
        assert!(asked(&listener).is_none());
        drop(listener);
        assert_eq!(ask(&name, Request::Status), Err(Silence::NoTree));
    }

    /// It is stopped, say; and others have asked before, in vain.
    #[test]
    fn who_does_not_answer_is_not_waited_for() {
        let name = format!("silent-{}", std::process::id());
        let listener = listen(&name).expect("no one else has it");
        assert_eq!(ask(&name, Request::Status), Err(Silence::NoAnswer));
        assert!(all().expect("Linux").contains(&name));
        nix::sys::socket::listen(&listener, nix::sys::socket::Backlog::new(0).expect("a number")).expect("ours");
        assert_eq!(ask(&name, Request::Stop), Err(Silence::NoAnswer));
    }

    #[test]
    fn a_name_that_another_user_has_taken_is_not_listed() {
        if user() != 0 {
            eprintln!("not tested: it takes root to be another user");
            return;
        }
        let name = format!("foreign-{}", std::process::id());
        let script = format!(
            "import socket as s; l = s.socket(s.AF_UNIX); l.bind('\\0scalefs/0/{name}'); l.listen(); print(flush=True); l.accept(); import sys; sys.stdin.read()"
        );
        let mut other = std::process::Command::new("python3");
        other.args(["-c", &script]).uid(65534).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut other = other.spawn().expect("there is python3");
        let mut line = String::new();
        BufReader::new(other.stdout.take().expect("piped")).read_line(&mut line).expect("it says when it listens");
        assert_eq!(line, "\n");
        assert!(!all().expect("Linux").contains(&name));
        assert!(matches!(ask(&name, Request::Stop), Err(Silence::Foreign { user: 65534, .. })));
        drop(other.stdin.take());
        other.wait().expect("ours");
    }

    #[test]
    fn who_has_asked_for_an_end_hears_of_it_though_no_one_says_it() {
        let name = format!("killed-{}", std::process::id());
        let listener = listen(&name).expect("no one else has it");
        let asking = std::thread::spawn({
            let name = name.clone();
            move || ask(&name, Request::Stop)
        });
        loop {
            match asked(&listener) {
                Some((Request::Stop, _)) => break,
                Some((_, mut stream)) => stream.write_all(b"there").expect("it listens"),
                None => {}
            }
        }
        drop(listener);
        assert_eq!(asking.join().expect("it ends"), Ok(String::new()));
    }
}
