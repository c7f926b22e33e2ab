//! Reference counts that are changed per core, read exactly when asked, and found to be zero in time.
//!
//! **Idea** (Refcache: Clements, Kaashoek, Zeldovich, RadixVM, EuroSys 2013). A core does not change an object's count
//! but a *delta* in a slot of its own cache. Deltas reach the count when the core maintains, or when another object
//! needs the slot. A count that is zero is no proof, since another core may still cache an increment: the object is put
//! on the review queue of the core that saw zero, and freed if it stayed zero, untouched, until every core has flushed.
//!
//! ```text
//! epoch        5                        6                             7
//! core 0   -1 ─ flush: count 1→0,       flush                        review: still zero, not dirty → free
//!               queue with epoch 5
//! core 1         flush (delta 0)        flush: a delta would have made the object dirty
//! ```
//!
//! ```text
//! change(o, d):  slot = own.slots[hash(o)];  if it holds another object: apply its delta, take the slot
//!                slot.delta += d                                    inside slot.sequence odd … even
//! maintain:      apply all deltas;  report that (crate `rounds`): the epoch is over when all have;
//!                review what was queued two epochs ago
//! apply(o, d):   count += d;  if queued: dirty;  else if count = 0: queue it here
//! review(o):     count ≠ 0: leave the queue;  dirty, or a weak reference was used: queue again;  else free
//! exact(o):      twice: sum of versions, count + deltas of o;  equal and no version odd → that is the count
//! ```
//!
//! **Exact read** is a double collect: versions only grow, so equal sums mean that no slot changed in between, and the
//! count that the slots and the object showed existed at one moment. A delta can be *pending* on an operation (see crate
//! `commit`): it counts from the moment that the operation commits. A slot has room for one; of many counts that depend on
//! one operation, those whose slot is taken wait in their objects.
//!
//! **Epochs serve as reclamation too.** An object that was reachable by lock-free readers needs no other: a reader that
//! found it, and took a reference in the same call, flushes that before the second epoch ends.
//!
//! **Weak references** are a pointer with a bit that says "the target is under review": using the reference clears the
//! bit, and then the review starts again.
//!
//! **Eager zero.** [`RefCache::decrement_eager`] decrements and reads exactly, for objects whose last release others
//! must notice at once (pipe ends). It scales until it is used.
//!
//! **Lines.** A slot is a line. Changing counts of different objects shares nothing unless their slots collide in one
//! core's cache (then an eviction writes the other object's count); the seed moves collisions elsewhere.
//!
//! **Off-line cores** must have flushed too: run `maintain` for them with `Arena::for_each_idle_core`.
//!
//! **Death of a process** in `change` can leave a slot's sequence odd: the heir of the core calls
//! [`RefCache::repair_taken_over`], which also makes the list of used slots again. A delta that was not written yet is
//! lost with its call. A death between the two stores that move a delta (from pending to settled, from the slot to the
//! object) leaves an increment counted twice or a decrement forgotten: the count of one object is then too high by that
//! delta, the object stays forever, and is never freed under its names. One object that was about to be queued,
//! reviewed or freed stays, too. `tests/deaths.rs` holds these bounds at each store.
//!
//! **Few cores to ask.** A [`Noted`] count knows which cores have deltas of it, once it was read exactly where many cores
//! could have some: see [`percpu::Holders`].
//!
//! **Cost**: change 2 to 4 ns; exact read two lines per core that was ever on-line, of a count that notes its holders one per
//! holder; maintain the slots in use, and one
//! line that 16 cores share, whatever the number of cores.
//! Memory: 64 bytes times `slots_per_core` per core.
//!
//! Model: `RUSTFLAGS="--cfg loom" cargo test -p refcache --release --test loom`.
#![warn(clippy::missing_errors_doc)]
#![cfg_attr(not(loom), no_std)]

mod cache;
mod counted;
mod queue;
mod review;
mod slot;

pub use cache::{Pending, RefCache, RefCacheConfig};
pub use counted::{Count, Counted, CountedKind, Noted, WeakRef};
pub use review::Maintained;
pub use slot::SLOT;
