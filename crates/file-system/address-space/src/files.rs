//! What an address space asks of files.

use percpu::OutOfMemory;

/// A file, as its owner calls it: the address of an object, or another number that fits into 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId(pub u64);

/// The files of a file system, in one call of a core.
pub trait Files {
    /// Takes a reference to a file that is mapped.
    fn hold(&self, file: FileId);

    /// Copies bytes of a page from `start` on, zeros behind the end. False, and nothing is copied, if the page lies behind
    /// the file's end.
    fn load(&self, file: FileId, page: u64, start: usize, bytes: &mut [u8]) -> bool;

    /// Stores bytes to a page from `start` on, if it does not lie behind the file's end; those behind the end within the page
    /// are dropped. Fails without a page for a hole.
    ///
    /// # Errors
    /// [`OutOfMemory`] without a page for a hole.
    fn store(&self, file: FileId, page: u64, start: usize, bytes: &[u8]) -> Result<bool, OutOfMemory>;

    /// How often the file was cut.
    fn cuts(&self, file: FileId) -> u64;

    /// Whether a page was cut off since the file had been cut `cuts` times. May say no after many cuts: what becomes of private
    /// copies is left open (POSIX.1-2017, `ftruncate`).
    fn is_cut_since(&self, file: FileId, page: u64, cuts: u64) -> bool;
}
