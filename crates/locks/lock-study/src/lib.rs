//! The lock view of Commutant (syncchar): which critical sections could have run at the same time?
//!
//! ```text
//! recorder ─ accesses ─► ThreadLog ─ section ends ─► Section ─► Study ─► LockReport
//!          └ acquires, releases, waits ──────────────────────────┘
//! ```
//!
//! A *critical section* is what a thread does between acquiring a lock and releasing it; its *address set* is the bytes
//! that it reads and writes. Two sections of one lock are *data independent* if neither writes what the other touches
//! ("The Limits of Optimistic Concurrency", section 2). The study compares each section with the sections that it waited
//! for, and with the last [`Options::window_sections`] sections of other threads under the same lock (section 3 of the
//! paper), so memory is bounded by locks and windows, not by the length of the run.
//!
//! Nothing in here knows how accesses are recorded: a program under emulation and a kernel in a machine feed the same
//! study.

#![forbid(unsafe_code)]

mod address_set;
mod density;
mod guarded;
mod history;
mod kinds;
mod lock_words;
mod measures;
mod report;
mod study;
mod thread_log;

pub use address_set::{AddressSet, Overlap, Shared, Word};
pub use density::{CROWDS, Density};
pub use history::{History, Section};
pub use kinds::{Gaps, Kind, KindIndex, KindPairs, KindReport, Kinds, ThreadReport};
pub use lock_words::LockWords;
pub use measures::{GRANULARITIES, Percent, Span, Spans};
pub use report::{FieldReport, FieldSet, FieldTally, LockReport, Pairs, WINDOWS, WindowTally};
pub use study::{Exclusion, Fields, LockId, Moment, Options, Study};
pub use thread_log::ThreadLog;
