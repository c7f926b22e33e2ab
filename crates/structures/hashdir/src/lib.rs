//! A directory as a hash table: lookups write nothing, changes lock one bucket each, and a rename is seen whole.
//!
//! **Idea** (sv6's directories, section 6.3 of the paper). Names hash to buckets. A bucket is a chain whose head is on
//! one line and whose lock is on another, so that lookups and failing calls touch no line that a change of another name
//! touches. An entry keeps its name, links and existence on one line and its value on another, so that `rename(a, b)`
//! over an existing b shares nothing with a call that only asks whether b exists.
//!
//! ```text
//! HashDir ─► Table ─► segment: Bucket │ head │ lock │  Bucket │ head │ lock │ ...       (64-byte lines)
//!                                        └► Entry │ next×2 state hash name │ value, value to be, tag │ ─► ...
//! ```
//!
//! **ObjectOperations.** All changes are prepared under the bucket's lock, decided, and finished:
//! ```text
//! lookup(k), exists(k)            no write; pins the epoch
//! locked = lock(k)                or lock_two(k, l), lock_all(names): buckets in the order of their addresses
//! p = locked.prepare_insert(k, v, tag) │ locked.lookup(k).prepare_remove(tag) │ .prepare_replace(v, tag)
//! operation.commit()              crate `commit`: all that carries the tag becomes true at once
//! locked.finish(p, happened)
//! ```
//! A change of one entry alone needs no tag: `insert`, `remove`, `replace` become true with one store.
//! Callers check before they lock: a lookup that shows that a call fails, or has nothing to do, returns without writing.
//! [`Found::still_present`] and [`Found::still_same`] tell whether what a lookup found has held ever since, so that a
//! check of two names has a moment at which both answers were true.
//!
//! **Timeline of rename(a, b)**, b absent:
//! ```text
//! core 0  lock a, b │ a: "gone if 7 committed" │ b: "there if 7 committed" │ commit 7 │ b: there, a: dead, unlinked
//! core 1            lookup a → there            lookup b → absent           lookup b → there; lookup a → absent
//! ```
//!
//! **Kill** (rmdir): status ALIVE → KILLING; every bucket is locked once and must be empty: an insertion that began
//! before has ended, a later one sees KILLING and waits without a lock; then the caller removes the name and the status
//! becomes DEAD forever, or ALIVE again.
//!
//! **Neighbours** (`key.rs`). Names that differ in their last byte alone lie in neighbouring buckets, so that runs of names
//! (`file-10`, `file-11`, ...) never collide, and lead to memory that is near.
//!
//! **Growth** ([`HashDir::grow`], run by maintenance): bucket by bucket into a table of four times the size. Entries
//! have two next pointers, used by alternate tables, so that a reader in an old chain is not disturbed; an old bucket
//! is marked MOVED, and those who come later go on to the new table. The next growth waits until no reader can be in
//! an old chain.
//!
//! **Listing** goes by cookie: the bit-reversed hash, with eight bits that tell equal ones apart. A bucket is a range of
//! cookies in tables of any size, so a cookie stays valid while the directory changes and grows. An entry that exists
//! during the whole listing is listed once; one that comes or goes may be listed or not.
//!
//! **Lock order**: the growth lock of a directory, then buckets by address. Waiting for a kill is done without a lock.
//!
//! **Death of a process** leaves bucket locks that name its core and entries that carry its last tag. The heir decides
//! by `Decisions::last` and calls [`HashDir::repair_taken_over`], which finishes the entries and frees the locks.
//!
//! **Cost**: lookup 4 lines when alone in its bucket (header, table, head, entry; two of them never written); insert and
//! remove one allocation, one lock, one fence. Memory: 128 bytes per entry (names to 24 bytes), 128 per bucket, at most
//! one bucket per entry after growth.
//!
//! Model: `RUSTFLAGS="--cfg loom" cargo test -p hashdir --release --test loom`.
#![warn(clippy::missing_errors_doc)]
#![cfg_attr(not(loom), no_std)]

mod change;
mod dir;
mod entry;
mod grow;
mod held;
mod key;
mod kill;
mod list;
mod table;
mod together;

pub use change::{InsertError, Locked, LockedEntry, LockedPair, Prepared, lock_two};
pub use dir::{Found, HashDir, LAYOUT, Present};
pub use entry::{ENTRY, ENTRY_CLASS, LONG_NAME, MARK};
pub use grow::Growth;
pub use key::{Key, MAX_NAME_BYTES};
pub use kill::{Killing, NotEmpty};
pub use list::{FIRST_COOKIE, Listed};
pub use table::{BUCKET, KIND_ENTRY, KIND_TABLE, RANK_BUCKET, RANK_GROW, free_retired};
pub use together::{LockedName, LockedNames, lock_all};
