//! What a host's process does that makes calls on sockets: it takes one after the other from a socket of its own and answers.
//!
//! It is a child of a program with threads, so it allocates nothing and takes no lock.

use std::mem::zeroed;

use libc::c_int;

/// The most bytes that a call receives.
pub const ROOM: usize = 8;
/// Longer than what a socket of the host takes.
pub const TOO_LONG: usize = 300_000;
static LONG: [u8; TOO_LONG] = [0; TOO_LONG];
/// Where a program that is executed finds the number of the socket that it serves.
pub const SERVED: &str = "SCALEFS_SOCKET_CALLS_SERVED";
/// Of that variable and its value: `NAME=number`.
const VARIABLE_BYTES: usize = 64;

/// What is asked of a process; `a` is the number that is concerned, in most cases.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Request {
    pub what: What,
    pub a: c_int,
    pub b: c_int,
    pub flags: c_int,
    /// Bytes of a message, all the same.
    pub length: usize,
    pub byte: u8,
    pub name: Name,
}

#[repr(u32)]
#[derive(Clone, Copy, Debug)]
pub enum What {
    Socket,
    Pair,
    File,
    Bind,
    Name,
    Send,
    Receive,
    Write,
    Read,
    WriteAt,
    ReadAt,
    Seek,
    Resize,
    Mode,
    Duplicate,
    Close,
    SetOnExec,
    /// The socket of the child.
    Fork,
    Exec,
    Exit,
}

/// A name of the abstract namespace; none if it is empty.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Name {
    pub length: usize,
    pub bytes: [u8; 100],
}

impl Name {
    pub const NONE: Name = Name { length: 0, bytes: [0; 100] };

    fn address(&self) -> (libc::sockaddr_un, libc::socklen_t) {
        // SAFETY: zeros are an address.
        let mut address: libc::sockaddr_un = unsafe { zeroed() };
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
        let path = &mut address.sun_path[1..=self.length];
        path.iter_mut().zip(&self.bytes).for_each(|(place, byte)| *place = *byte as libc::c_char);
        (address, (size_of::<libc::sa_family_t>() + 1 + self.length) as libc::socklen_t)
    }

    fn of(address: &libc::sockaddr_un, length: libc::socklen_t) -> Name {
        let length = (length as usize).saturating_sub(size_of::<libc::sa_family_t>() + 1).min(100);
        let mut name = Name { length, ..Name::NONE };
        name.bytes.iter_mut().zip(&address.sun_path[1..=length]).for_each(|(to, from)| *to = *from as u8);
        name
    }
}

/// What a process answers: a result, or an error number below zero; then what was received, and from whom.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Reply {
    pub result: i64,
    pub name: Name,
    pub bytes: [u8; ROOM],
}

fn errno() -> i64 {
    // SAFETY: of this thread.
    i64::from(unsafe { *libc::__errno_location() })
}

/// Serves a socket until its other end is closed, in a process of its own.
///
/// # Safety
/// Called in a child of `fork`, or by a program that was executed for it, which does nothing else.
pub unsafe fn serve(mut served: c_int) -> ! {
    // SAFETY: all-zero is a valid request, and so is what the test sends; both are plain bytes on this stack.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        loop {
            let mut request: Request = zeroed();
            let received = libc::recv(served, (&raw mut request).cast(), size_of::<Request>(), 0);
            if received != size_of::<Request>() as isize {
                libc::_exit(0);
            }
            let mut reply = Reply { result: 0, name: Name::NONE, bytes: [0; ROOM] };
            let before = served;
            let result = act(&request, &mut reply, &mut served);
            if served != before {
                // A new process, for which its parent has answered.
                continue;
            }
            reply.result = if result < 0 { -errno() } else { result };
            libc::send(served, (&raw const reply).cast(), size_of::<Reply>(), libc::MSG_NOSIGNAL);
            if matches!(request.what, What::Exit) {
                libc::_exit(0);
            }
        }
    }
}

/// Tells that the program was executed, and serves.
///
/// # Safety
/// As [`serve`].
pub unsafe fn serve_anew(served: c_int) -> ! {
    let reply = Reply { result: 0, name: Name::NONE, bytes: [0; ROOM] };
    // SAFETY: a reply of plain bytes; the rest is the caller's promise.
    unsafe {
        libc::send(served, (&raw const reply).cast(), size_of::<Reply>(), libc::MSG_NOSIGNAL);
        serve(served)
    }
}

