//! What all plugins for QEMU need: its plugin interface ([`abi`]) and installation ([`install`]), the call stack of a virtual
//! CPU, which the interface shows no registers of ([`shadow_stack`], [`call_tree`]), a guest's memory ([`ram`]) and
//! registers all the same ([`registers`]).

// The unit tests' executable could not be linked: QEMU's functions are found when QEMU loads a plugin.
#[cfg(not(test))]
pub mod abi;
pub mod call_tree;
#[cfg(not(test))]
pub mod install;
pub mod ram;
pub mod registers;
pub mod shadow_stack;
