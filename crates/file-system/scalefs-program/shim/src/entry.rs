//! The way in and out, in assembly: where rewritten calls of a program arrive, and where it goes on.
//!
//! ```text
//! a call:  rax, rdi, rsi, rdx, r10, r8, r9 as for the instruction `syscall`, rcx: where the program goes on
//!    │ not ours by its number, or by its descriptor          ─► syscall on the program's own stack ─► on, but for EMFILE (`after`)
//!    ▼
//! registers ─► the thread's own stack ─► dispatch::call ─┬─ answered ─────────────────────────► on
//!                                                       └─ to be issued, changed perhaps ─► syscall on the program's own stack
//!                                                              └─ dispatch::after, if something is to be done then ─► on
//! ```
//! All instructions `syscall` that may run lie in this program's text, the only one from which the kernel takes calls at once.
//!
//! **Signals** ([`crate::signals`]). From the store to `IN_CALL` to the one that takes it back, a handler does not run: its signal is
//! noted, all are blocked, and it is queued again at the end. In the windows, each a look whether one was noted and the store, all
//! registers are the program's: who finds a thread there ends the window for it.
//!
//! **Vector registers** are saved around our own code alone: a call that is only passed on touches none.

use core::arch::global_asm;
use core::mem::offset_of;

use crate::constants::EMFILE;
use crate::dispatch;
use crate::signals;
use crate::start;
use crate::threads::{self, Thread};

/// Numbers of calls that are known; higher ones are passed on.
pub(crate) const KNOWN_CALLS: usize = 512;
/// Numbers of descriptors that can be ours.
pub(crate) const TRACKED: usize = 1 << 16;

/// A call's registers, as they lie on the thread's own stack.
#[repr(C)]
pub(crate) struct Frame {
    vectors: [[u64; 2]; 16],
    r15: u64,
    r14: u64,
    r13: u64,
    r12: u64,
    rbp: u64,
    rbx: u64,
    /// The sixth argument.
    pub(crate) r9: u64,
    pub(crate) r8: u64,
    pub(crate) r10: u64,
    pub(crate) rdx: u64,
    pub(crate) rsi: u64,
    pub(crate) rdi: u64,
    /// The call's number, and then its result.
    pub(crate) rax: u64,
    /// Where the program goes on.
    rcx: u64,
}

impl Frame {
    /// The arguments.
    #[inline]
    pub(crate) fn arguments(&self) -> [u64; 6] {
        [self.rdi, self.rsi, self.rdx, self.r10, self.r8, self.r9]
    }

    /// A copy for another thread, in which the call's result is this.
    pub(crate) fn with_result(&self, result: u64) -> Frame {
        Frame { rax: result, ..*self }
    }
}

