//! Where threads' stacks lie: given by the system calls that make threads.
//!
//! A stack may be any memory (`pthread_attr_setstack`), so that data which threads share may lie next to it in one
//! mapping. glibc asks for `clone3` first, which tells where the stack begins and ends (clone3(2), `struct
//! clone_args`). An emulator may refuse it; glibc then calls `clone`, which tells the end only, and from 2.38 on it
//! does not ask for `clone3` again. Then the thread's descriptor, which glibc has filled in before, tells where the
//! stack begins.

use std::collections::BTreeMap;
use std::ops::Range;

/// `CLONE_VM`: the new thread or process has the memory of its maker.
const SHARES_MEMORY: u64 = 0x100;
/// `CLONE_SETTLS`: the call tells the thread pointer.
const SETS_THREAD_POINTER: u64 = 0x8_0000;
/// What glibc keeps at the thread pointer: `sizeof (struct pthread)`, or somewhat less, from glibc 2.36 to 2.41.
const DESCRIPTOR_BYTES: u64 = 2304;
/// The same in words.
pub const DESCRIPTOR_WORDS: usize = DESCRIPTOR_BYTES as usize / 8;
/// The end of a stack's memory lies so far after the thread pointer: the descriptor's true size, and what aligns it.
const MEMORY_END: Range<u64> = 1024..8192;
/// Thread-local variables lie between a stack's top and the thread pointer, if that is no farther.
const THREAD_LOCAL_LIMIT_BYTES: u64 = 1 << 20;
/// `clone` in glibc puts what the thread is to call on its stack first.
const FIRST_FRAME_BYTES: u64 = 64;

#[derive(Debug, Clone, Copy)]
struct Stack {
    /// The first stack pointer.
    top: u64,
    /// After the thread's descriptor, which lies on top together with thread-local variables.
    end: u64,
}

/// The stacks of threads that were made, by their lowest address.
#[derive(Debug, Default)]
pub struct ThreadStacks(BTreeMap<u64, Stack>);

impl ThreadStacks {
    /// The first stacks of all.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// `clone3` was called; `arguments` is the beginning of its structure.
    pub fn clone3(&mut self, arguments: [u64; 8]) {
        let [flags, _, _, _, _, bottom, size_bytes, thread_pointer] = arguments;
        let top = bottom.saturating_add(size_bytes);
        if flags & SHARES_MEMORY == 0 || bottom == 0 || size_bytes == 0 {
            return;
        }
        let local = thread_pointer >= top && thread_pointer - top < THREAD_LOCAL_LIMIT_BYTES;
        let end = if local { thread_pointer.saturating_add(DESCRIPTOR_BYTES) } else { top };
        self.forget(bottom..end);
        self.0.insert(bottom, Stack { top, end });
    }

    /// `clone` was called for a thread that begins with this stack pointer and has this thread pointer, at which these words
    /// are. What is known of older stacks there ends.
    pub fn clone(&mut self, flags: u64, top: u64, thread_pointer: u64, descriptor: Option<&[u64; DESCRIPTOR_WORDS]>) {
        let told = self
            .0
            .range(..top)
            .next_back()
            .is_some_and(|(_, stack)| (stack.top.saturating_sub(FIRST_FRAME_BYTES)..=stack.top).contains(&top));
        if flags & SHARES_MEMORY == 0 || top == 0 || told {
            return;
        }
        self.forget(top - 1..top);
        if flags & SETS_THREAD_POINTER != 0
            && let Some(bottom) = descriptor.and_then(|words| bottom_in(words, top, thread_pointer))
        {
            let end = thread_pointer.saturating_add(DESCRIPTOR_BYTES);
            self.forget(bottom..end);
            self.0.insert(bottom, Stack { top, end });
        }
    }

    /// The stack that a thread's first stack pointer lies in, if its extent is known.
    pub fn around(&self, stack_pointer: u64) -> Option<Range<u64>> {
        let (&bottom, stack) = self.0.range(..=stack_pointer).next_back()?;
        (stack_pointer < stack.end).then_some(bottom..stack.end)
    }

    fn forget(&mut self, range: Range<u64>) {
        while let Some((&bottom, _)) =
            self.0.range(..range.end).next_back().filter(|(_, stack)| stack.end > range.start)
        {
            self.0.remove(&bottom);
        }
    }
}

