//! What the tests of this crate build on: a guest's memory made by hand, BTF made by hand, and the real kernel if it is there.

#![allow(dead_code, reason = "each test program uses its part")]

pub mod btf;
pub mod guest;
pub mod kernel;