global_asm!(
    r#"
    .macro scalefs_save_frame
    push rcx
    push rax
    push rdi
    push rsi
    push rdx
    push r10
    push r8
    push r9
    push rbx
    push rbp
    push r12
    push r13
    push r14
    push r15
    sub rsp, 256
    movups [rsp + 0], xmm0
    movups [rsp + 16], xmm1
    movups [rsp + 32], xmm2
    movups [rsp + 48], xmm3
    movups [rsp + 64], xmm4
    movups [rsp + 80], xmm5
    movups [rsp + 96], xmm6
    movups [rsp + 112], xmm7
    movups [rsp + 128], xmm8
    movups [rsp + 144], xmm9
    movups [rsp + 160], xmm10
    movups [rsp + 176], xmm11
    movups [rsp + 192], xmm12
    movups [rsp + 208], xmm13
    movups [rsp + 224], xmm14
    movups [rsp + 240], xmm15
    .endm

    .text
    .globl scalefs_text
scalefs_text:

    .globl scalefs_start
scalefs_start:
    mov rdi, rsp
    xor ebp, ebp
    and rsp, -16
    sub rsp, 16
    mov rsi, rsp
    call {begin}
    /* the stack and the entry of the program, which begins with nothing in its registers */
    mov rcx, [rsp]
    mov rsp, [rsp + 8]
    xor eax, eax
    xor ebx, ebx
    xor edx, edx
    xor esi, esi
    xor edi, edi
    xor r8d, r8d
    xor r9d, r9d
    xor r10d, r10d
    xor r11d, r11d
    xor r12d, r12d
    xor r13d, r13d
    xor r14d, r14d
    xor r15d, r15d
    jmp rcx

    .p2align 6
    .globl scalefs_entry
scalefs_entry:
    cmp rax, 15
    je 4f
    cmp rax, {known_calls}
    jae 5f
    lea r11, [rip + {classes}]
    movzx r11d, byte ptr [r11 + rax]
    cmp r11d, 1
    jb 5f
    ja 6f
    mov r11d, edi
    cmp r11d, {tracked}
    jae 5f
    add r11, gs:[{ours}]
    cmp byte ptr [r11], 0
    jne 6f
5:  lea rsp, [rsp - 144]
    mov [rsp], rcx
    mov [rsp + 8], rax
    syscall
    mov rcx, [rsp]
    cmp rax, -{no_number}
    je 14f
    lea rsp, [rsp + 144]
    jmp rcx
4:  syscall
    ud2

6:  mov dword ptr gs:[{in_call}], 1
    mov gs:[{user_rsp}], rsp
    mov rsp, gs:[{stack_top}]
    scalefs_save_frame
    mov rdi, rsp
    call {call}
    jmp 22f

    /* eax: what is to be done; the stack pointer is at the frame */
22:
    movups xmm0, [rsp]
    movups xmm1, [rsp + 16]
    movups xmm2, [rsp + 32]
    movups xmm3, [rsp + 48]
    movups xmm4, [rsp + 64]
    movups xmm5, [rsp + 80]
    movups xmm6, [rsp + 96]
    movups xmm7, [rsp + 112]
    movups xmm8, [rsp + 128]
    movups xmm9, [rsp + 144]
    movups xmm10, [rsp + 160]
    movups xmm11, [rsp + 176]
    movups xmm12, [rsp + 192]
    movups xmm13, [rsp + 208]
    movups xmm14, [rsp + 224]
    movups xmm15, [rsp + 240]
    test eax, eax
    jnz 7f
    add rsp, 256
    pop r15
    pop r14
    pop r13
    pop r12
    pop rbp
    pop rbx
    pop r9
    pop r8
    pop r10
    pop rdx
    pop rsi
    pop rdi
    pop rax
    pop rcx
    mov rsp, gs:[{user_rsp}]
    .globl scalefs_window
scalefs_window:
    cmp dword ptr gs:[{pending}], 0
    jne 8f
    mov dword ptr gs:[{in_call}], 0
    .globl scalefs_window_end
scalefs_window_end:
    jmp rcx
8:  lea rsp, [rsp - 128]
    push rcx
    call 30f
    pop rcx
    lea rsp, [rsp + 128]
    jmp rcx

    /* queues the signal that was noted again, and lets signals come; keeps all registers but rcx and r11 */
30: push rax
    push rdi
    push rsi
    push rdx
    push r10
    mov eax, 39
    syscall
    mov edi, eax
    mov eax, 186
    syscall
    mov esi, eax
    mov r10, gs:[0]
    lea r10, [r10 + {info}]
    mov edx, [r10]
    mov eax, 297
    syscall
    mov dword ptr gs:[{pending}], 0
    mov dword ptr gs:[{in_call}], 0
    mov eax, 14
    mov edi, 2
    mov rsi, gs:[0]
    lea rsi, [rsi + {saved_mask}]
    xor edx, edx
    mov r10d, 8
    syscall
    pop r10
    pop rdx
    pop rsi
    pop rdi
    pop rax
    ret

    /* issues the call that the thread has, on the program's own stack; eax: 1, or what `after` is asked for then */
7:  mov r11, gs:[{user_rsp}]
    lea r11, [r11 - 216]
    mov rcx, [rsp + {f_rcx}]
    mov [r11], rcx
    mov rcx, [rsp + {f_rdi}]
    mov [r11 + 8], rcx
    mov rcx, [rsp + {f_rsi}]
    mov [r11 + 16], rcx
    mov rcx, [rsp + {f_rdx}]
    mov [r11 + 24], rcx
    mov rcx, [rsp + {f_r10}]
    mov [r11 + 32], rcx
    mov rcx, [rsp + {f_r8}]
    mov [r11 + 40], rcx
    mov rcx, [rsp + {f_r9}]
    mov [r11 + 48], rcx
    mov rcx, [rsp + {f_rax}]
    mov [r11 + 56], rcx
    mov eax, eax
    mov [r11 + 64], rax
    mov rax, gs:[{issued}]
    mov rdi, gs:[{issued} + 8]
    mov rsi, gs:[{issued} + 16]
    mov rdx, gs:[{issued} + 24]
    mov r10, gs:[{issued} + 32]
    mov r8, gs:[{issued} + 40]
    mov r9, gs:[{issued} + 48]
    mov rsp, r11
    .globl scalefs_issue_window
scalefs_issue_window:
    cmp dword ptr gs:[{pending}], 0
    jne 9f
    mov dword ptr gs:[{in_call}], 0
    .globl scalefs_issue_window_end
scalefs_issue_window_end:
10: syscall
    cmp qword ptr [rsp + 64], {nothing}
    jne 11f
    cmp rax, -{no_number}
    je 11f
    mov rcx, [rsp]
    mov rdi, [rsp + 8]
    mov rsi, [rsp + 16]
    mov rdx, [rsp + 24]
    mov r10, [rsp + 32]
    mov r8, [rsp + 40]
    mov r9, [rsp + 48]
    lea rsp, [rsp + 216]
    jmp rcx
9:  call 30b
    jmp 10b
11: mov dword ptr gs:[{in_call}], 1
    mov r11, [rsp + 64]
    mov gs:[{issued}], r11
    mov r11, [rsp + 56]
    mov gs:[{issued} + 8], r11
    mov rcx, [rsp]
    mov rdi, [rsp + 8]
    mov rsi, [rsp + 16]
    mov rdx, [rsp + 24]
    mov r10, [rsp + 32]
    mov r8, [rsp + 40]
    mov r9, [rsp + 48]
    lea rsp, [rsp + 216]
15: mov gs:[{user_rsp}], rsp
    mov rsp, gs:[{stack_top}]
    scalefs_save_frame
    mov rdi, rsp
    call {after}
    jmp 22b

    /* no number was left for a call that was passed on: `after` hears of it */
14: mov dword ptr gs:[{in_call}], 1
    mov r11, [rsp + 8]
    mov gs:[{issued} + 8], r11
    mov qword ptr gs:[{issued}], {nothing}
    lea rsp, [rsp + 144]
    jmp 15b

    /* rdi: number, rsi: arguments, rdx: the thread that is to run in the child, which shares the memory. Returns in the parent */
    .globl scalefs_clone
scalefs_clone:
    push rbx
    push rbp
    push r12
    push r13
    push r14
    push r15
    mov rax, rdi
    mov r9, rdx
    mov rdi, [rsi]
    mov rdx, [rsi + 16]
    mov r10, [rsi + 24]
    mov r8, [rsi + 32]
    mov rsi, [rsi + 8]
    syscall
    test rax, rax
    jz 12f
    pop r15
    pop r14
    pop r13
    pop r12
    pop rbp
    pop rbx
    ret
12: mov edi, 0x1001
    mov rsi, r9
    mov eax, 158
    syscall
    mov rsp, gs:[{stack_top}]
    sub rsp, {frame_bytes}
    call {child}
    xor eax, eax
    jmp 22b

    /* rdi, rsi: memory that is given back, the stack in it; then the thread ends */
    .globl scalefs_end_thread
scalefs_end_thread:
    mov eax, 11
    syscall
    xor edi, edi
    mov eax, 60
    syscall
    ud2

    /* what the kernel calls for the calls that it takes from no other text */
    .globl scalefs_dispatched
scalefs_dispatched:
    cmp dword ptr [rsi + 8], 2
    jne scalefs_signalled
    mov rax, [rdx + 168]
    mov [rdx + 152], rax
    lea rax, [rip + scalefs_entry]
    mov [rdx + 168], rax
    ret

    /* and for all other signals */
    .globl scalefs_signalled
scalefs_signalled:
    push rdi
    push rsi
    push rdx
    call {signalled}
    pop rdx
    pop rsi
    pop rdi
    test rax, rax
    jz 13f
    jmp rax
13: ret

    .globl scalefs_restorer
scalefs_restorer:
    mov eax, 15
    syscall
    ud2
    "#,
    begin = sym start::begin,
    call = sym dispatch::call,
    after = sym dispatch::after,
    child = sym threads::child,
    signalled = sym signals::signalled,
    classes = sym dispatch::CLASSES,
    known_calls = const KNOWN_CALLS,
    nothing = const dispatch::After::Nothing as u32,
    no_number = const EMFILE,
    tracked = const TRACKED,
    ours = const offset_of!(Thread, ours),
    in_call = const offset_of!(Thread, in_call),
    pending = const offset_of!(Thread, pending),
    user_rsp = const offset_of!(Thread, user_rsp),
    stack_top = const offset_of!(Thread, stack_top),
    info = const offset_of!(Thread, info),
    saved_mask = const offset_of!(Thread, saved_mask),
    issued = const offset_of!(Thread, issued),
    frame_bytes = const size_of::<Frame>(),
    f_rcx = const offset_of!(Frame, rcx),
    f_rax = const offset_of!(Frame, rax),
    f_rdi = const offset_of!(Frame, rdi),
    f_rsi = const offset_of!(Frame, rsi),
    f_rdx = const offset_of!(Frame, rdx),
    f_r10 = const offset_of!(Frame, r10),
    f_r8 = const offset_of!(Frame, r8),
    f_r9 = const offset_of!(Frame, r9),
);
