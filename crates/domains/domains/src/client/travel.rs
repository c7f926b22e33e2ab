//! A process that goes on in another domain, as at `exec`: what it takes along, as bytes.
//!
//! ```text
//! user 4, group 4, groups 2 + 4 each │ mask 4 │ working directory 9 │ number 8 │ descriptors 2 │ each: number 4,
//! description 8, object 9, reads 1, writes 1, on exec 1
//! ```
//! Memory stays behind, as `exec` gives it up. From here on the descriptions are shared with the domain that it goes to.

use messages::Transport;
use posix_calls::{AccessMode, Ended, Errno, OnExec};

use super::call::Fault;
use super::domain::Domain;
use super::process::Process;
use crate::identity::{ObjectNumber, Target};
use crate::wire::{Caller, Field, Refusal, Request, decode, encode};

/// A descriptor on its way.
struct Passed {
    number: u32,
    description: ObjectNumber,
    target: Target,
    mode: AccessMode,
    on_exec: OnExec,
}

impl Field for Passed {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.number.put(bytes);
        self.description.put(bytes);
        self.target.put(bytes);
        self.mode.read.put(bytes);
        self.mode.write.put(bytes);
        self.on_exec.put(bytes);
    }

    fn take(reader: &mut crate::wire::Reader<'_>) -> Option<Passed> {
        Some(Passed {
            number: Field::take(reader)?,
            description: Field::take(reader)?,
            target: Field::take(reader)?,
            mode: AccessMode { read: Field::take(reader)?, write: Field::take(reader)? },
            on_exec: Field::take(reader)?,
        })
    }
}

/// A process on its way.
struct Travelling {
    caller: Caller,
    umask: u32,
    working_directory: Target,
    number: ObjectNumber,
    descriptors: Vec<Passed>,
}

impl Field for Travelling {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.caller.put(bytes);
        self.umask.put(bytes);
        self.working_directory.put(bytes);
        self.number.put(bytes);
        self.descriptors.put(bytes);
    }

    fn take(reader: &mut crate::wire::Reader<'_>) -> Option<Travelling> {
        Some(Travelling {
            caller: Field::take(reader)?,
            umask: Field::take(reader)?,
            working_directory: Field::take(reader)?,
            number: Field::take(reader)?,
            descriptors: Field::take(reader)?,
        })
    }
}

impl Process {
    /// Ends here and is to go on in another domain ([`Process::arrive`]) with these bytes. Memory is given up.
    ///
    /// # Errors
    /// ENOSPC if an owner has no space for what was written to a file that is passed on, EIO if it refuses for another reason; the
    /// process has ended then, with 1 as its exit code.
    pub fn leave<T: Transport>(self, domain: &Domain<T>) -> Result<Vec<u8>, Errno> {
        let number = domain.begin(&self).process_number();
        let all = std::mem::take(&mut *self.descriptors.borrow_mut());
        let (mut descriptors, mut refused) = (Vec::new(), None::<Refusal>);
        for (number, (file, on_exec)) in all {
            let opened = domain.open_files.borrow().get(file);
            match (opened, domain.share(file)) {
                (Some(opened), Ok(description)) => {
                    descriptors.push(Passed { number, description, target: opened.target, mode: opened.mode, on_exec });
                }
                (_, Err(why)) => refused = refused.or(Some(why)),
                (None, Ok(_)) => {}
            }
            let last = domain.open_files.borrow_mut().drop_descriptor(file);
            last.into_iter().for_each(|file| domain.let_go_of_file(file));
        }
        if let Some(why) = refused {
            for Passed { description, .. } in descriptors {
                domain.post(description.home(), Request::Leave { description });
            }
            self.exit_with(domain, Ended::Exited(1));
            return Err(Fault::from(why).into());
        }
        self.give_up_memory(domain);
        let (caller, umask) = (Caller(self.credentials), self.umask.get());
        let working_directory = self.working_directory.get();
        Ok(encode(&Travelling { caller, umask, working_directory, number, descriptors }))
    }

    /// A process that has left another domain goes on in this one.
    ///
    /// # Errors
    /// EINVAL if these bytes are none that [`Process::leave`] has given.
    pub fn arrive<T: Transport>(domain: &Domain<T>, bytes: &[u8]) -> Result<Process, Errno> {
        let Travelling { caller, umask, working_directory, number, descriptors } =
            decode(bytes).ok_or(Errno::EINVAL)?;
        let process = Process::new(caller.0);
        process.umask.set(umask);
        process.working_directory.set(working_directory);
        process.number.set(Some(number));
        for Passed { number, description, target, mode, on_exec } in descriptors {
            let file = domain.take_in(description, target, mode);
            domain.begin(&process).put(number, file, on_exec);
        }
        Ok(process)
    }
}
