//! Groups of POSIX calls that happen at once or not at all.
//!
//! **Idea.** While it runs, a transaction touches nothing that others see. Its calls are POSIX's as ever (crate
//! [`posix_calls`]), over a further implementation of the operations on objects: changes go into a layer of its own, and
//! every answer of the base below is kept with its question ("what does `lock` lead to?" "nothing"). The commit prepares
//! all changed names, asks every question again, and decides. If an answer is another one, nothing has happened, and the
//! transaction is *stale*: it begins again.
//!
//! ```text
//! call ── own layer? ── question asked before? ── base, question and answer kept     nothing of others is written
//! commit:  prepare the changed names  ──  ask all questions again  ──  finish: all of it, or nothing
//! ```
//!
//! **Precision.** Answers are compared, not versions, and a question is as narrow as the rule that asks it: whether a name
//! exists, not what it leads to; whether the caller may search a directory, not all its permissions. So who changes
//! nothing that a transaction has asked for does not abort it, however near.
//!
//! **No zombies.** A transaction that went on from answers that were never true together could loop or panic. So up to 8
//! answers are all asked for again before the next call, beyond that whenever their number has doubled, and whenever a call
//! looks twice. Also what a failing transaction concludes is checked before its error is told.
//!
//! ```
//! use plain::{Plain, Process};
//! use posix_calls::names::{self, RenameMode};
//! use posix_calls::{Credentials, Errno, OpenFlags, Start::WorkingDirectory};
//! use transact::{Sharing, Transactional};
//!
//! let file_system = Plain::default();
//! let process = Process::new(&file_system, Credentials::SUPERUSER);
//! let fs = Transactional::new(Sharing::Alone, || file_system.begin(&process));
//! fs.transaction(|t| {
//!     for (new, name) in [(&b"passwd.new"[..], &b"passwd"[..]), (b"shadow.new", b"shadow")] {
//!         let file = names::open(&t.begin(), WorkingDirectory, new, OpenFlags::CREATE | OpenFlags::WRITE, 0o600)?;
//!         names::close(&t.begin(), file.handle);
//!         names::rename(&t.begin(), (WorkingDirectory, new), (WorkingDirectory, name), RenameMode::Replace)?;
//!     }
//!     Ok(())
//! })?;
//! # Ok::<(), Errno>(())
//! ```
//!
//! What is transactional, and what is refused with which error: `docs/reference/transactions.md`.
#![warn(clippy::missing_errors_doc)]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "front")]
extern crate std;

mod attempts;
mod base;
mod call;
mod changes;
mod conflict;
mod data_call;
mod decided;
mod descriptors;
mod file;
#[cfg(feature = "front")]
mod front;
mod hooks;
#[cfg(feature = "front")]
mod journal;
mod layer;
#[cfg(feature = "lists")]
mod lists;
mod loss;
mod made;
#[cfg(feature = "front")]
mod members;
mod name;
mod own;
#[cfg(feature = "front")]
mod path_calls;
mod pipe;
mod pipe_call;
mod question;
mod table;
mod transaction;
mod transactional;
mod undo;

pub use attempts::Claims;
pub use base::{Base, WithData};
pub use call::{Call, Node, OpenNode};
pub use changes::{Changes, DataBecomes, NameBecomes, ObjectChange};
pub use conflict::{Conflict, Subject};
pub use data_call::{Description, OffsetLock};
pub use decided::{Decided, Decider};
#[cfg(all(doctest, feature = "front"))]
#[doc = include_str!("../../../../docs/guides/transactions.md")]
struct Guide;

#[cfg(feature = "front")]
pub use front::{Scope, Transactions, journaled};
pub use hooks::{Participant, Refused};
#[cfg(feature = "front")]
pub use journal::Journal;
#[cfg(feature = "front")]
pub use members::Member;
pub use name::Name;
pub use own::Made;
#[cfg(feature = "front")]
pub use path_calls::{PathCalls, begin, end};
pub use transaction::{Fault, Sharing, Transaction};
pub use transactional::{Running, Transactional};
pub use undo::{NoSuchSavepoint, Savepoint};
