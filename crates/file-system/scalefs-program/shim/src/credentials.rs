//! As whom a thread acts in the tree: as the kernel has it, each time that it changes.

use scalefs::{Credentials, MAX_GROUPS};

use crate::system;
use crate::threads::Thread;

const GETGROUPS: u64 = 115;
const SETFSUID: u64 = 122;
const SETFSGID: u64 = 123;
/// No user: asked for, none is set, and the present one is answered.
const NO_ONE: u64 = u32::MAX as u64;

/// A call that changes user or groups has been made.
pub(crate) fn changed(thread: &mut Thread) {
    let user = system::call(SETFSUID, [NO_ONE, 0, 0, 0, 0, 0]) as u32;
    let group = system::call(SETFSGID, [NO_ONE, 0, 0, 0, 0, 0]) as u32;
    let mut groups = [0_u32; MAX_GROUPS];
    // Of more than there is room for, none counts.
    let count = system::call(GETGROUPS, [MAX_GROUPS as u64, groups.as_mut_ptr() as u64, 0, 0, 0, 0]).max(0) as usize;
    if let Some(credentials) = Credentials::new(user, group, &groups[..count.min(MAX_GROUPS)]) {
        thread.credentials = credentials;
    }
}
