//! What a host's process does that makes calls on its memory: it takes one after the other from a socket and answers.
//!
//! It is a child of a program with threads, so it allocates nothing and takes no lock. Loads and stores are single instructions
//! whose registers say where to go on if they fault, as in the runner of the checker.

use std::arch::asm;

/// The most bytes that a call loads or reads.
pub const MOST_BYTES: usize = 4096;

/// What is asked of a process.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Request {
    pub what: What,
    pub arguments: [u64; 7],
}

/// See [`Request`].
#[repr(u64)]
#[derive(Clone, Copy)]
pub enum What {
    /// The system call of the first argument with the others.
    Call,
    /// `pread64` of a descriptor, bytes, offset.
    Read,
    /// `pwrite64` of a descriptor, bytes, offset; the bytes come with the request.
    Write,
    /// Address, bytes.
    Load,
    /// Address, bytes, which byte.
    Store,
    /// The socket of the child.
    Fork,
    Exit,
}

/// What a process answers: a result, or an error number or signal; bytes follow.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Reply {
    pub result: i64,
    pub signal: i64,
    pub bytes: [u8; MOST_BYTES],
}

/// A message: a request with bytes that are written.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Message {
    pub request: Request,
    pub bytes: [u8; MOST_BYTES],
}

extern "C" fn on_fault(signal: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel gives the handler (SA_SIGINFO) a context on the stack, which is this thread's alone.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    if registers[libc::REG_RIP as usize] == registers[libc::REG_R9 as usize] {
        registers[libc::REG_R8 as usize] = i64::from(signal);
        registers[libc::REG_RIP as usize] = registers[libc::REG_R10 as usize];
    } else {
        // SAFETY: sets the default action, which the fault meets when the instruction is executed again.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

fn catch_faults() {
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        // SAFETY: all-zero is a valid `sigaction`; the handler only touches the context that it is given.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_fault as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}

fn load(address: u64, byte: &mut u8) -> u64 {
    let (mut signal, mut value) = (0_u64, 0_u64);
    // SAFETY: a fault ends the access; what it loads is not used for anything but the answer.
    unsafe {
        asm!("lea r9, [rip + 2f]", "lea r10, [rip + 3f]", "2:", "movzx eax, byte ptr [rdi]", "3:",
            inout("r8") signal, out("r9") _, out("r10") _, in("rdi") address, inout("rax") value, options(nostack));
    }
    *byte = value as u8;
    signal
}

fn store(address: u64, byte: u8) -> u64 {
    let mut signal = 0_u64;
    // SAFETY: a fault ends the access; the address lies in a window that nothing else of the process uses.
    unsafe {
        asm!("lea r9, [rip + 2f]", "lea r10, [rip + 3f]", "2:", "mov byte ptr [rdi], al", "3:",
            inout("r8") signal, out("r9") _, out("r10") _, in("rdi") address, in("al") byte, options(nostack));
    }
    signal
}

fn errno() -> i64 {
    // SAFETY: of this thread.
    i64::from(unsafe { *libc::__errno_location() })
}

/// Closes all descriptors but these, which are sorted.
fn keep_only(kept: &[libc::c_int]) {
    let mut from = 0;
    for (kept, to) in kept.iter().map(|kept| (*kept, *kept)).chain([(libc::c_int::MAX, libc::c_int::MAX)]) {
        // SAFETY: the child's own descriptors, of which it uses no other.
        if from < to && unsafe { libc::syscall(libc::SYS_close_range, from, to - 1, 0) } != 0 {
            for other in from..to.min(1024) {
                // SAFETY: as above; a kernel without `close_range` (before Linux 5.9).
                unsafe { libc::close(other) };
            }
        }
        from = kept.saturating_add(1);
    }
}

/// Serves a socket until its other end is closed, in a process of its own that keeps these descriptors alone, sorted.
///
/// Other tests fork at the same time: if their children kept this family's other ends, or the streams of the test program,
/// families would wait for each other and nobody would see the program's end.
///
/// # Safety
/// Called in a child of `fork`, which does nothing else.
pub unsafe fn serve(mut socket: libc::c_int, kept: &[libc::c_int]) -> ! {
    keep_only(kept);
    // SAFETY: children of this process need not be waited for.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    catch_faults();
    loop {
        // SAFETY: all-zero is a valid message, and so is what the test sends; both are plain bytes on this stack.
        unsafe {
            let mut message: Message = std::mem::zeroed();
            let received = libc::recv(socket, (&raw mut message).cast(), size_of::<Message>(), 0);
            if received != size_of::<Message>() as isize {
                libc::_exit(0);
            }
            let mut reply = Reply { result: 0, signal: 0, bytes: [0; MOST_BYTES] };
            act(&message, &mut reply, &mut socket);
            libc::send(socket, (&raw const reply).cast(), size_of::<Reply>(), libc::MSG_NOSIGNAL);
            if matches!(message.request.what, What::Exit) {
                libc::_exit(0);
            }
        }
    }
}

/// # Safety
/// As [`serve`].
unsafe fn act(message: &Message, reply: &mut Reply, socket: &mut libc::c_int) {
    let [a, b, c, d, e, f, g] = message.request.arguments;
    let count = (b as usize).min(MOST_BYTES);
    // SAFETY: the calls concern the window and descriptors of the process; buffers hold so many bytes.
    let result = unsafe {
        match message.request.what {
            What::Call => libc::syscall(a as i64, b, c, d, e, f, g),
            What::Read => libc::pread(a as i32, reply.bytes.as_mut_ptr().cast(), count, c as i64) as i64,
            What::Write => libc::pwrite(a as i32, message.bytes.as_ptr().cast(), count, c as i64) as i64,
            What::Load => {
                for (place, byte) in reply.bytes[..count].iter_mut().enumerate() {
                    reply.signal = load(a.wrapping_add(place as u64), byte) as i64;
                    if reply.signal != 0 {
                        break;
                    }
                }
                0
            }
            What::Store => {
                for place in 0..count as u64 {
                    reply.signal = store(a.wrapping_add(place), c as u8) as i64;
                    if reply.signal != 0 {
                        break;
                    }
                }
                0
            }
            What::Fork => {
                let child = libc::syscall(libc::SYS_fork);
                if child == 0 {
                    // The parent has answered; the child serves its own socket, and answers the next request.
                    *socket = a as i32;
                    reply.result = i64::MIN;
                }
                child
            }
            What::Exit => 0,
        }
    };
    if reply.result != i64::MIN {
        reply.result = if result < 0 { -errno() } else { result };
    }
}
