//! What a path is asked: literals, decisions, and why there may be none.

use crate::linear::{Linear, TooLarge};
use crate::sorts::Value;

/// A program that decides more on one path is taken to loop.
pub const MAX_DECISIONS_PER_PATH: usize = 500;

/// How a linear expression is compared with 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `<= 0`
    AtMost,
    /// `== 0`
    Equal,
}

/// An atomic statement.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Literal {
    /// A boolean unknown is true.
    Bool(u32),
    /// Two values of a sort are equal.
    Same(Value, Value),
    /// A linear expression stands so to 0.
    Compare(Comparison, Linear),
}

/// A literal and the side taken.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decision {
    /// The literal.
    pub literal: Literal,
    /// Its side.
    pub holds: bool,
}

/// Why a path cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It contradicts a restriction of the model's states.
    Infeasible,
    /// The program asked something else than when it took the same decisions before.
    NotDeterministic,
    /// More than [`MAX_DECISIONS_PER_PATH`] decisions.
    TooManyDecisions,
    /// A literal speaks of an unknown that does not exist.
    NoSuchUnknown,
    /// A number of more than 64 bits.
    TooLarge,
}

impl From<TooLarge> for Fault {
    fn from(_: TooLarge) -> Self {
        Self::TooLarge
    }
}
