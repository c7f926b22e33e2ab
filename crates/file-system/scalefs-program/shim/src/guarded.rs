//! Memory of the program, which may not be there: looked at and written by instructions whose faults are answered.
//!
//! A fault in the text between `scalefs_guarded` and `scalefs_guarded_end` goes on at `scalefs_guard_failed`
//! ([`crate::signals`]); nothing there uses the stack.

use core::arch::global_asm;

use scalefs::Errno;

use crate::instance::planted;

global_asm!(
    r#"
    .text
    .globl scalefs_guarded
scalefs_guarded:
    .globl scalefs_copy
scalefs_copy:
    cmp rdx, 512
    jae 4f
3:  cmp rdx, 8
    jb 5f
    mov rcx, [rsi]
    mov [rdi], rcx
    add rsi, 8
    add rdi, 8
    sub rdx, 8
    jmp 3b
4:  mov rcx, rdx
    rep movsb
    xor eax, eax
    ret
5:  test rdx, rdx
    jz 6f
    mov cl, [rsi]
    mov [rdi], cl
    inc rsi
    inc rdi
    dec rdx
    jmp 5b
6:  xor eax, eax
    ret
    .globl scalefs_copy_text
scalefs_copy_text:
    xor eax, eax
1:  cmp rax, rdx
    jae 2f
    mov cl, [rsi + rax]
    mov [rdi + rax], cl
    test cl, cl
    jz 2f
    inc rax
    jmp 1b
2:  ret
    .globl scalefs_can_read
scalefs_can_read:
    mov al, [rdi]
    xor eax, eax
    ret
    .globl scalefs_can_write
scalefs_can_write:
    lock or byte ptr [rdi], 0
    xor eax, eax
    ret
    .globl scalefs_guarded_end
scalefs_guarded_end:
    .globl scalefs_guard_failed
scalefs_guard_failed:
    mov rax, -1
    ret

    .globl memcpy
memcpy:
    mov rax, rdi
    mov rcx, rdx
    cmp rdx, 32
    ja 3f
    cmp edx, 16
    jae 4f
    cmp edx, 8
    jae 5f
    cmp edx, 4
    jae 6f
    test edx, edx
    jz 7f
    movzx ecx, byte ptr [rsi]
    movzx r8d, byte ptr [rsi + rdx - 1]
    cmp edx, 2
    jbe 8f
    movzx r9d, byte ptr [rsi + 1]
    mov [rdi + 1], r9b
8:  mov [rdi], cl
    mov [rdi + rdx - 1], r8b
7:  ret
6:  mov ecx, [rsi]
    mov r8d, [rsi + rdx - 4]
    mov [rdi], ecx
    mov [rdi + rdx - 4], r8d
    ret
5:  mov rcx, [rsi]
    mov r8, [rsi + rdx - 8]
    mov [rdi], rcx
    mov [rdi + rdx - 8], r8
    ret
4:  movups xmm0, [rsi]
    movups xmm1, [rsi + rdx - 16]
    movups [rdi], xmm0
    movups [rdi + rdx - 16], xmm1
    ret
3:  rep movsb
    ret

    .globl memmove
memmove:
    mov rcx, rdi
    sub rcx, rsi
    cmp rcx, rdx
    jae memcpy
    mov rax, rdi
    mov rcx, rdx
    lea rdi, [rdi + rdx - 1]
    lea rsi, [rsi + rdx - 1]
    std
    rep movsb
    cld
    ret

    .globl memset
memset:
    mov r8, rdi
    mov eax, esi
    mov rcx, rdx
    rep stosb
    mov rax, r8
    ret

    .globl strlen
strlen:
    xor eax, eax
1:  cmp byte ptr [rdi + rax], 0
    je 2f
    inc rax
    jmp 1b
2:  ret

    .globl memcmp
memcmp:
    .globl bcmp
bcmp:
    xor ecx, ecx
1:  cmp rcx, rdx
    jae 2f
    movzx eax, byte ptr [rdi + rcx]
    movzx r8d, byte ptr [rsi + rcx]
    inc rcx
    sub eax, r8d
    jz 1b
    ret
2:  xor eax, eax
    ret
    "#
);

unsafe extern "C" {
    fn scalefs_copy(to: *mut u8, from: *const u8, length: usize) -> i64;
    fn scalefs_copy_text(to: *mut u8, from: *const u8, most: usize) -> i64;
    fn scalefs_can_read(at: u64) -> i64;
    fn scalefs_can_write(at: u64) -> i64;
}

const PAGE_BYTES: u64 = 4096;

