//! Words that only rise, raised per core and read exactly: the times and the size of a file.
//!
//! **Idea** (Refcache's cache of deltas, with "the larger" in place of "the sum"; section 6.3 of the paper, "defer work").
//! Two cores that write different pages of a file both move its time of modification, and both may move its end. The
//! result does not depend on their order, so they need not share a line: each raises the words in a slot of its own
//! cache, and one that asks takes the largest over all cores. Slots reach the object when the core maintains, or when
//! another object needs the slot.
//!
//! ```text
//! core 0   raise(o, 7): own slot ← 7          maintain: o ← max(o, 7), slot empty
//! core 1   raise(o, 9): own slot ← 9
//! core 2                      read(o) = max(o, 7, 9) = 9
//! ```
//!
//! ```text
//! raise(o, v):   slot = own.slots[hash(o)];  if it is not o's of this generation: apply it to its object, take it
//!                slot.words = max(slot.words, v)                    inside slot.sequence odd … even; none if v is not more
//! apply(slot):   lock o;  if o.generation is the slot's: o.words = max(o.words, slot.words)
//! read(o):       twice: sum of versions, max over o and all slots of its generation;  equal, no version odd → that is it
//! mark(o):       lock o;  generation marked;  ...  words raised, or a reset;  mark gone
//! reset(o, v):   lock o;  generation odd;  what the caller does in the meantime;  words = v;  next generation
//! ```
//!
//! **A floor.** Since words only rise, what the object has is a lower bound of what all cores together have. A caller
//! that needs no more ("is this offset below the end?") looks at the object's line alone, and shares nothing with who
//! raises. What one core has raised is a lower bound, too: who can guess the core, mostly itself, asks it alone.
//!
//! **Setting a word back** (truncation, `utimensat`) starts a new generation: slots of older ones no longer count. Who
//! raises while a reset is under way raises in the generation that the reset will end with. A raise that took the old
//! generation just before counts as having come before the reset; a caller that cannot have that excludes it by a lock
//! of its own that both hold.
//!
//! **A mark** says that somebody's decision may change the words: within the generation, in which they may be raised
//! in the meantime. Who reads asks whether it has happened; if so, he waits until the words are what they have become.
//!
//! **Exact read** is a double collect, as in `refcache`: without it a reader could combine a late small value of one core
//! with an early value of another, and return a maximum that never was.
//!
//! **Few cores to ask.** An object that was read where many cores could hold it knows which ones do: see
//! [`percpu::Holders`].
//!
//! **Lines.** A slot is a line. Objects share one only if they collide in one core's cache; the seed moves collisions.
//! The object's own line is written at evictions, in maintenance and by resets.
//!
//! **Freeing an object**: no one raises it any more, and every core has flushed since. Where objects are counted by
//! `refcache`, both follow if each core flushes here before it maintains there; of kinds that are freed late, a core may leave
//! in its cache what it has raised since its last maintenance ([`Maxima::flush_unchanged`]).
//!
//! **Lock order**: the lock of an object is taken last, one at a time.
//!
//! **Death of a process** in a raise leaves an odd sequence: [`Maxima::repair_taken_over`]. In a reset, or with a mark, it leaves
//! an odd generation and a lock that names its core: [`Maximum::repair_taken_over`].
//!
//! **Cost**: a raise that changes nothing two loads; else 3 ns; a read two lines per core that was ever on-line, or
//! per holder.
//!
//! Model: `RUSTFLAGS="--cfg loom" cargo test -p maxima --release --test loom`.
#![warn(clippy::missing_errors_doc)]
#![cfg_attr(not(loom), no_std)]

mod cache;
mod maximum;
mod slot;

pub use cache::{Maxima, MaximaConfig};
pub use maximum::{Floor, Mark, Maximum, Reset};
pub use slot::SLOT;
