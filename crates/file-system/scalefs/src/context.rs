//! Who calls: credentials, the mask of new files' permissions, and the working directory of a process.
#![allow(unsafe_code)]

use sync::atomic::{AtomicU32, AtomicU64, Ordering};

use percpu::Core;
use posix_calls::Credentials;

use crate::identity::Identity;
use crate::inode_ref::InodeRef;
use crate::instance::ScaleFs;

/// What the calls of one process have in common. Threads of a process share it; it may lie in the arena.
///
/// It belongs to the instance with which it was made: any other ends the program. It holds a reference to the working directory,
/// which [`Context::leave`] gives up.
#[derive(Debug)]
#[must_use = "a context keeps its working directory until it leaves"]
pub struct Context {
    /// Immutable.
    pub(crate) identity: Identity,
    /// Immutable.
    credentials: Credentials,
    /// Atomic.
    umask: AtomicU32,
    /// Atomic: bits of a node that this context holds a reference to.
    working_directory: AtomicU64,
}

impl Context {
    /// A process that works in the root directory.
    pub fn new(fs: &ScaleFs, core: &Core<'_>, credentials: Credentials) -> Context {
        Context::in_directory(fs, core, credentials, 0o022, fs.root_node())
    }

    /// Another process with the same mask and working directory, and these credentials or the same (POSIX `fork`).
    ///
    /// If another thread changes the working directory of this context meanwhile, it is the old one or the new one.
    ///
    /// # Panics
    /// If the context is of another instance.
    pub fn duplicate(&self, fs: &ScaleFs, core: &Core<'_>, credentials: Option<&Credentials>) -> Context {
        self.assert_of(fs);
        Context::in_directory(
            fs,
            core,
            *credentials.unwrap_or(&self.credentials),
            self.umask(),
            self.working_directory(),
        )
    }

    fn in_directory(
        fs: &ScaleFs,
        core: &Core<'_>,
        credentials: Credentials,
        umask: u32,
        directory: InodeRef,
    ) -> Context {
        // SAFETY: the root lives as long as the instance. Another context's directory was held by that context when the caller
        // read it, and is not freed before this core has maintained, which is after it has counted.
        unsafe { fs.counts().change(core, &directory.inode().references.counted, 1) };
        Context {
            identity: fs.identity,
            credentials,
            umask: AtomicU32::new(umask & 0o777),
            working_directory: AtomicU64::new(directory.to_bits()),
        }
    }

    /// Gives up the reference to the working directory (POSIX `_exit`).
    ///
    /// # Panics
    /// If the context is of another instance.
    pub fn leave(self, fs: &ScaleFs, core: &Core<'_>) {
        self.assert_of(fs);
        self.leave_directory(fs, core);
    }

    /// Gives up the reference to the working directory: once, and last of all.
    pub(crate) fn leave_directory(&self, fs: &ScaleFs, core: &Core<'_>) {
        // SAFETY: this context held the reference, and nobody calls for it any more.
        unsafe { fs.counts().change(core, &self.working_directory().inode().references.counted, -1) };
    }

    /// Ends the program if the context is of another instance, whose objects its working directory is one of.
    #[inline]
    pub(crate) fn assert_of(&self, fs: &ScaleFs) {
        assert!(self.is_of(fs), "a process of another file system");
    }

    /// Who calls.
    #[inline]
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// Permission bits that new files do not get.
    #[inline]
    pub fn umask(&self) -> u32 {
        self.umask.load(Ordering::Relaxed)
    }

    /// Sets the mask and returns the old one (POSIX `umask`).
    pub fn set_umask(&self, mask: u32) -> u32 {
        self.umask.swap(mask & 0o777, Ordering::Relaxed)
    }

    /// The working directory. A call that has read it may use it to its end: whoever changes it gives up the reference,
    /// and the directory is not freed before all cores have maintained.
    #[inline]
    pub(crate) fn working_directory(&self) -> InodeRef {
        InodeRef::from_bits(self.working_directory.load(Ordering::Acquire))
    }

    /// Makes a directory, whose reference the caller hands over, the working directory; returns the old one with its
    /// reference.
    pub(crate) fn replace_working_directory(&self, directory: InodeRef) -> InodeRef {
        InodeRef::from_bits(self.working_directory.swap(directory.to_bits(), Ordering::AcqRel))
    }
}