/// Where the memory of a stack begins that ends after its thread's descriptor: two words next to each other, first
/// address and size (`stackblock` and `stackblock_size` of glibc's `struct pthread`, whose places differ from one
/// version to the next).
fn bottom_in(descriptor: &[u64; DESCRIPTOR_WORDS], top: u64, thread_pointer: u64) -> Option<u64> {
    descriptor.windows(2).find_map(|pair| {
        let end = pair[0].checked_add(pair[1])?;
        let is_memory =
            pair[0] < top && top <= thread_pointer && MEMORY_END.contains(&end.checked_sub(thread_pointer)?);
        is_memory.then_some(pair[0])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAD: u64 = 0x3d_0f00;

    #[test]
    fn a_stack_reaches_from_what_clone3_was_told_to_behind_the_descriptor() {
        let mut stacks = ThreadStacks::new();
        stacks.clone3([THREAD, 0, 0, 0, 0, 0x10_0000, 0x8000, 0x10_8700]);
        stacks.clone(THREAD, 0x10_7ff0, 0, None); // the same thread, after the emulator refused clone3
        assert_eq!(stacks.around(0x10_7f00), Some(0x10_0000..0x10_9000));
        assert_eq!(stacks.around(0x0f_ffff), None);
        assert_eq!(stacks.around(0x10_9000), None, "what lies behind is not the thread's");
    }

    #[test]
    fn a_stack_in_memory_that_is_used_again_is_another_one() {
        let mut stacks = ThreadStacks::new();
        stacks.clone3([THREAD, 0, 0, 0, 0, 0x10_0000, 0x8000, 0]);
        stacks.clone3([THREAD, 0, 0, 0, 0, 0x10_4000, 0x8000, 0]);
        assert_eq!((stacks.around(0x10_1000), stacks.around(0x10_5000)), (None, Some(0x10_4000..0x10_c000)));
        stacks.clone(THREAD, 0x10_6000, 0, None); // given its end only
        assert_eq!(stacks.around(0x10_5f00), None);
    }

    #[test]
    fn a_stack_that_clone_alone_tells_of_begins_where_the_descriptor_says() {
        let (thread_pointer, bottom) = (0x10_f6c0, 0x10_0000);
        for place in [0, 17, DESCRIPTOR_WORDS - 2] {
            let mut words = [7; DESCRIPTOR_WORDS];
            (words[place], words[place + 1]) = (bottom, 0x1_0000);
            let mut stacks = ThreadStacks::new();
            stacks.clone(THREAD, 0x10_ef70, thread_pointer, Some(&words));
            assert_eq!(stacks.around(0x10_ef00), Some(bottom..thread_pointer + DESCRIPTOR_BYTES));
            assert_eq!(stacks.around(bottom - 1), None);
            assert_eq!(stacks.around(bottom + 0x1_0000), None, "what lies behind is not the thread's");
        }
    }

    #[test]
    fn a_descriptor_that_tells_no_stack_leaves_it_unknown() {
        let thread_pointer = 0x10_f6c0;
        for (block, size_bytes) in [(0x10_f000, 0x1000), (0x10_0000, 0x8000), (0x10_0000, 0x10_0000), (8, u64::MAX)] {
            let mut words = [7; DESCRIPTOR_WORDS];
            (words[30], words[31]) = (block, size_bytes);
            let mut stacks = ThreadStacks::new();
            stacks.clone(THREAD, 0x10_ef70, thread_pointer, Some(&words));
            stacks.clone(0x100, 0x10_ef70, thread_pointer, Some(&words)); // tells no thread pointer
            assert_eq!(stacks.around(0x10_ef00), None, "{block:#x} {size_bytes:#x}");
        }
    }

    #[test]
    fn a_process_with_memory_of_its_own_tells_nothing() {
        let mut stacks = ThreadStacks::new();
        stacks.clone3([0x1200_0000, 0, 0, 0, 17, 0x10_0000, 0x8000, 0]);
        stacks.clone3([THREAD, 0, 0, 0, 0, 0, 0, 0]);
        stacks.clone3([THREAD, 0, 0, 0, 0, u64::MAX, u64::MAX, u64::MAX]);
        assert_eq!(stacks.around(0x10_1000), None);
    }
}
