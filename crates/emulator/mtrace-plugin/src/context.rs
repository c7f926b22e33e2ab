//! On whose behalf a virtual CPU works: the test's call, an interrupt, a softirq, another task.
//!
//! Kept as the nest of exceptions and interrupts that began and did not end yet, plus the task that runs. Linux moves
//! a task with its nest from and to the CPU: what interrupted it stays with it when the interrupt's way out schedules
//! another task. So a nest is put away at a task switch, under the task's identity (the address at which the kernel
//! keeps its stack pointer), and taken out again when the task goes on.
//!
//! The innermost interrupt decides:
//! - a timer or device interrupt, or a softirq: ignored by the rule of that name;
//! - the scheduler, called because the task's time is over: ignored by the rule `other_task`;
//! - an interrupt that another core sent: counts, whichever task it met;
//! - none (system calls and faults belong to what runs): counts in the test's tasks, else rule `other_task`.

use std::collections::{HashMap, HashSet};

use mtrace::rules::Rule;

use qemu_plugin::shadow_stack::{Segment, WaitingStack};

/// What began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Level {
    /// A system call.
    #[default]
    SystemCall,
    /// A fault.
    Exception,
    /// A timer or device interrupt.
    Interrupt,
    /// An interrupt from another core.
    InterProcessorInterrupt,
    /// The softirq dispatcher.
    Softirq,
    /// The scheduler takes the processor away.
    Preemption,
}

impl Level {
    /// Whether it is a function's call, that ends with the function's return.
    fn ends_by_return(self) -> bool {
        matches!(self, Level::Softirq | Level::Preemption)
    }
}

/// One level of a nest.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    level: Level,
    segment: Segment,
    /// Softirq, preemption: where the function's return address lies, if known; its load ends the level.
    return_at: Option<u64>,
}

const MAX_DEPTH: usize = 16;

/// Exceptions and interrupts that began and did not end, innermost last.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nest {
    entries: [Entry; MAX_DEPTH],
    depth: usize,
    /// Levels that found no room; they end first.
    overflow: usize,
}

impl Nest {
    /// Begins a level. Where calls are not followed, it is not known where a softirq's dispatcher returns (`return_at`);
    /// its level ends with the interrupt or system call around it, or where the dispatcher is called again.
    pub fn begin(&mut self, level: Level, segment: Segment, return_at: Option<u64>) {
        if level == Level::Softirq && self.overflow == 0 && self.innermost() == Some(Level::Softirq) {
            self.entries[self.depth - 1].return_at = return_at; // the dispatcher does not interrupt itself
            return;
        }
        if self.depth == MAX_DEPTH {
            self.overflow += 1;
            return;
        }
        self.entries[self.depth] = Entry { level, segment, return_at };
        self.depth += 1;
    }

    /// `iretq`: ends the innermost level that such an instruction ends (a function left in another way goes with it).
    /// Gives the segment to end, if any.
    pub fn end_interrupt(&mut self) -> Option<Segment> {
        if self.overflow > 0 {
            self.overflow -= 1;
            return None;
        }
        let mut segment = None;
        while self.depth > 0 {
            self.depth -= 1;
            let entry = self.entries[self.depth];
            segment = Some(entry.segment);
            if !entry.level.ends_by_return() {
                break;
            }
        }
        segment
    }

    /// The CPU is back in user mode: nothing is nested any more.
    pub fn clear(&mut self) {
        self.depth = 0;
        self.overflow = 0;
    }

    /// A return loaded its address from `stack_pointer`: ends the innermost level if it was its function's, or one above
    /// it on the same stack (the function was left by a jump). Gives the segment to end.
    #[inline]
    pub fn end_by_return(&mut self, stack_pointer: u64, stack_bytes: u64) -> Option<Segment> {
        let top = self.entries[self.depth.checked_sub(1)?];
        let above = stack_pointer.wrapping_sub(top.return_at?);
        if !top.level.ends_by_return() || above >= stack_bytes || self.overflow > 0 {
            return None;
        }
        self.depth -= 1;
        Some(top.segment)
    }

    /// Whether the innermost level ends with a return.
    #[inline]
    pub fn ends_by_return(&self) -> bool {
        self.innermost().is_some_and(Level::ends_by_return)
    }

    /// The innermost level, of those that found room.
    #[inline]
    fn innermost(&self) -> Option<Level> {
        self.entries[..self.depth].last().map(|entry| entry.level)
    }

    /// The rule under which accesses are ignored, `None` if they count.
    pub fn rule(&self, in_test_task: bool) -> Option<Rule> {
        for entry in self.entries[..self.depth].iter().rev() {
            match entry.level {
                Level::Softirq => return Some(Rule::Softirq),
                Level::Preemption => return Some(Rule::OtherTask),
                Level::Interrupt => return Some(Rule::Interrupt),
                Level::InterProcessorInterrupt => return None,
                Level::SystemCall | Level::Exception => {}
            }
        }
        if in_test_task { None } else { Some(Rule::OtherTask) }
    }
}

/// Most tasks whose nests are kept.
const MAX_WAITING: usize = 1 << 14;

