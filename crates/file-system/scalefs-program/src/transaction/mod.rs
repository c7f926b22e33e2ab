//! `scalefs run --transaction`: a program, and all that it starts, whose calls on a mounted ScaleFS happen at one moment or not at all.
//!
//! ```text
//! scalefs run --transaction ─ a mount namespace of its own │ mounts the same directory once more │ starts PROGRAM, waits for all   run.rs
//!        │ /dev/fuse of that mount, and later commit or abort, by a socket                                                      talk.rs
//! server of the mount ─ a second door, all of whose calls are one transaction │ ends it                                        serve.rs
//! ```
//! **Why here.** The server is one process, in whose heap a transaction's layer and log may lie; what a program sees comes to it
//! by requests, whatever the program is. The kernel between them caches nothing in either mount, or one would not see what the
//! other has committed.
//!
//! **What is left.** A connection that ends without a word is an abort, so a process that is killed leaves nothing: the program's end by
//! a signal is not 0; with this process its end of the socket is closed; with the server all is gone that was in memory.

mod options;
mod run;
mod serve;
mod talk;

pub(crate) use options::{TransactionOptions, parse_retries};
pub(crate) use run::run;
pub(crate) use serve::listen;