/// Gives what was made at some number the number that was asked for.
unsafe fn place(made: c_int, number: c_int, flags: c_int) -> i64 {
    // SAFETY: numbers of this process, of which the first is new.
    unsafe {
        if made < 0 {
            return -1;
        }
        let placed = libc::dup3(made, number, flags);
        libc::close(made);
        i64::from(placed)
    }
}

/// Executes this program anew, to serve the same socket.
unsafe fn execute(served: c_int) -> i64 {
    let mut variable = [0_u8; VARIABLE_BYTES];
    let mut end = SERVED.len();
    variable[..end].copy_from_slice(SERVED.as_bytes());
    variable[end] = b'=';
    for divisor in [100, 10, 1] {
        end += 1;
        variable[end] = b'0' + (served / divisor % 10) as u8;
    }
    let arguments = [c"socket_calls".as_ptr(), c"--exact".as_ptr(), c"serves".as_ptr(), std::ptr::null()];
    let environment = [variable.as_ptr().cast(), std::ptr::null()];
    // SAFETY: texts end in zero, and lists in null.
    i64::from(unsafe { libc::execve(c"/proc/self/exe".as_ptr(), arguments.as_ptr(), environment.as_ptr()) })
}

/// # Safety
/// As [`serve`].
unsafe fn act(request: &Request, reply: &mut Reply, served: &mut c_int) -> i64 {
    let Request { what, a, b, flags, length, byte, ref name } = *request;
    let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK;
    let mut message = [byte; 4096];
    message[0] = byte;
    let bytes = if length > message.len() { LONG.as_ptr() } else { message.as_ptr() };
    let room = length.min(ROOM);
    let (mut address, mut address_length) = name.address();
    let whole = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: the calls concern descriptors of the process; buffers hold as many bytes as is said.
    unsafe {
        match what {
            What::Socket => place(libc::socket(libc::AF_UNIX, kind, 0), a, flags),
            What::Pair => {
                let mut ends = [0; 2];
                if libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) < 0 {
                    return -1;
                }
                place(ends[0], a, flags);
                place(ends[1], b, flags)
            }
            What::File => place(libc::memfd_create(c"file".as_ptr(), 0), a, flags),
            What::Bind => i64::from(libc::bind(a, (&raw const address).cast(), address_length)),
            What::Name => {
                address_length = whole;
                let result = libc::getsockname(a, (&raw mut address).cast(), &raw mut address_length);
                reply.name = Name::of(&address, address_length);
                i64::from(result)
            }
            What::Send if name.length == 0 => libc::send(a, bytes.cast(), length, libc::MSG_NOSIGNAL) as i64,
            What::Send => {
                let address = (&raw const address).cast();
                libc::sendto(a, bytes.cast(), length, libc::MSG_NOSIGNAL, address, address_length) as i64
            }
            What::Receive => {
                address_length = whole;
                let buffer = reply.bytes.as_mut_ptr().cast();
                let from = (&raw mut address).cast();
                let result = libc::recvfrom(a, buffer, room, libc::MSG_TRUNC, from, &raw mut address_length);
                reply.name = Name::of(&address, address_length);
                result as i64
            }
            What::Write => libc::write(a, bytes.cast(), length) as i64,
            What::Read => libc::read(a, reply.bytes.as_mut_ptr().cast(), room) as i64,
            What::WriteAt => libc::pwrite(a, bytes.cast(), length, 0) as i64,
            What::ReadAt => libc::pread(a, reply.bytes.as_mut_ptr().cast(), room, 0) as i64,
            What::Seek => libc::lseek(a, 0, libc::SEEK_CUR),
            What::Resize => i64::from(libc::ftruncate(a, length as i64)),
            What::Mode => {
                let mut status: libc::stat = zeroed();
                if libc::fstat(a, &raw mut status) < 0 { -1 } else { i64::from(status.st_mode) }
            }
            What::Duplicate => i64::from(libc::dup3(a, b, flags)),
            What::Close => i64::from(libc::close(a)),
            What::SetOnExec => i64::from(libc::fcntl(a, libc::F_SETFD, if flags == 0 { 0 } else { libc::FD_CLOEXEC })),
            What::Fork => {
                let child = libc::syscall(libc::SYS_fork);
                if child == 0 {
                    *served = a;
                }
                child.min(1)
            }
            What::Exec => execute(*served),
            // Before the answer: what comes next sees it.
            What::Exit => libc::syscall(libc::SYS_close_range, 3, *served - 1, 0),
        }
    }
}
