//! The beginning and the end of the program.

use crate::{interruptions, operations, options, own_code, scheduler, threads};

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = operations::refuse_end;

extern "C" fn begin() {
    let Some(options) = options::read() else { return };
    // Programs that this one starts take no turns.
    // SAFETY: the program has one thread yet.
    unsafe { std::env::remove_var("COMMUTANT_SCALE") };
    own_code::say();
    threads::prepare();
    interruptions::begin();
    scheduler::begin(options);
}
