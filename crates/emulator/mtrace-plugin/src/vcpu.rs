//! What the tracer keeps per virtual CPU: the log of accesses, the call stack, and on whose behalf it works.
//!
//! A log entry is 32 bytes and is only appended; lines, conflicts and rules are worked out when the window closes. A
//! small cache of recent entries drops exact repetitions (loops, waiting threads), so that a log stays short. Nothing
//! here allocates while a call is traced: a full log counts what it loses.

use mtrace::record::AccessKind;
use mtrace::rules::{Rule, RuleSet};

use crate::context::{Level, Nest, TaskIdentity, Tasks};
use qemu_plugin::call_tree::CallTree;
use qemu_plugin::shadow_stack::ShadowStack;

/// Accesses that a log holds per window.
const LOG_CAPACITY: usize = 1 << 19;
/// Nodes that a virtual CPU's call tree holds.
const CALL_TREE_CAPACITY: usize = 1 << 18;
/// Entries of the cache of recent accesses.
const RECENT: usize = 1 << 10;
/// Size of the kernel's stacks (x86-64: `THREAD_SIZE`, also that of the interrupt stacks).
pub const KERNEL_STACK_BYTES: u64 = 16 << 10;

/// Category of an access: 0 counts, 1 + rule is ignored by that rule.
pub type Category = u8;
/// The category of accesses that count.
pub const COUNTS: Category = 0;
/// Number of categories.
pub const CATEGORY_COUNT: usize = 1 + mtrace::rules::RULE_COUNT;

/// The category that a rule gives.
pub const fn category_of(rule: Option<Rule>) -> Category {
    match rule {
        None => COUNTS,
        Some(rule) => 1 + rule as u8,
    }
}

/// What a memory callback knows of its instruction: the address in the upper 48 bits, two flags below. It travels as the
/// callback's data pointer, so that no memory has to be read for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Site(pub u64);

impl Site {
    /// The instruction lies in a function that clears memory.
    pub const CLEAR: u64 = 1;
    /// The instruction lies in a function that allocates memory.
    pub const ALLOCATOR: u64 = 2;
    /// The instruction lies in a function that preempts tasks.
    pub const PREEMPTION: u64 = 4;

    /// An instruction's address and flags. x86-64 code lies in the sign-extended 48-bit part of the address space.
    pub const fn new(address: u64, flags: u64) -> Self {
        Self(address << 16 | flags)
    }

    /// The instruction's address.
    pub const fn address(self) -> u64 {
        (self.0 as i64 >> 16) as u64
    }

    /// Whether a flag is set.
    pub const fn has(self, flag: u64) -> bool {
        self.0 & flag != 0
    }
}

/// One access as it is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Virtual address.
    pub address: u64,
    /// What identifies the memory: the virtual address in the kernel, the physical one for user memory.
    pub key: u64,
    /// The instruction.
    pub site: Site,
    /// The call stack, a node of this virtual CPU's tree.
    pub node: u32,
    /// Number of bytes.
    pub size_bytes: u8,
    /// What the access does to them.
    pub kind: AccessKind,
    /// Why the access is ignored, if it is.
    pub category: Category,
}

/// One virtual CPU.
pub struct Vcpu {
    /// Accesses of this window, repetitions left out.
    pub log: Vec<Entry>,
    recent: Box<[u32; RECENT]>,
    /// Accesses that count, repetitions included.
    pub counted: u64,
    /// Accesses that found no room in the log.
    pub lost: u64,
    /// All call stacks seen on this virtual CPU.
    pub tree: CallTree,
    stack: ShadowStack,
    /// The call during which the stack was last touched; see [`Vcpu::enter_call`].
    call_epoch: u32,
    nest: Nest,
    task: Option<TaskIdentity>,
    in_test_task: bool,
    /// Where the last call stored its return address.
    last_call_at: u64,
    /// See [`Vcpu::interrupted`].
    is_interrupted: bool,
    /// See [`Vcpu::is_preempted`].
    is_preempted: bool,
    /// Category that the nest and the task give; kept up to date with them.
    category: Category,
    /// Rules that are switched on; what the others would ignore counts.
    rules: RuleSet,
    /// Set between the two halves of a task switch.
    switched_from: Option<TaskIdentity>,
}

