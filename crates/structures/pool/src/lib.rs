//! Memory that domains share without coherence: the only way to it, an emulator in which every forgotten flush shows, and
//! two structures that are right on it.
//!
//! **Idea.** Hosts that share a pool of memory see each other's writes only if the writer writes lines back and the reader
//! forgets its own copies. On the machines where such programs are tested nothing of this shows, as they are coherent. So all
//! goes through [`Memory`], which has three kinds of back ends: real memory with the processor's instructions ([`Mapped`]),
//! coherent machines, where these are nothing ([`Coherent`]), and an emulator (`emulated`), whose domains have caches of their
//! own that do return old data, with an adversary and a checker.
//!
//! ```text
//! write ─ write back ─ drain ─ message ─►  invalidate ─ read          all four steps, in this order
//! ```
//!
//! [`ring`] is how one domain sends messages to another, [`log`] how one tells all. `docs/reference/pool.md` has definitions,
//! rules and formats.
#![warn(clippy::missing_errors_doc)]
#![no_std]

#[cfg(any(feature = "emulated", feature = "files"))]
extern crate std;

mod checksum;
mod coherence;
mod coherent;
mod instructions;
mod line;
mod mapped;
mod memory;

#[cfg(feature = "emulated")]
pub mod emulated;
#[cfg(feature = "files")]
pub mod file;
pub mod log;
pub mod ring;

pub use checksum::checksum;
pub use coherence::{Answerer, CoherenceTest, DOMAINS, Judgement, Question};
pub use coherent::Coherent;
pub use instructions::Instructions;
pub use line::{LINE_BYTES, line_of, lines_of};
pub use mapped::Mapped;
pub use memory::{Fault, Memory, Use, in_bounds};
