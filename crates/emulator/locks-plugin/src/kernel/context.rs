//! Who executes: a task, or the interrupts of a virtual CPU. Each has its calls, its open sections and its count of
//! instructions, so that an interrupt adds nothing to the section that it interrupts.

use lock_study::{Exclusion, ThreadLog};
use qemu_plugin::shadow_stack::ShadowStack;

use super::functions::Family;

/// Size and alignment of a kernel stack (x86-64: `THREAD_SIZE`).
const KERNEL_STACK_BYTES: u64 = 16 << 10;
/// Accesses so close below the innermost call belong to its frame, on any stack.
const FRAME_BYTES: u64 = 1 << 10;

/// Where contexts begin to count, so that a section that was handed to one begins before it.
const FIRST_INSTRUCTION: u64 = 1 << 48;

/// A lock that was asked for, by a function that has not returned.
#[derive(Debug, Clone, Copy)]
pub struct Pending {
    /// Of which kind.
    pub family: Family,
    /// As reader or writer.
    pub exclusion: Exclusion,
    /// Whether the function may return without it.
    pub may_fail: bool,
    /// Where the function's return address lies.
    pub return_at: u64,
    /// The function's first address.
    pub function: u64,
    /// The lock, once the function's atomic instruction has shown it.
    pub lock: Option<u64>,
}

/// A task, or the interrupts of one virtual CPU at one depth.
pub struct Context {
    /// The thread's number in the study.
    pub number: u32,
    /// Accesses of open sections.
    pub log: ThreadLog,
    /// Calls under way.
    pub stack: ShadowStack,
    /// Locks asked for, the innermost last.
    pub pending: Vec<Pending>,
    /// Instructions that it executed.
    pub instructions: u64,
}

impl Context {
    /// A context that has not run yet.
    pub fn new(number: u32) -> Self {
        Self {
            number,
            log: ThreadLog::default(),
            stack: ShadowStack::new(KERNEL_STACK_BYTES),
            pending: Vec::new(),
            instructions: FIRST_INSTRUCTION,
        }
    }

    /// Whether an address lies on the stack that the context runs on, seen from its innermost call.
    #[inline]
    pub fn is_on_stack(&self, address: u64) -> bool {
        self.stack.innermost().is_some_and(|pointer| {
            address / KERNEL_STACK_BYTES == pointer / KERNEL_STACK_BYTES
                || (pointer.saturating_sub(FRAME_BYTES)..pointer.saturating_add(KERNEL_STACK_BYTES)).contains(&address)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use qemu_plugin::call_tree::CallTree;

    #[test]
    fn the_stack_is_known_by_the_innermost_call() {
        let (mut tree, mut context) = (CallTree::new(16), Context::new(1));
        assert!(!context.is_on_stack(0xffff_c900_0001_3f00));
        context.stack.call(&mut tree, 0xffff_c900_0001_3f00, 0x10, false);
        assert!(context.is_on_stack(0xffff_c900_0001_0000));
        assert!(context.is_on_stack(0xffff_c900_0001_3fff));
        assert!(!context.is_on_stack(0xffff_c900_0002_8000));
    }
}
