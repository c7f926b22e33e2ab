//! Programs that run batches of windows under the tracer's user mode: an implementation lies in the program itself, and
//! its calls are made by threads, one per core. Batches come on one stream and results go to another, both as
//! [`frames`]; whatever goes wrong is a line on standard error and the end of the process.
//!
//! A program brings what is its own ([`serve::Program`]); everything else is here.

pub mod frames;
pub mod planted;
pub mod serve;
pub mod symbols;