impl Vcpu {
    /// A virtual CPU at rest; places at least `stack_bytes` apart lie on different stacks.
    pub fn new(stack_bytes: u64, in_test_task: bool, rules: RuleSet) -> Self {
        let mut vcpu = Self {
            log: Vec::with_capacity(LOG_CAPACITY),
            recent: Box::new([0; RECENT]),
            counted: 0,
            lost: 0,
            tree: CallTree::new(CALL_TREE_CAPACITY),
            stack: ShadowStack::new(stack_bytes),
            call_epoch: 0,
            nest: Nest::default(),
            task: None,
            in_test_task,
            last_call_at: 0,
            is_interrupted: false,
            is_preempted: false,
            category: COUNTS,
            rules,
            switched_from: None,
        };
        vcpu.update_category();
        vcpu
    }

    /// Forgets the last window.
    pub fn open_window(&mut self) {
        self.log.clear();
        self.counted = 0;
        self.lost = 0;
        if self.tree.is_crowded() {
            self.tree.clear();
            self.stack.clear();
        }
    }

    /// To be called before anything is recorded: the stack that is left from an earlier traced call is void.
    #[inline]
    pub fn enter_call(&mut self, epoch: u32) {
        if self.call_epoch != epoch {
            self.call_epoch = epoch;
            self.is_interrupted = false;
            self.stack.clear();
        }
    }

    fn update_category(&mut self) {
        self.category = self.category_by(self.nest.rule(self.in_test_task));
    }

    fn category_by(&self, rule: Option<Rule>) -> Category {
        category_of(rule.filter(|&rule| self.rules.contains(rule)))
    }

