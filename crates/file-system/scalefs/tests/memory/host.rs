//! The calls on memory made by real processes of the host, on two files in its memory (`memfd_create`).

use std::io;

use call_language::{
    DESCRIPTORS, MemoryAnswer, MemoryCall, MemoryOperation, MemoryOutcome, NO_DESCRIPTOR, PROCESSES, bytes,
};
use scalefs::memory::{Address, Destination};
use scalefs::{Protection, Sharing};

use crate::System;
use crate::worker::{MOST_BYTES, Message, Reply, Request, What, serve};

const PAGE: u64 = 4096;
const SIGKILL: i32 = 9;

/// A family of processes; all end when this is dropped.
pub struct Host {
    /// Of each process the end of its socket that is ours.
    sockets: [libc::c_int; PROCESSES],
    /// The numbers that the other ends have in all processes of the family; here they are closed.
    served: [libc::c_int; PROCESSES],
    lives: [bool; PROCESSES],
    first: libc::pid_t,
    descriptors: [libc::c_int; DESCRIPTORS],
}

fn checked(result: libc::c_int) -> libc::c_int {
    assert!(result >= 0, "{}", io::Error::last_os_error());
    result
}

fn protection(protection: Protection) -> u64 {
    (match protection {
        Protection::None => libc::PROT_NONE,
        Protection::Read => libc::PROT_READ,
        Protection::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
    }) as u64
}

impl Host {
    pub fn new() -> Host {
        let mut pairs = [[0; 2]; PROCESSES];
        let mut pipe = [0; 2];
        // SAFETY: arrays of two descriptors each; names that end with NUL; reopening a file in memory by its descriptor.
        let descriptors = unsafe {
            for pair in &mut pairs {
                let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
                checked(libc::socketpair(libc::AF_UNIX, kind, 0, pair.as_mut_ptr()));
                // A process that died has brothers that keep its socket open.
                let limit = libc::timeval { tv_sec: 20, tv_usec: 0 };
                let (limit, length) = ((&raw const limit).cast(), size_of::<libc::timeval>() as u32);
                checked(libc::setsockopt(pair[0], libc::SOL_SOCKET, libc::SO_RCVTIMEO, limit, length));
            }
            checked(libc::pipe2(pipe.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK));
            let files = [(); 2].map(|()| checked(libc::memfd_create(c"mapped".as_ptr(), libc::MFD_CLOEXEC)));
            let again = |file: libc::c_int, flags| {
                let path = std::ffi::CString::new(format!("/proc/self/fd/{file}")).unwrap();
                checked(libc::open(path.as_ptr(), flags | libc::O_CLOEXEC))
            };
            let (reading, writing) = (libc::O_RDONLY, libc::O_WRONLY);
            let [first, second] = files;
            [first, again(first, reading), again(first, writing), second, again(second, reading), pipe[0], pipe[1]]
        };
        let [ours, theirs] = [0, 1].map(|end| pairs.map(|pair| pair[end]));
        let mut kept = [theirs.as_slice(), descriptors.as_slice()].concat();
        kept.sort_unstable();
        // SAFETY: the child allocates nothing and ends in `serve`.
        let first = unsafe {
            let child = checked(libc::fork());
            if child == 0 {
                serve(theirs[0], &kept);
            }
            child
        };
        // SAFETY: the child's ends.
        theirs.iter().for_each(|socket| assert_eq!(unsafe { libc::close(*socket) }, 0));
        let mut lives = [false; PROCESSES];
        lives[0] = true;
        Host { sockets: ours, served: theirs, lives, first, descriptors }
    }

    fn receive(&self, process: usize) -> Reply {
        let mut reply = Reply { result: 0, signal: 0, bytes: [0; MOST_BYTES] };
        // SAFETY: as many bytes as there are.
        let received = unsafe {
            libc::recv(self.sockets[process], (&raw mut reply).cast(), size_of::<Reply>(), libc::MSG_WAITALL)
        };
        assert_eq!(received, size_of::<Reply>() as isize, "the host's process died: {}", io::Error::last_os_error());
        reply
    }

    fn ask(&self, process: usize, what: What, arguments: &[u64], sent: &[u8]) -> Reply {
        let mut message = Message { request: Request { what, arguments: [0; 7] }, bytes: [0; MOST_BYTES] };
        message.request.arguments[..arguments.len()].copy_from_slice(arguments);
        message.bytes[..sent.len()].copy_from_slice(sent);
        // SAFETY: as many bytes as there are.
        let count = unsafe {
            libc::send(self.sockets[process], (&raw const message).cast(), size_of::<Message>(), libc::MSG_NOSIGNAL)
        };
        assert_eq!(count, size_of::<Message>() as isize, "{}", io::Error::last_os_error());
        self.receive(process)
    }

    fn call(&self, process: usize, number: libc::c_long, arguments: &[u64]) -> Result<u64, i32> {
        let all = [&[number as u64], arguments].concat();
        let reply = self.ask(process, What::Call, &all, &[]);
        if reply.result < 0 { Err(-reply.result as i32) } else { Ok(reply.result as u64) }
    }

    fn descriptor(&self, place: usize) -> u64 {
        self.descriptors.get(place).map_or(u64::from(NO_DESCRIPTOR), |descriptor| *descriptor as u64)
    }

