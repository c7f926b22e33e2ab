//! The adapters by which the target `olf` makes calls of the lists and maps of crate `olf`: `map` and `sorted` for the
//! interface `lists`, `list` for `lists-ends`. They are one library, since what most of its bytes describe is what they share.

mod list;
mod map;
mod sorted;
mod things;
