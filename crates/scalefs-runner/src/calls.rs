//! The calls on an instance, each a function of its own, so that stacks name it.

use std::sync::atomic::{AtomicU64, Ordering};

use scalefs::attributes::{self, Access};
use scalefs::names::{self, RenameMode};
use scalefs::{Attributes, Direct, Errno, Fields, Follow, Node, OpenFlags, Start};
use sync::Spin;

use crate::instance::Actor;

/// An open file: a reference that [`close`] gives up.
pub type Opened = Node;

const MODE: u32 = 0o644;
const AT: Start<Node> = Start::WorkingDirectory;

fn begin(actor: &Actor) -> Direct<'_, Spin> {
    actor.file_system.begin(&actor.core, actor.context, &Spin)
}

/// Opens a file; see [`names::open`].
#[inline(never)]
pub fn open(actor: &Actor, name: &[u8], flags: OpenFlags) -> Result<Opened, Errno> {
    names::open(&begin(actor), AT, name, flags, MODE).map(|opened| opened.node)
}

/// Gives up what [`open`] returned.
#[inline(never)]
pub fn close(actor: &Actor, opened: Opened) {
    names::close(&begin(actor), opened);
}

/// See [`names::link`].
#[inline(never)]
pub fn link(actor: &Actor, old: &[u8], new: &[u8]) -> Result<(), Errno> {
    names::link(&begin(actor), (AT, old), (AT, new), Follow::Nothing)
}

/// See [`names::unlink`].
#[inline(never)]
pub fn unlink(actor: &Actor, name: &[u8]) -> Result<(), Errno> {
    names::unlink(&begin(actor), AT, name)
}

/// See [`names::rename`].
#[inline(never)]
pub fn rename(actor: &Actor, old: &[u8], new: &[u8]) -> Result<(), Errno> {
    names::rename(&begin(actor), (AT, old), (AT, new), RenameMode::Replace)
}

/// See [`attributes::stat`]: the number and the link count.
#[inline(never)]
pub fn stat(actor: &Actor, name: &[u8]) -> Result<Attributes, Errno> {
    attributes::stat(&begin(actor), AT, name, Follow::Symlinks, Fields::LINK_COUNT)
}

/// See [`attributes::access`].
#[inline(never)]
pub fn access(actor: &Actor, name: &[u8]) -> Result<(), Errno> {
    attributes::access(&begin(actor), AT, name, Follow::Symlinks, Access::EXISTS)
}

/// What is done between windows.
pub fn maintain(actor: &Actor, idle_cores_too: bool) {
    if idle_cores_too {
        actor.file_system.maintain_with_idle_cores(&actor.core, &Spin);
    } else {
        actor.file_system.maintain(&actor.core, &Spin);
    }
}

#[repr(align(128))]
struct Lines<const CORES: usize>([Line; CORES]);

#[repr(align(64))]
struct Line(AtomicU64);

/// The planted conflict: one counter for all. Atomic, relaxed: nothing hangs on its value.
static PLANTED_SHARED_COUNT: Lines<1> = Lines([const { Line(AtomicU64::new(0)) }; 1]);
/// The planted non-conflict: a counter on a line of its own for each core. Atomic, relaxed.
static PLANTED_COUNTS_PER_CORE: Lines<256> = Lines([const { Line(AtomicU64::new(0)) }; 256]);

/// Counts on a line that all cores share.
#[inline(never)]
pub fn count_shared() {
    PLANTED_SHARED_COUNT.0[0].0.fetch_add(1, Ordering::Relaxed);
}

/// Counts on the core's own line.
#[inline(never)]
pub fn count_per_core(actor: &Actor) {
    PLANTED_COUNTS_PER_CORE.0[actor.core.index().get()].0.fetch_add(1, Ordering::Relaxed);
}