    /// Logs an access. `rule` is the one that the memory itself calls for; it applies to what would count otherwise.
    #[inline]
    pub fn record(&mut self, address: u64, key: u64, site: Site, size_bytes: u8, kind: AccessKind, rule: Option<Rule>) {
        let node = self.stack.node();
        let mut category = self.category;
        if category == COUNTS {
            if rule.is_some() {
                category = self.category_by(rule);
            }
            if site.has(Site::CLEAR) && category == COUNTS && self.tree.node(node).under_allocator {
                category = self.category_by(Some(Rule::AllocationClear));
            }
        }
        self.counted += u64::from(category == COUNTS);
        let entry = Entry { address, key, site, node, size_bytes, kind, category };
        let hash = (address ^ site.0.rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let slot = (hash >> 48) as usize % RECENT;
        // A stale index points past the log's end or at another entry: the comparison is with the log itself.
        if self.log.get(self.recent[slot] as usize) == Some(&entry) {
            return;
        }
        if self.log.len() == LOG_CAPACITY {
            self.lost += 1;
            return;
        }
        self.recent[slot] = self.log.len() as u32;
        self.log.push(entry);
    }

    /// A call stored its return address, while a traced call runs.
    #[inline]
    pub fn call(&mut self, stack_pointer: u64, site: Site) {
        if self.is_interrupted {
            return;
        }
        self.last_call_at = stack_pointer;
        self.is_preempted = site.has(Site::PREEMPTION);
        if self.category == COUNTS {
            self.stack.call(&mut self.tree, stack_pointer, site.address(), site.has(Site::ALLOCATOR));
        }
    }

    /// A return loaded its address, while a traced call runs.
    #[inline]
    pub fn ret(&mut self, stack_pointer: u64) {
        if self.nest.ends_by_return()
            && let Some(segment) = self.nest.end_by_return(stack_pointer, KERNEL_STACK_BYTES)
        {
            self.stack.end_segment(segment);
            self.update_category();
        }
        if self.category == COUNTS {
            self.stack.ret(stack_pointer);
        }
    }

    /// The call sites of the present stack, the innermost first; as many as there is room for. Gives their number.
    pub fn call_sites(&self, sites: &mut [u64]) -> usize {
        let mut node = self.stack.node();
        let mut count = 0;
        while node != qemu_plugin::call_tree::ROOT && count < sites.len() {
            let known = self.tree.node(node);
            sites[count] = known.site;
            (node, count) = (known.parent, count + 1);
        }
        count
    }

    /// Whether the last call was made by a function that preempts: if the scheduler begins now, the task's time is over.
    pub fn is_preempted(&self) -> bool {
        self.is_preempted
    }

    /// The processor reads its interrupt table right after a call. To QEMU (7.2) that and the frame which it then
    /// stores are accesses of the instruction before, and the frame's parts would look like calls.
    pub fn interrupted(&mut self) {
        self.is_interrupted = true;
    }

    /// A system call, fault, interrupt or softirq begins at the instruction `entry`; `recording` tells whether a traced
    /// call runs, and so whether calls are followed.
    pub fn begin(&mut self, level: Level, entry: u64, recording: bool) {
        (self.is_interrupted, self.is_preempted) = (false, false);
        if level == Level::SystemCall {
            // Only user code makes system calls, and user code runs outside of every nest.
            self.nest.clear();
        }
        let node = match level {
            Level::SystemCall => qemu_plugin::call_tree::ROOT,
            Level::Exception | Level::Softirq | Level::Preemption => self.tree.child(self.stack.node(), entry, false),
            Level::Interrupt | Level::InterProcessorInterrupt => {
                self.tree.child(qemu_plugin::call_tree::ROOT, entry, false)
            }
        };
        let segment = self.stack.begin_segment(node);
        self.nest.begin(level, segment, recording.then_some(self.last_call_at));
        self.update_category();
    }

    /// `iretq` or `sysretq`.
    pub fn end(&mut self) {
        if let Some(segment) = self.nest.end_interrupt() {
            self.stack.end_segment(segment);
        }
        self.update_category();
    }

    /// The test's task executes a marker, in user mode.
    pub fn marked(&mut self, tasks: &mut Tasks) {
        self.nest.clear();
        self.in_test_task = true;
        if let Some(task) = self.task {
            tasks.adopt(task);
        }
        self.update_category();
    }

    /// First half of a task switch: the stack pointer of the task that leaves is stored in its structure.
    pub fn leave_task(&mut self, task: TaskIdentity) {
        self.switched_from = Some(task);
    }

    /// Second half: the stack pointer of the task that comes is loaded from its structure.
    pub fn enter_task(&mut self, task: TaskIdentity, tasks: &mut Tasks) {
        let stack = self.stack.put_away();
        if let Some(left) = self.switched_from.take().or(self.task) {
            if self.in_test_task {
                tasks.adopt(left);
            }
            tasks.put_away(left, &self.nest, stack);
        }
        let (nest, stack) = tasks.take_out(task);
        self.nest = nest;
        self.stack.take_up(&stack);
        self.task = Some(task);
        self.in_test_task = tasks.is_test_task(task);
        self.update_category();
    }

    /// A new task runs for the first time.
    pub fn begin_task(&mut self, tasks: &mut Tasks) {
        if let Some(task) = self.task {
            tasks.forget(task);
            self.in_test_task = false;
        }
        self.nest.clear();
        self.update_category();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: u64 = 0xffff_8880_0000_1000;
    const RULES: RuleSet = RuleSet::all();

    fn site(address: u64) -> Site {
        Site::new(address, 0)
    }

    /// A virtual CPU whose test task makes a system call that is traced.
    fn in_call() -> (Vcpu, Tasks) {
        let (mut vcpu, mut tasks) = (Vcpu::new(KERNEL_STACK_BYTES, false, RULES), Tasks::default());
        vcpu.open_window();
        vcpu.marked(&mut tasks);
        vcpu.enter_call(1);
        vcpu.begin(Level::SystemCall, 0x100, true);
        (vcpu, tasks)
    }

    /// Records one access and gives its category and the call sites of its stack.
    fn record(vcpu: &mut Vcpu, address: u64, site: Site) -> (Category, Vec<u64>) {
        vcpu.record(address, address, site, 8, AccessKind::Write, None);
        let entry = vcpu.log[vcpu.log.len() - 1];
        let mut sites = Vec::new();
        let mut node = entry.node;
        while node != qemu_plugin::call_tree::ROOT {
            sites.push(vcpu.tree.node(node).site);
            node = vcpu.tree.node(node).parent;
        }
        (entry.category, sites)
    }

    #[test]
    fn sites_keep_their_address_and_flags() {
        for address in [0, 0x7fff_ffff_ffff, 0xffff_8000_0000_0000, u64::MAX] {
            let site = Site::new(address, Site::CLEAR);
            assert_eq!(site.address(), address);
            assert!(site.has(Site::CLEAR) && !site.has(Site::ALLOCATOR));
        }
    }

    #[test]
    fn exact_repetitions_are_logged_once_and_counted_each_time() {
        let (mut vcpu, _) = in_call();
        for _ in 0..3 {
            record(&mut vcpu, KERNEL, site(0x10));
            record(&mut vcpu, KERNEL + 8, site(0x10));
        }
        assert_eq!((vcpu.log.len(), vcpu.counted), (2, 6));
        vcpu.open_window();
        assert_eq!(record(&mut vcpu, KERNEL, site(0x10)).0, COUNTS);
        assert_eq!((vcpu.log.len(), vcpu.counted), (1, 1));
    }

    #[test]
    fn clearing_is_ignored_under_an_allocator_only() {
        let (mut vcpu, _) = in_call();
        let clear = Site::new(0x500, Site::CLEAR);
        assert_eq!(record(&mut vcpu, KERNEL, clear).0, COUNTS);
        vcpu.call(0xffff_c900_0000_3f00, Site::new(0x600, Site::ALLOCATOR));
        vcpu.call(0xffff_c900_0000_3e00, site(0x700));
        assert_eq!(record(&mut vcpu, KERNEL, clear), (category_of(Some(Rule::AllocationClear)), vec![0x700, 0x600]));
        assert_eq!(record(&mut vcpu, KERNEL, site(0x500)).0, COUNTS);
        vcpu.ret(0xffff_c900_0000_3e00);
        vcpu.ret(0xffff_c900_0000_3f00);
        assert_eq!(record(&mut vcpu, KERNEL + 64, clear), (COUNTS, vec![]));
    }

    #[test]
    fn an_interrupt_is_ignored_and_leaves_the_call_stack_as_it_was() {
        let (mut vcpu, _) = in_call();
        vcpu.call(0xffff_c900_0000_3f00, site(0x600));
        vcpu.begin(Level::Interrupt, 0x200, true);
        vcpu.call(0xffff_c900_0000_3e00, site(0x700));
        assert_eq!(record(&mut vcpu, KERNEL, site(0x10)).0, category_of(Some(Rule::Interrupt)));
        vcpu.call(0xffff_c900_0000_3d00, site(0x710));
        vcpu.begin(Level::Softirq, 0x300, true);
        assert_eq!(record(&mut vcpu, KERNEL, site(0x10)).0, category_of(Some(Rule::Softirq)));
        vcpu.ret(0xffff_c900_0000_3d00); // the dispatcher returns
        assert_eq!(record(&mut vcpu, KERNEL, site(0x11)).0, category_of(Some(Rule::Interrupt)));
        vcpu.end();
        assert_eq!(record(&mut vcpu, KERNEL, site(0x10)), (COUNTS, vec![0x600]));
    }

    #[test]
    fn faults_and_interrupts_from_other_cores_count_with_their_entry_in_the_stack() {
        let (mut vcpu, mut tasks) = in_call();
        vcpu.call(0xffff_c900_0000_3f00, site(0x600));
        vcpu.begin(Level::Exception, 0x200, true);
        assert_eq!(record(&mut vcpu, KERNEL, site(0x10)), (COUNTS, vec![0x200, 0x600]));
        vcpu.end();
        vcpu.leave_task(1);
        vcpu.enter_task(2, &mut tasks);
        vcpu.begin(Level::InterProcessorInterrupt, 0x210, true);
        assert_eq!(record(&mut vcpu, KERNEL, site(0x10)), (COUNTS, vec![0x210]));
        vcpu.end();
        assert_eq!(record(&mut vcpu, KERNEL, site(0x12)).0, category_of(Some(Rule::OtherTask)));
    }

    #[test]
    fn other_tasks_are_ignored_until_the_tests_task_is_back_where_it_was() {
        let (mut vcpu, mut tasks) = in_call();
        vcpu.call(0xffff_c900_0000_3f00, site(0x600));
        vcpu.begin(Level::Interrupt, 0x200, true);
        vcpu.leave_task(1);
        vcpu.enter_task(2, &mut tasks);
        assert_eq!(record(&mut vcpu, KERNEL, site(0x10)).0, category_of(Some(Rule::OtherTask)));
        vcpu.leave_task(2);
        vcpu.enter_task(3, &mut tasks);
        vcpu.begin_task(&mut tasks);
        vcpu.leave_task(3);
        vcpu.enter_task(1, &mut tasks);
        assert_eq!(record(&mut vcpu, KERNEL, site(0x11)).0, category_of(Some(Rule::Interrupt)));
        vcpu.end();
        assert_eq!(record(&mut vcpu, KERNEL, site(0x12)), (COUNTS, vec![0x600]));
    }

    /// Regression: what the scheduler wrote when the kernel took the processor away (`mm_count`, `active_mm`) came and went
    /// with the timer, as the call's own work.
    #[test]
    fn preemption_is_other_tasks_work_and_waiting_is_the_calls_own() {
        let (mut vcpu, mut tasks) = in_call();
        vcpu.call(0xffff_c900_0000_3f00, site(0x600));
        vcpu.call(0xffff_c900_0000_3e00, site(0x700));
        assert!(!vcpu.is_preempted());
        vcpu.ret(0xffff_c900_0000_3e00);
        vcpu.call(0xffff_c900_0000_3e00, Site::new(0x710, Site::PREEMPTION));
        assert!(vcpu.is_preempted());
        vcpu.begin(Level::Preemption, 0x300, true);
        vcpu.call(0xffff_c900_0000_3d00, site(0x720));
        assert!(!vcpu.is_preempted());
        assert_eq!(record(&mut vcpu, KERNEL, site(0x10)).0, category_of(Some(Rule::OtherTask)));
        vcpu.leave_task(1);
        vcpu.enter_task(2, &mut tasks);
        vcpu.leave_task(2);
        vcpu.enter_task(1, &mut tasks);
        vcpu.ret(0xffff_c900_0000_3d00);
        assert_eq!(record(&mut vcpu, KERNEL, site(0x11)).0, category_of(Some(Rule::OtherTask)));
        vcpu.ret(0xffff_c900_0000_3e00);
        assert_eq!(record(&mut vcpu, KERNEL, site(0x12)), (COUNTS, vec![0x600]));
    }

    /// Regression: an interrupt after a call stored its frame as that instruction, which looked like five calls.
    #[test]
    fn what_the_processor_stores_for_an_interrupt_is_no_call() {
        let (mut vcpu, _) = in_call();
        vcpu.call(0xffff_c900_0000_3f00, site(0x600));
        vcpu.interrupted();
        for at in [0x3ef8, 0x3ef0, 0x3ee8, 0x3ee0, 0x3ed8] {
            vcpu.call(0xffff_c900_0000_0000 + at, site(0x600));
        }
        vcpu.begin(Level::InterProcessorInterrupt, 0x200, true);
        vcpu.call(0xffff_c900_0000_3ed0, site(0x700));
        assert_eq!(record(&mut vcpu, KERNEL, site(0x10)), (COUNTS, vec![0x700, 0x200]));
        vcpu.end();
        assert_eq!(record(&mut vcpu, KERNEL, site(0x11)), (COUNTS, vec![0x600]));
    }

    /// Regression: a task that last ran in an earlier call had its stack emptied when it came back, and with it what the
    /// test's task was in.
    #[test]
    fn a_task_of_earlier_calls_leaves_the_tests_call_stack_alone() {
        let (mut vcpu, mut tasks) = in_call();
        vcpu.leave_task(2);
        vcpu.enter_task(1, &mut tasks);
        vcpu.marked(&mut tasks);
        vcpu.enter_call(2);
        vcpu.begin(Level::SystemCall, 0x100, true);
        vcpu.call(0xffff_c900_0000_3f00, site(0x600));
        for other in [2, 3, 2] {
            vcpu.leave_task(1);
            vcpu.enter_task(other, &mut tasks);
            vcpu.leave_task(other);
            vcpu.enter_task(1, &mut tasks);
        }
        vcpu.call(0xffff_c900_0000_3e00, site(0x700));
        assert_eq!(record(&mut vcpu, KERNEL, site(0x10)), (COUNTS, vec![0x700, 0x600]));
    }

    #[test]
    fn a_rule_that_is_off_lets_accesses_count() {
        let mut tasks = Tasks::default();
        let mut vcpu = Vcpu::new(KERNEL_STACK_BYTES, false, RULES.without(Rule::Interrupt).without(Rule::Runner));
        vcpu.open_window();
        vcpu.marked(&mut tasks);
        vcpu.begin(Level::Interrupt, 0x200, true);
        assert_eq!(record(&mut vcpu, KERNEL, site(0x10)), (COUNTS, vec![0x200]));
        vcpu.record(0x1000, 0x1000, site(0x10), 8, AccessKind::Write, Some(Rule::Runner));
        vcpu.record(0x2000, 0x2000, site(0x10), 8, AccessKind::Write, Some(Rule::DeviceMemory));
        let categories: Vec<Category> = vcpu.log.iter().map(|entry| entry.category).collect();
        assert_eq!(categories, [COUNTS, COUNTS, category_of(Some(Rule::DeviceMemory))]);
    }

    #[test]
    fn a_full_log_counts_what_it_loses() {
        let (mut vcpu, _) = in_call();
        for index in 0..LOG_CAPACITY as u64 + 7 {
            vcpu.record(KERNEL + 8 * index, KERNEL + 8 * index, site(0x10), 8, AccessKind::Read, None);
        }
        assert_eq!((vcpu.log.len(), vcpu.lost), (LOG_CAPACITY, 7));
    }
}
