//! Programs of the tree that run are not written, and what is open for writing is not executed (Linux: ETXTBSY). Each seat says which
//! inode its process has loaded as its program; who writes is found in all processes' descriptors and mappings. Where one process
//! executes a file in the moment in which another one opens it for writing, both may be let.

use percpu::OwnerId;
use scalefs::attributes::{self, Access};
use scalefs::{DataOperations, Errno, Follow, Kind, data};
use shared_instance::Mapping;

use crate::decimal::Decimal;
use crate::instance::{self, planted};
use crate::names::on_tree;
use crate::paths::From;
use crate::stand_ins;
use crate::system::{self, number};
use crate::threads::Thread;

/// Whether what a path leads to may be written, as far as it is no program that runs. What is wrong else is said by the call itself.
///
/// # Errors
/// ETXTBSY.
pub(crate) fn check(thread: &Thread, from: From, path: &[u8], follow: Follow) -> Result<(), Errno> {
    if !instance::control().has_run_programs() || planted("shim: programs that run are written") {
        return Ok(());
    }
    let Ok((Kind::Regular, inode)) = stand_ins::look(thread, from, path, follow) else { return Ok(()) };
    let write = Access { read: false, write: true, execute: false };
    let may_be = on_tree(thread, from, |call, start| attributes::access(call.objects(), start, path, follow, write));
    if may_be.is_ok() && runs(inode) { Err(Errno::ETXTBSY) } else { Ok(()) }
}

/// Whether what was opened to be executed may be: no one has it open for writing, or has mapped it so.
///
/// # Errors
/// ETXTBSY.
pub(crate) fn check_execution(thread: &Thread, number: u32) -> Result<(), Errno> {
    let is_written = instance::call(thread, |call| {
        let node = data::node(call, number)?;
        let file = call.mapped_file(node).map(|file| file.0);
        let is_mapped = |mapping: &Mapping| {
            mapping.mapped().is_some_and(|mapped| mapped.may_write && Some(mapped.file) == file)
                && mapping.owner().is_some_and(is_there)
        };
        Ok(call.is_open_for_writing(node, is_there) || instance::control().mappings.all().iter().any(is_mapped))
    })?;
    if is_written && !planted("shim: what is written is executed") { Err(Errno::ETXTBSY) } else { Ok(()) }
}

/// Whether an owner of cores has not ended, or one who runs in its memory (`vfork`). Who has no seat is the supervisor or its heir, which
/// opens nothing for writing: it is just burying what has it.
fn is_there(owner: OwnerId) -> bool {
    let mut all = instance::control().seats.all().iter();
    all.any(|seat| {
        // Looked at first: who leaves the seat forgets it first.
        let process = seat.process();
        (seat.owner() == Some(owner) || seat.lender() == Some(owner)) && process.is_none_or(has_a_program)
    })
}

fn runs(inode: u64) -> bool {
    let all = instance::control().seats.all().iter();
    all.filter(|seat| seat.program_inode() == inode).any(|seat| seat.process().is_some_and(has_a_program))
}

/// Whether a process has not ended: one that has is buried a little later, and has no program for the kernel either.
fn has_a_program(process: i32) -> bool {
    const ENOENT: i32 = 2;
    let mut path = [0_u8; 40];
    let decimal = Decimal::of(u64::from(process.cast_unsigned()));
    let parts = [b"/proc/", decimal.digits(), b"/exe"].into_iter().flatten();
    path.iter_mut().zip(parts).for_each(|(place, byte)| *place = *byte);
    let mut target = [0_u8; 8];
    let arguments = [path.as_ptr() as u64, target.as_mut_ptr() as u64, target.len() as u64, 0, 0, 0];
    system::try_call(number::READLINK, arguments) != Err(ENOENT)
}
