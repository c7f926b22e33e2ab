//! What all plugins for QEMU need: its plugin interface ([`abi`]) and installation ([`install`]), the call stack of a virtual
//! CPU, which no version of the interface shows cheaply ([`shadow_stack`], [`call_tree`]), a guest's memory ([`ram`]),
//! registers ([`registers`]), which virtual CPU runs ([`current`]), and what QEMU has besides its interface ([`symbols`]).

// The unit tests' executable could not be linked: QEMU's functions are found when QEMU loads a plugin.
#[cfg(not(test))]
pub mod abi;
pub mod call_tree;
pub mod current;
#[cfg(not(test))]
pub mod install;
pub mod ram;
#[cfg(not(test))]
pub mod registers;
pub mod shadow_stack;
pub mod symbols;
