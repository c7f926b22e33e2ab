//! Refusals of what belongs to another instance. Types cannot forbid all of it: two instances have the same types.
//!
//! A program that takes such values from somebody else begins its calls by [`ScaleFs::try_enter`] or [`ScaleFs::try_begin`], and
//! asks `is_of` before it ends a process or closes an object. Every other way to hand over a core, a process, a context or an
//! open object ends the program before anything is touched.
//!
//! What a call lends ([`Node`](crate::Node), what look-ups find, descriptions) names no instance: it is handed to the call that
//! has lent it, as the functions of `posix-calls` do. Debug builds refuse directories, and references to objects, of another arena.

use core::fmt;

use percpu::Core;

use crate::context::Context;
use crate::direct::Direct;
use crate::direct_data::InProcess;
use crate::host::Host;
use crate::instance::ScaleFs;
use crate::lives::Process;
use crate::node::OpenNode;

/// What is of another instance. Nothing was done with it.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherInstance {
    /// The process or context.
    Caller,
    /// The core.
    Core,
}

impl fmt::Display for OtherInstance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            OtherInstance::Caller => "process",
            OtherInstance::Core => "core",
        };
        write!(formatter, "the {what} is of another file system: use it with the one that it was made for")
    }
}

impl core::error::Error for OtherInstance {}

impl ScaleFs {
    fn check(&self, core: &Core<'_>, context: &Context) -> Result<(), OtherInstance> {
        if !context.is_of(self) {
            return Err(OtherInstance::Caller);
        }
        if self.is_core_of(core) { Ok(()) } else { Err(OtherInstance::Core) }
    }

    /// As [`ScaleFs::begin`], for a core and a context that may be of another instance.
    ///
    /// # Errors
    /// [`OtherInstance`] says which of them is.
    pub fn try_begin<'c, H: Host>(
        &'c self,
        core: &'c Core<'_>,
        context: &'c Context,
        host: &'c H,
    ) -> Result<Direct<'c, H>, OtherInstance> {
        self.check(core, context).map(|()| self.begin(core, context, host))
    }

    /// As [`ScaleFs::enter`], for a core and a process that may be of another instance.
    ///
    /// # Errors
    /// [`OtherInstance`] says which of them is.
    pub fn try_enter<'c, H: Host>(
        &'c self,
        core: &'c Core<'_>,
        process: &'c Process,
        host: &'c H,
    ) -> Result<InProcess<'c, H>, OtherInstance> {
        self.check(core, process.context()).map(|()| self.enter(core, process, host))
    }
}

impl Context {
    /// Whether it was made with this instance.
    pub fn is_of(&self, fs: &ScaleFs) -> bool {
        self.identity == fs.identity
    }
}

impl Process {
    /// Whether it was made with this instance.
    pub fn is_of(&self, fs: &ScaleFs) -> bool {
        self.context().is_of(fs)
    }
}

impl OpenNode {
    /// Whether it was opened in this instance.
    pub fn is_of(&self, fs: &ScaleFs) -> bool {
        self.instance == fs.identity
    }
}