    fn make(&self, process: usize, operation: &MemoryOperation) -> MemoryOutcome {
        let done = |_| MemoryAnswer::Done;
        let counted =
            |reply: &Reply| if reply.result < 0 { Err(-reply.result as i32) } else { Ok(reply.result as usize) };
        match *operation {
            MemoryOperation::Map(address, length, rights, object) => {
                let (place, fixed) = match address {
                    Address::Any => (0, 0),
                    Address::Fixed(address) => (address, libc::MAP_FIXED),
                    Address::FixedNoReplace(address) => (address, libc::MAP_FIXED_NOREPLACE),
                };
                let (flags, fd, offset) = match object {
                    None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, u64::MAX, 0),
                    Some((fd, offset, Sharing::Shared)) => (libc::MAP_SHARED, self.descriptor(fd), offset),
                    Some((fd, offset, Sharing::Private)) => (libc::MAP_PRIVATE, self.descriptor(fd), offset),
                };
                let arguments = [place, length, protection(rights), (flags | fixed) as u64, fd, offset];
                let mapped = self.call(process, libc::SYS_mmap, &arguments)?;
                if address == Address::Any {
                    return self.call(process, libc::SYS_munmap, &[mapped, length]).map(done);
                }
                Ok(MemoryAnswer::Number(mapped))
            }
            MemoryOperation::Unmap(address, length) => {
                self.call(process, libc::SYS_munmap, &[address, length]).map(done)
            }
            MemoryOperation::Protect(address, length, rights) => {
                self.call(process, libc::SYS_mprotect, &[address, length, protection(rights)]).map(done)
            }
            MemoryOperation::Remap(address, old, new, destination, to) => {
                let fixed = (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as u64;
                let arguments = match destination {
                    Destination::Same => [address, old, new, 0, 0],
                    Destination::Any => [address, old, new, libc::MREMAP_MAYMOVE as u64, 0],
                    Destination::Fixed(place) => [address, old, new, fixed, place],
                };
                let place = self.call(process, libc::SYS_mremap, &arguments)?;
                if destination == Destination::Any && place != address {
                    let moved = self.call(process, libc::SYS_mremap, &[place, new, new, fixed, to]);
                    return moved.map(MemoryAnswer::Number);
                }
                Ok(MemoryAnswer::Number(place))
            }
            MemoryOperation::Discard(address, length) => {
                self.call(process, libc::SYS_madvise, &[address, length, libc::MADV_DONTNEED as u64]).map(done)
            }
            MemoryOperation::Synchronize(address, length) => {
                self.call(process, libc::SYS_msync, &[address, length, libc::MS_SYNC as u64]).map(done)
            }
            MemoryOperation::Load(address, length) => {
                let reply = self.ask(process, What::Load, &[address, length as u64], &[]);
                Ok(match reply.signal {
                    0 => MemoryAnswer::Bytes(reply.bytes[..length].to_vec()),
                    signal => MemoryAnswer::Signal(signal as i32),
                })
            }
            MemoryOperation::Store(address, length, byte) => {
                let reply = self.ask(process, What::Store, &[address, length as u64, byte.into()], &[]);
                Ok(match reply.signal {
                    0 => MemoryAnswer::Done,
                    signal => MemoryAnswer::Signal(signal as i32),
                })
            }
            MemoryOperation::Resize(place, size) => {
                self.call(process, libc::SYS_ftruncate, &[self.descriptor(place), size]).map(done)
            }
            MemoryOperation::WriteAt(place, length, fill, offset) => {
                let arguments = [self.descriptor(place), length as u64, offset];
                let reply = self.ask(process, What::Write, &arguments, &bytes(length, fill));
                counted(&reply).map(|count| MemoryAnswer::Number(count as u64))
            }
            MemoryOperation::ReadAt(place, length, offset) => {
                let reply = self.ask(process, What::Read, &[self.descriptor(place), length as u64, offset], &[]);
                counted(&reply).map(|count| MemoryAnswer::Bytes(reply.bytes[..count].to_vec()))
            }
            MemoryOperation::Fork(_) | MemoryOperation::Exit => unreachable!("made by `call`"),
        }
    }
}

impl System for Host {
    const NAME: &'static str = "the host";

    fn call(&mut self, _: usize, call: &MemoryCall) -> Option<MemoryOutcome> {
        let process = call.process;
        if !self.lives[process] {
            return None;
        }
        match call.operation {
            MemoryOperation::Fork(child) if self.lives[child] => return None,
            MemoryOperation::Fork(child) => {
                let reply = self.ask(process, What::Fork, &[self.served[child] as u64], &[]);
                assert!(reply.result > 0, "the host cannot fork: {}", -reply.result);
                self.receive(child);
                self.lives[child] = true;
            }
            MemoryOperation::Exit if process == 0 => return None,
            MemoryOperation::Exit => {
                self.ask(process, What::Exit, &[], &[]);
                self.lives[process] = false;
            }
            _ => return Some(self.make(process, &call.operation)),
        }
        Some(Ok(MemoryAnswer::Done))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // SAFETY: our own descriptors, and our own child, which ends as its socket is closed.
        unsafe {
            for descriptor in self.sockets.iter().chain(&self.descriptors) {
                libc::close(*descriptor);
            }
            libc::kill(self.first, SIGKILL);
            libc::waitpid(self.first, std::ptr::null_mut(), 0);
        }
    }
}

/// Children that kept the streams of the test program, and other families' sockets, outlived it, and `make test` waited for
/// the end of what they might print.
#[test]
fn a_process_keeps_no_descriptors_but_its_familys() {
    let host = Host::new();
    host.call(0, libc::SYS_getpid, &[]).unwrap();
    let kept = std::fs::read_dir(format!("/proc/{}/fd", host.first)).unwrap().count();
    assert_eq!(kept, PROCESSES + DESCRIPTORS);
}

const _: () = assert!(MOST_BYTES as u64 == PAGE);
