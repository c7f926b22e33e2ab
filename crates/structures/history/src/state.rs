//! What histories are explained by: the state of a reference, the steps that happen in it, and when calls made them.

use std::hash::Hash;

/// A reference's state.
pub trait State: Clone + Eq + Hash + 'static {
    /// What can happen in it, with what the caller saw of it.
    type Step: Clone + PartialEq + 'static;

    /// Lets a step of a thread happen; false if it cannot, or would be seen otherwise.
    fn take(&mut self, thread: usize, step: &Self::Step) -> bool;

    /// Whether a step leaves every state as it is, whatever was seen: it is then not tried later than it may happen, which
    /// spares the search most of its orders.
    fn only_looks(_step: &Self::Step) -> bool {
        false
    }

    /// The state in which a thread has come nearer to its step, if it can: the step itself is still to happen.
    fn come_nearer(&self, _thread: usize, _step: &Self::Step) -> Option<Self> {
        None
    }
}

/// A call's steps, and when it began and ended.
#[derive(Clone, Debug)]
pub struct Event<S> {
    /// In their order.
    pub steps: Vec<S>,
    /// On a clock that all threads share.
    pub began: u64,
    /// As above.
    pub ended: u64,
}

/// A step, and when its call began and ended.
pub(crate) struct Timed<'e, S: State> {
    pub(crate) step: &'e S::Step,
    pub(crate) began: u64,
    pub(crate) ended: u64,
}
