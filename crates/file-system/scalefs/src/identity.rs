//! Which instance something belongs to.

use percpu::Arena;

/// Tells instances apart, also one from another that lay at its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity(u64);

impl Identity {
    /// Of an instance in this arena.
    pub(crate) fn new(arena: &Arena) -> Identity {
        // The only state outside of arenas: it says nothing but that two instances are two.
        static MADE: core::sync::atomic::AtomicU64 = core::sync::atomic::AtomicU64::new(0);
        let made = MADE.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
        // Other processes count for themselves, and have their arenas elsewhere or not at this time.
        Identity(core::ptr::from_ref(arena).addr() as u64 ^ made.rotate_right(16))
    }
}