/// Copies bytes of the program's.
///
/// # Errors
/// EFAULT if they are not there.
pub(crate) fn read_bytes(to: &mut [u8], from: u64) -> Result<(), Errno> {
    // SAFETY: there is room; what is not there to be read is answered.
    match unsafe { scalefs_copy(to.as_mut_ptr(), from as *const u8, to.len()) } {
        0 => Ok(()),
        _ => Err(Errno::EFAULT),
    }
}

/// A value of the program's.
///
/// # Errors
/// EFAULT if it is not there.
pub(crate) fn read_value<T: Plain>(from: u64) -> Result<T, Errno> {
    let mut value = T::ZERO;
    // SAFETY: any bytes are such a value; there is room for them.
    let bytes = unsafe { core::slice::from_raw_parts_mut((&raw mut value).cast::<u8>(), size_of::<T>()) };
    read_bytes(bytes, from)?;
    Ok(value)
}

/// Writes bytes to the program.
///
/// # Errors
/// EFAULT if it has no room there.
pub(crate) fn write_bytes(to: u64, from: &[u8]) -> Result<(), Errno> {
    // SAFETY: what cannot be written is answered; the address is the program's to give.
    match unsafe { scalefs_copy(to as *mut u8, from.as_ptr(), from.len()) } {
        0 => Ok(()),
        _ => Err(Errno::EFAULT),
    }
}

/// Writes a value to the program.
///
/// # Errors
/// EFAULT if it has no room there.
pub(crate) fn write_value<T: Plain>(to: u64, value: T) -> Result<(), Errno> {
    // SAFETY: a value without padding, for the time of the call.
    write_bytes(to, unsafe { core::slice::from_raw_parts((&raw const value).cast::<u8>(), size_of::<T>()) })
}

/// A text of the program's, up to its zero byte, in a buffer.
///
/// # Errors
/// EFAULT if it is not there, ENAMETOOLONG if it does not fit.
pub(crate) fn read_text(to: &mut [u8], from: u64) -> Result<&[u8], Errno> {
    // SAFETY: there is room; what is not there to be read is answered.
    let length = unsafe { scalefs_copy_text(to.as_mut_ptr(), from as *const u8, to.len()) };
    match usize::try_from(length) {
        Err(_) => Err(Errno::EFAULT),
        Ok(length) if length == to.len() => Err(Errno::ENAMETOOLONG),
        Ok(length) => Ok(&to[..length]),
    }
}

/// How many bytes of the program can be read from an address on, of as many; looked at page by page.
///
/// # Errors
/// EFAULT if not one.
pub(crate) fn source_at(at: u64, length: usize) -> Result<usize, Errno> {
    // SAFETY: reads a byte, if it is there.
    there_at(at, length, |address| unsafe { scalefs_can_read(address) })
}

/// How many bytes of the program can be written from an address on, of as many; looked at page by page.
///
/// # Errors
/// EFAULT if not one.
pub(crate) fn room_at(at: u64, length: usize) -> Result<usize, Errno> {
    // SAFETY: changes nothing, if something is there.
    there_at(at, length, |address| unsafe { scalefs_can_write(address) })
}

fn there_at(at: u64, length: usize, check: impl Fn(u64) -> i64) -> Result<usize, Errno> {
    if length == 0 || planted("shim: buffers are not looked at") {
        return Ok(length);
    }
    let last = at.checked_add(length as u64 - 1).ok_or(Errno::EFAULT)?;
    let mut address = at;
    loop {
        if check(address) != 0 {
            let there = (address - at) as usize;
            return if there == 0 || planted("shim: a part of a buffer is none") {
                Err(Errno::EFAULT)
            } else {
                Ok(there)
            };
        }
        match (address & !(PAGE_BYTES - 1)).checked_add(PAGE_BYTES) {
            Some(next) if next <= last => address = next,
            _ => return Ok(length),
        }
    }
}

/// Types of which any bytes are a value, without padding.
///
/// # Safety
/// That is so.
pub(crate) unsafe trait Plain: Copy {
    /// One of them.
    const ZERO: Self;
}

macro_rules! plain {
    ($($type:ty),*) => { $(
        // SAFETY: a number.
        unsafe impl Plain for $type {
            const ZERO: $type = 0;
        }
        // SAFETY: numbers one after the other.
        unsafe impl<const COUNT: usize> Plain for [$type; COUNT] {
            const ZERO: [$type; COUNT] = [0; COUNT];
        }
    )* };
}

plain!(u8, u16, u32, u64, i32, i64);
