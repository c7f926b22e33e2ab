//! The calls on processes: posix_spawn and wait, with Linux's semantics.
//!
//! **`spawn` makes the new process from nothing.** It gets what it is to have: descriptors that survive `exec`, and what the
//! file actions say. `fork` copies all of the parent, most of which `exec` then throws away; so it shares lines with
//! whatever the parent's other threads do, and takes as long as the parent is large (section 4 of the paper, "decompose
//! compound operations").
//!
//! **File actions** act in order, as if on the parent's descriptors (POSIX.1-2017 `posix_spawn`). None of these is touched:
//! a number that no action has changed so far is looked up in the parent; a number that one has changed, in the child.
//! Whatever fails, nothing is left of the child, and the parent is as before.
//!
//! Processes that have lost their parent are waited for by nobody, as if by process 1.

use sync::mutant::planted;

use crate::data::{self, DescriptorOptions};
use crate::data_operations::{Calls, DataOperations};
use crate::descriptors::{DESCRIPTOR_LIMIT, OnExec};
use crate::directories;
use crate::errno::Errno;
use crate::object_operations::ObjectOperations;
use crate::process::{Ended, FileAction, Inherited, ProcessNumber, SpawnOptions, Which};
use crate::process_operations::{ChildState, ProcessOperations};
use crate::walk::Start;

/// Makes a process that runs a new program: with the caller's working directory and mask, the descriptors that survive
/// `exec`, no memory, and what the actions do.
///
/// POSIX `posix_spawn`; the program is the caller's matter, as for `exec`.
///
/// # Errors
/// EPERM for credentials of others; what an action failed with; EAGAIN without a number, ENOMEM. Then nothing has changed,
/// but for files that actions have made or cut.
pub fn spawn<P: ProcessOperations>(
    process: &P,
    actions: &[FileAction<'_>],
    options: SpawnOptions<'_>,
) -> Result<P::Process, Errno> {
    if options.credentials.is_some() && !process.objects().credentials().is_superuser() {
        return Err(Errno::EPERM);
    }
    let mut child = process.make_process(options.credentials)?;
    let prepared = prepare(process, &child, actions, options.inherited);
    match prepared.and_then(|()| process.adopt(&mut child)) {
        Ok(()) => Ok(child),
        Err(errno) => {
            process.discard(child);
            Err(errno)
        }
    }
}

fn prepare<P: ProcessOperations>(
    process: &P,
    child: &P::Process,
    actions: &[FileAction<'_>],
    inherited: Inherited,
) -> Result<(), Errno> {
    for (place, action) in actions.iter().enumerate() {
        act(process, child, &actions[..place], action)?;
    }
    match inherited {
        Inherited::Surviving => process.pass_surviving(child, actions),
        Inherited::Nothing => Ok(()),
    }
}

/// Does one action, after those that were done before.
fn act<P: ProcessOperations>(
    process: &P,
    child: &P::Process,
    done: &[FileAction<'_>],
    action: &FileAction<'_>,
) -> Result<(), Errno> {
    let check = |number| if number < DESCRIPTOR_LIMIT { Ok(()) } else { Err(Errno::EBADF) };
    let call = process.call_of(child);
    match *action {
        FileAction::Open { number, path, flags, status, permissions } => {
            check(number)?;
            let options = DescriptorOptions { status, ..DescriptorOptions::PLAIN };
            let opened = data::open(&call, Start::WorkingDirectory, path, flags, permissions, options)?;
            if opened != number {
                data::duplicate_to(&call, opened, number, OnExec::Keep)?;
                data::close(&call, opened)?;
            }
            Ok(())
        }
        FileAction::Close(number) => {
            // What the parent has there is not passed.
            call.uninstall(number).map(drop).map_err(Errno::from)
        }
        FileAction::Duplicate { number, target } => {
            check(target)?;
            if !FileAction::change(done, number) || planted("scalefs: file actions look at the parent alone") {
                process.pass_descriptor(number, child, target, OnExec::Keep)
            } else {
                data::duplicate_to(&call, number, target, OnExec::Keep).map(drop)
            }
        }
        FileAction::ChangeDirectory(path) => {
            directories::change_directory(call.objects(), Start::WorkingDirectory, path)
        }
    }
}

/// Looks for a child that has ended, and forgets it; `None` if all go on.
///
/// POSIX `waitpid` with WNOHANG; Linux `do_wait` (kernel/exit.c).
///
/// # Errors
/// ECHILD if there is no such child.
pub fn wait<P: ProcessOperations>(process: &P, which: Which) -> Result<Option<(ProcessNumber, Ended)>, Errno> {
    loop {
        let (child, is_sure) = match which {
            Which::Child(child) => (child, true),
            Which::Any => match process.ended_child()? {
                Some(child) => (child, false),
                None if process.has_child()? => return Ok(None),
                None => return Err(Errno::ECHILD),
            },
        };
        match process.take_ended(child)? {
            ChildState::Ended(ended) => return Ok(Some((child, ended))),
            ChildState::Running => return Ok(None),
            ChildState::NoChild if is_sure => return Err(Errno::ECHILD),
            // Another thread was faster.
            ChildState::NoChild => {}
        }
    }
}

/// [`wait`] until a child has ended.
///
/// # Errors
/// ECHILD if there is no such child.
pub fn wait_until_ended<'c, C: Calls>(calls: &'c C, which: Which) -> Result<(ProcessNumber, Ended), Errno>
where
    C::Call<'c>: ProcessOperations,
{
    let mut round = 0;
    loop {
        if let Some(ended) = wait(&calls.begin(), which)? {
            return Ok(ended);
        }
        calls.wait(round);
        round = round.saturating_add(1);
    }
}
