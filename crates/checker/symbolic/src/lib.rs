//! Paths over unknown values: what has been decided on the way, what follows from it, and how to go on to the next path.
//!
//! A branch on an unknown is one literal: a boolean, an equality of two values of a sort, or a linear comparison of
//! integers. So a path is a conjunction of literals, and no general solver is needed to follow it: booleans are looked up,
//! sorts are a union-find with disequalities ([`sorts`]), integers ask [`solve`] about the constraints that they are
//! connected with ([`integers`]). Every change is logged, and going back takes it back ([`path`]). What paths have found is
//! compared by name ([`facts`]).
#![forbid(unsafe_code)]

pub mod facts;
pub mod integers;
pub mod linear;
pub mod literal;
pub mod path;
pub mod solve;
pub mod sorts;

pub use linear::{Constraint, Linear, Relation, TooLarge, Variable};
pub use literal::{Comparison, Decision, Fault, Literal};
pub use path::Path;
pub use solve::{Solution, Solve, Solver, System};
