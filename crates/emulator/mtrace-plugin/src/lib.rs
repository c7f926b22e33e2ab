//! The tracer: a QEMU plugin that records which cache lines the calls of a test share.
//!
//! ```text
//! QEMU ── qemu_plugin::abi ──► callbacks ──► vcpu (log, call stack, nest of interrupts), one per virtual CPU
//!                     │                           │
//!                     └─ markers ──► tracer ──► window: lines shared by two cores ──► output
//! ```
//!
//! Works on a machine (`qemu-system-x86_64 -accel tcg,thread=single`) and on a program (`qemu-x86_64`) alike. A program
//! that runs tests tells by marker instructions ([`instruction::Marker`]) where windows and calls begin and end. The
//! trace's format, arguments and assumptions are described in `docs/reference/trace-format.md`.

// The unit tests' executable lacks the modules that call QEMU, and with them the users of much of the rest.
#![cfg_attr(test, allow(dead_code))]

mod arguments;
mod blocks;
mod context;
mod instruction;
mod operand;
mod trace_stacks;
mod vcpu;
mod window;

// What needs QEMU's functions is not part of the unit tests' executable, which could not be linked; it is tested with
// QEMU, in tests/.
#[cfg(not(test))]
mod callbacks;
#[cfg(not(test))]
mod install;
mod objects;
mod output;
mod tracer;
mod translations;