/// A task, by the address at which the kernel keeps its stack pointer.
pub type TaskIdentity = u64;

/// What is known of all tasks. One for all virtual CPUs; touched at task switches and markers only.
#[derive(Debug, Default)]
pub struct Tasks {
    /// Nests and call stacks of tasks that do not run now.
    waiting: HashMap<TaskIdentity, (Nest, WaitingStack)>,
    test_tasks: HashSet<TaskIdentity>,
}

impl Tasks {
    /// The task is one of the test's.
    pub fn adopt(&mut self, task: TaskIdentity) {
        self.test_tasks.insert(task);
    }

    /// Whether the task is one of the test's.
    pub fn is_test_task(&self, task: TaskIdentity) -> bool {
        self.test_tasks.contains(&task)
    }

    /// Puts the nest and the call stack of a task away.
    pub fn put_away(&mut self, task: TaskIdentity, nest: &Nest, stack: WaitingStack) {
        // Tasks that are gone leave their entries behind; a lost nest costs a few misattributed accesses at most.
        if self.waiting.len() >= MAX_WAITING {
            self.waiting.clear();
        }
        self.waiting.insert(task, (*nest, stack));
    }

    /// Takes the nest and the call stack of a task out; a task that never left has empty ones.
    pub fn take_out(&mut self, task: TaskIdentity) -> (Nest, WaitingStack) {
        self.waiting.remove(&task).unwrap_or_default()
    }

    /// A task begins at this identity: an earlier one of the same identity is gone.
    pub fn forget(&mut self, task: TaskIdentity) {
        self.waiting.remove(&task);
        self.test_tasks.remove(&task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STACK: u64 = 0x4000;

    fn nest(levels: &[Level]) -> Nest {
        let mut nest = Nest::default();
        for &level in levels {
            nest.begin(level, Segment::default(), Some(0x1000));
        }
        nest
    }

    #[test]
    fn the_innermost_interrupt_decides() {
        use Level::{Exception, InterProcessorInterrupt as Ipi, Interrupt, Preemption, Softirq, SystemCall};
        for (levels, in_test_task, rule) in [
            (&[][..], true, None),
            (&[], false, Some(Rule::OtherTask)),
            (&[SystemCall, Exception], true, None),
            (&[SystemCall, Exception], false, Some(Rule::OtherTask)),
            (&[SystemCall, Interrupt], true, Some(Rule::Interrupt)),
            (&[SystemCall, Interrupt, Exception], true, Some(Rule::Interrupt)),
            (&[SystemCall, Interrupt, Softirq], true, Some(Rule::Softirq)),
            (&[SystemCall, Softirq, Interrupt], true, Some(Rule::Interrupt)),
            (&[Ipi], true, None),
            (&[Ipi], false, None),
            (&[Interrupt, Softirq, Ipi], false, None),
            (&[Ipi, Softirq], true, Some(Rule::Softirq)),
            (&[SystemCall, Preemption], true, Some(Rule::OtherTask)),
        ] {
            assert_eq!(nest(levels).rule(in_test_task), rule, "{levels:?} {in_test_task}");
        }
    }

    #[test]
    fn levels_end_where_they_should() {
        let mut nest = nest(&[Level::SystemCall, Level::Interrupt, Level::Softirq]);
        assert!(nest.ends_by_return());
        assert_eq!(nest.end_by_return(0xff8, STACK), None);
        assert_eq!(nest.end_by_return(0x1000 + STACK, STACK), None);
        assert!(nest.end_by_return(0x1000, STACK).is_some());
        assert_eq!(nest.rule(true), Some(Rule::Interrupt));
        assert!(nest.end_by_return(0x1000, STACK).is_none());
        assert!(nest.end_interrupt().is_some());
        assert_eq!(nest.rule(true), None);
        assert!(nest.end_interrupt().is_some());
        assert!(nest.end_interrupt().is_none());
    }

    #[test]
    fn too_deep_nests_end_in_order() {
        let mut nest = nest(&[Level::Interrupt; MAX_DEPTH + 3]);
        for _ in 0..MAX_DEPTH + 2 {
            nest.end_interrupt();
            assert_eq!(nest.rule(true), Some(Rule::Interrupt));
        }
        nest.end_interrupt();
        assert_eq!(nest.rule(true), None);
    }

    #[test]
    fn a_nest_follows_its_task() {
        let mut tasks = Tasks::default();
        tasks.adopt(1);
        tasks.put_away(1, &nest(&[Level::Interrupt]), WaitingStack::default());
        let rule = |tasks: &mut Tasks, task| tasks.take_out(task).0.rule(tasks.is_test_task(task));
        assert_eq!(rule(&mut tasks, 2), Some(Rule::OtherTask));
        assert_eq!(rule(&mut tasks, 1), Some(Rule::Interrupt));
        tasks.put_away(1, &nest(&[Level::Interrupt]), WaitingStack::default());
        tasks.forget(1);
        assert_eq!(rule(&mut tasks, 1), Some(Rule::OtherTask));
    }
}
