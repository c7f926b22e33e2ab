//! What all virtual CPUs share: who runs where, which locks they hold, and the study.
//!
//! The emulator runs all virtual CPUs in one thread, by turns, so nothing here is ever asked for by two at once.

use std::collections::HashMap;
use std::ops::Range;
use std::time::Instant;

use lock_study::{LockId, Moment, Options, Study};
use qemu_plugin::call_tree::{CallTree, ROOT};

use super::context::{Context, Pending};
use super::functions::{Entry, Exit, Family};
use super::names::{Class, LockNames};

/// Call stacks and places of access that are distinguished.
const CALL_TREE_NODES: usize = 1 << 20;

/// Places of access that were looked up lately: the tree lies all over memory.
struct Sites(Box<[(u32, u64, u32); RECENT_SITES]>);

const RECENT_SITES: usize = 1 << 12;

impl Default for Sites {
    fn default() -> Self {
        Self(Box::new([(ROOT, 0, ROOT); RECENT_SITES]))
    }
}

impl Sites {
    /// The tree's node for an access by the instruction at `site`, made by the stack `node`.
    #[inline]
    fn number(&mut self, tree: &mut CallTree, node: u32, site: u64) -> u32 {
        let hash = (site ^ u64::from(node).rotate_left(40)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52;
        let recent = &mut self.0[hash as usize % RECENT_SITES];
        if (recent.0, recent.1) != (node, site) {
            *recent = (node, site, tree.child(node, site, false));
        }
        recent.2
    }
}

/// A task, by the address at which the kernel keeps its stack pointer.
type TaskIdentity = u64;

/// What happened between two things that the recorder was informed of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Entries of functions that acquire, and of their releasing instructions: the second count of acquires.
    pub calls: u64,
    /// Attempts that came back without the lock.
    pub failed: u64,
    /// Read sections of RCU.
    pub read_copy_update: u64,
    /// Sections that a task switch handed to the next task.
    pub handed_over: u64,
}

/// One virtual CPU.
struct Cpu {
    task: usize,
    /// Interrupts and, within them, faults that have begun and not ended; whether it is an interrupt.
    nest: Vec<bool>,
    interrupt_depth: usize,
    /// One per depth.
    interrupts: Vec<Context>,
    /// Instructions of the virtual CPU when its context was last charged.
    charged: u64,
    /// Its per-CPU data.
    own_data: Range<u64>,
}

/// The state behind the callbacks.
pub struct Recorder<N> {
    study: Study,
    names: N,
    tree: CallTree,
    sites: Sites,
    cpus: Vec<Cpu>,
    tasks: Vec<Context>,
    /// Index into `tasks`.
    task_of: HashMap<TaskIdentity, usize>,
    thread_count: u32,
    /// By class number.
    classes: Vec<Class>,
    class_numbers: HashMap<Class, u64>,
    /// By lock.
    families: Vec<Family>,
    counts: Counts,
    active: bool,
    /// Instructions of all virtual CPUs when recording began last, and those recorded before.
    begun: u64,
    recorded: u64,
    started: Instant,
    filters_stack: bool,
}

/// A context's thread, and its present moment by its own count.
fn now(context: &Context) -> (u32, Moment) {
    (context.number, Moment { instructions: context.instructions, nanoseconds: 0 })
}

/// A virtual CPU's number and how many instructions it has executed.
#[derive(Debug, Clone, Copy)]
pub struct At {
    /// The virtual CPU.
    pub cpu: usize,
    /// Its instructions so far.
    pub instructions: u64,
}

/// What the callbacks must know after an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mood {
    /// Whether the virtual CPU's context has an open section.
    pub in_section: bool,
    /// A word that is a lock from now on.
    pub watch: Option<u64>,
}

impl<N: LockNames> Recorder<N> {
    /// A recorder that has seen nothing; it records nothing before the first [`Entry::Phase`].
    pub fn new(names: N, options: Options, filters_stack: bool) -> Self {
        Self {
            study: Study::new(options),
            names,
            tree: CallTree::new(CALL_TREE_NODES),
            sites: Sites::default(),
            cpus: Vec::new(),
            tasks: Vec::new(),
            task_of: HashMap::new(),
            thread_count: 0,
            classes: Vec::new(),
            class_numbers: HashMap::new(),
            families: Vec::new(),
            counts: Counts::default(),
            active: false,
            begun: 0,
            recorded: 0,
            started: Instant::now(),
            filters_stack,
        }
    }

    /// A virtual CPU comes up.
    pub fn add_cpu(&mut self, cpu: usize) {
        while self.cpus.len() <= cpu {
            let task = self.new_task();
            self.cpus.push(Cpu {
                task,
                nest: Vec::new(),
                interrupt_depth: 0,
                interrupts: Vec::new(),
                charged: 0,
                own_data: 0..0,
            });
        }
    }

    fn new_task(&mut self) -> usize {
        let number = self.new_thread();
        self.tasks.push(Context::new(number));
        self.tasks.len() - 1
    }

    fn new_thread(&mut self) -> u32 {
        self.thread_count += 1;
        self.thread_count - 1
    }

    /// Whether sections are recorded now.
    pub fn is_active(&self) -> bool {
        self.active
    }

    fn context(&mut self, cpu: usize) -> &mut Context {
        let at = &mut self.cpus[cpu];
        match at.interrupt_depth {
            0 => &mut self.tasks[at.task],
            depth => &mut at.interrupts[depth - 1],
        }
    }

    /// Charges the running context for what the virtual CPU has executed since the last event. Gives the moment.
    fn charge(&mut self, at: At) -> Moment {
        let executed = at.instructions - std::mem::replace(&mut self.cpus[at.cpu].charged, at.instructions);
        let nanoseconds = self.started.elapsed().as_nanos() as u64;
        let context = self.context(at.cpu);
        context.instructions += executed;
        Moment { instructions: context.instructions, nanoseconds }
    }

    fn mood(&mut self, cpu: usize, watch: Option<u64>) -> Mood {
        let in_section = self.active && self.context(cpu).log.is_recording();
        Mood { in_section, watch }
    }

    /// A function of importance is entered.
    pub fn enter(&mut self, at: At, entry: Entry, function: u64) -> Mood {
        match entry {
            Entry::Interrupt => self.begin_interrupt(at),
            Entry::Exception => {
                if !self.cpus[at.cpu].nest.is_empty() {
                    self.cpus[at.cpu].nest.push(false);
                }
            }
            Entry::HandlerEnd => self.end_handler(at),
            Entry::TaskStart => self.start_task(at),
            Entry::Phase => self.change_phase(at),
            Entry::ReadCopyUpdate => self.counts.read_copy_update += u64::from(self.active),
            Entry::Acquire { family, exclusion, may_fail } if self.active => {
                let context = self.context(at.cpu);
                if let Some(return_at) = context.stack.innermost() {
                    let lock = None;
                    context.pending.push(Pending { family, exclusion, may_fail, return_at, function, lock });
                    self.counts.calls += 1;
                }
            }
            Entry::Wait if self.active => self.wait(at),
            Entry::Acquire { .. } | Entry::Wait => {}
        }
        self.mood(at.cpu, None)
    }

    fn begin_interrupt(&mut self, at: At) {
        self.charge(at);
        self.cpus[at.cpu].nest.push(true);
        self.cpus[at.cpu].interrupt_depth += 1;
        if self.cpus[at.cpu].interrupts.len() < self.cpus[at.cpu].interrupt_depth {
            let number = self.new_thread();
            self.cpus[at.cpu].interrupts.push(Context::new(number));
        }
        let context = self.context(at.cpu);
        context.stack.clear();
        context.pending.clear();
    }

    /// The handler of the innermost interrupt, or of a fault within one, has returned.
    fn end_handler(&mut self, at: At) {
        self.charge(at);
        let Some(is_interrupt) = self.cpus[at.cpu].nest.pop() else { return };
        if is_interrupt {
            self.abandon_sections(at.cpu);
            self.cpus[at.cpu].interrupt_depth -= 1;
        }
    }

    /// Forgets the open sections of the running context.
    fn abandon_sections(&mut self, cpu: usize) {
        let context = self.context(cpu);
        let number = context.number;
        let open: Vec<u32> = context.log.abandon().collect();
        for lock in open {
            self.study.abandon(LockId(lock), number);
        }
    }

    /// `ret_from_fork`: a task of this identity that was there before is gone.
    fn start_task(&mut self, at: At) {
        let number = self.new_thread();
        let task = self.cpus[at.cpu].task;
        let context = &mut self.tasks[task];
        let before = now(context);
        context.number = number;
        context.stack.clear();
        context.pending.clear();
        let open: Vec<u32> = context.log.open().collect();
        for lock in open {
            // The run queue's lock, which the last task handed over.
            self.study.hand_over(LockId(lock), before, (number, before.1));
        }
    }

    fn change_phase(&mut self, at: At) {
        self.charge(at);
        self.active = !self.active;
        if !self.active {
            self.recorded += self.charged() - self.begun;
        } else {
            self.begun = self.charged();
            let areas = self.names.per_cpu_areas(self.cpus.len());
            for (cpu, area) in self.cpus.iter_mut().zip(areas) {
                cpu.own_data = area;
            }
            self.started = Instant::now();
        }
    }

    /// The task switch has loaded the next task's stack pointer from `identity`.
    pub fn switch_task(&mut self, at: At, identity: TaskIdentity) -> Mood {
        self.charge(at);
        // No interrupt is handled across a switch: one that seems to be has ended in a way that was not seen.
        self.cpus[at.cpu].nest.clear();
        self.cpus[at.cpu].interrupt_depth = 0;
        let next = match self.task_of.get(&identity) {
            Some(&task) => task,
            None => {
                let task = self.new_task();
                self.task_of.insert(identity, task);
                task
            }
        };
        let previous = std::mem::replace(&mut self.cpus[at.cpu].task, next);
        if previous != next {
            let held: Vec<u32> = self.tasks[previous].log.open().collect();
            for lock in held.into_iter().filter(|&lock| !self.families[lock as usize].sleeps()) {
                self.tasks[previous].log.end(lock, |_| ());
                let (from, to) = (now(&self.tasks[previous]), now(&self.tasks[next]));
                self.study.hand_over(LockId(lock), from, to);
                self.tasks[next].log.begin(lock);
                self.counts.handed_over += 1;
            }
        }
        self.mood(at.cpu, None)
    }

    /// A call from `site` stored its return address.
    #[inline]
    pub fn call(&mut self, cpu: usize, stack_pointer: u64, site: u64) {
        let Self { cpus, tasks, tree, .. } = self;
        let cpu = &mut cpus[cpu];
        let context = match cpu.interrupt_depth {
            0 => &mut tasks[cpu.task],
            depth => &mut cpu.interrupts[depth - 1],
        };
        context.stack.call(tree, stack_pointer, site, false);
    }

    /// A return loads its address from `stack_pointer`.
    #[inline]
    pub fn ret(&mut self, at: At, stack_pointer: u64) -> Option<Mood> {
        let context = self.context(at.cpu);
        let finished = context.pending.last().is_some_and(|pending| pending.return_at == stack_pointer);
        let mood = if finished { self.finish(at) } else { None };
        let context = self.context(at.cpu);
        // Functions that were left in another way are not waited for.
        if !context.pending.is_empty() {
            let limit = stack_pointer;
            context.pending.retain(|pending| pending.return_at > limit || limit - pending.return_at > 16 << 10);
        }
        context.stack.ret(stack_pointer);
        mood
    }

    /// The function that asked for a lock returns.
    fn finish(&mut self, at: At) -> Option<Mood> {
        let now = self.charge(at);
        let pending = self.context(at.cpu).pending.pop()?;
        let Some(address) = pending.lock else {
            self.counts.failed += 1;
            return None;
        };
        let caller = self.caller(at.cpu);
        let id = self.lock(address, pending.family, caller);
        let thread = self.context(at.cpu).number;
        if pending.may_fail && self.study.keeps_out(id, thread, pending.exclusion) {
            self.study.stop_waiting(id, thread);
            self.counts.failed += 1;
            return None;
        }
        self.study.acquire(id, thread, pending.exclusion, caller, now);
        self.context(at.cpu).log.begin(id.0);
        Some(self.mood(at.cpu, Some(address)))
    }

    fn caller(&mut self, cpu: usize) -> u64 {
        let node = self.context(cpu).stack.node();
        self.tree.node(node).site
    }

    fn lock(&mut self, address: u64, family: Family, caller: u64) -> LockId {
        if let Some(id) = self.study.present(address)
            && self.families[id.0 as usize] != family
        {
            self.study.renew(address);
        }
        let [(_, size_bytes), (offset, rest_bytes)] = family.parts();
        let Self { study, names, classes, class_numbers, .. } = self;
        let mut is_new = false;
        let id = study.lock_at(address, size_bytes, || {
            is_new = true;
            let class = names.class(address, caller, family);
            *class_numbers.entry(class).or_insert_with_key(|class| {
                classes.push(class.clone());
                classes.len() as u64 - 1
            })
        });
        if is_new && rest_bytes > 0 {
            study.add_lock_words(address + offset, rest_bytes);
        }
        if id.0 as usize == self.families.len() {
            self.families.push(family);
        }
        id
    }

    /// An atomic instruction of a function of a lock touches `address`.
    pub fn atomic(&mut self, at: At, address: u64, function: u64) {
        let context = self.context(at.cpu);
        if let Some(pending) = context.pending.last_mut().filter(|pending| pending.function == function) {
            pending.lock.get_or_insert(address);
        }
    }

    fn wait(&mut self, at: At) {
        let now = self.charge(at);
        let Some(pending) = self.context(at.cpu).pending.last().copied() else { return };
        let Some(address) = pending.lock else { return };
        let caller = self.caller(at.cpu);
        let id = self.lock(address, pending.family, caller);
        let thread = self.context(at.cpu).number;
        self.study.wait(id, thread, now);
    }

    /// An instruction that gives the lock at `address` away.
    pub fn exit(&mut self, at: At, exit: Exit, address: u64) -> Mood {
        if self.active {
            let now = self.charge(at);
            if let Some(id) = self.study.present(address) {
                self.release(at.cpu, id, exit, now);
            }
        }
        self.mood(at.cpu, None)
    }

    fn release(&mut self, cpu: usize, id: LockId, exit: Exit, now: Moment) {
        let context = self.context(cpu);
        let thread = context.number;
        let words = context.log.end(id.0, <[_]>::to_vec);
        if words.is_none()
            && let Some(holder) = self.study.holder(id).filter(|&holder| holder != thread)
        {
            // Another thread took it: a mutex that is handed on, or a lock whose release is left to a worker.
            let others = self.tasks.iter_mut().chain(self.cpus.iter_mut().flat_map(|cpu| &mut cpu.interrupts));
            let mut before = Moment::default();
            for other in others.filter(|other| other.number == holder) {
                other.log.end(id.0, |_| ());
                before.instructions = other.instructions;
            }
            self.study.hand_over(id, (holder, before), (thread, now));
        }
        let words = words.unwrap_or_default();
        let Self { study, names, .. } = self;
        match exit {
            Exit::Release(_) => {
                study.release(id, thread, now, &words, names);
            }
            Exit::Downgrade => {
                study.downgrade(id, thread, now, &words, names);
                self.context(cpu).log.begin(id.0);
            }
        }
    }

    /// A plain store to a word that may be a lock: the lock is made again.
    pub fn store(&mut self, address: u64, size_bytes: u8) {
        for word in (address & !3..address + u64::from(size_bytes)).step_by(4) {
            self.study.renew(word);
        }
    }

    /// An access while a section is open.
    #[inline]
    pub fn access(&mut self, cpu: usize, address: u64, size_bytes: u8, write: bool, site: u64, through_gs: bool) {
        let Self { cpus, tasks, tree, sites, filters_stack, .. } = self;
        let cpu = &mut cpus[cpu];
        let per_cpu = through_gs || cpu.own_data.contains(&address);
        let context = match cpu.interrupt_depth {
            0 => &mut tasks[cpu.task],
            depth => &mut cpu.interrupts[depth - 1],
        };
        if *filters_stack && context.is_on_stack(address) {
            return;
        }
        let Context { log, stack, .. } = context;
        log.access(address, size_bytes, write, per_cpu, || sites.number(tree, stack.node(), site));
    }

    /// An access while no section is open.
    #[inline]
    pub fn access_outside(&mut self, cpu: usize, address: u64, size_bytes: u8, write: bool) {
        let context = self.context(cpu);
        if !context.is_on_stack(address) {
            let thread = context.number;
            self.study.access_outside(thread, address, size_bytes, write);
        }
    }

    /// The running context talks to a device: all its open sections are marked.
    pub fn touch_device(&mut self, cpu: usize) {
        let context = self.context(cpu);
        let thread = context.number;
        let open: Vec<u32> = context.log.open().collect();
        for lock in open {
            self.study.touch_device(LockId(lock), thread);
        }
    }

    /// What was counted in addition to the study.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The study.
    pub fn study(&self) -> &Study {
        &self.study
    }

    /// The names of what sections conflict on.
    pub fn names(&self) -> &N {
        &self.names
    }

    /// Kinds of locks, by lock.
    pub fn families(&self) -> &[Family] {
        &self.families
    }

    /// A class by its number.
    pub fn class(&self, number: u64) -> &Class {
        &self.classes[number as usize]
    }

    /// Tasks and depths of interrupts that there were.
    pub fn thread_count(&self) -> u32 {
        self.thread_count
    }

    /// Instructions that the kernel executed while it was recorded.
    pub fn instructions(&self) -> u64 {
        let since = if self.active { self.charged() - self.begun } else { 0 };
        self.recorded + since
    }

    fn charged(&self) -> u64 {
        self.cpus.iter().map(|cpu| cpu.charged).sum()
    }

    /// Time since recording began.
    pub fn elapsed_nanoseconds(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    /// The addresses of a call stack, the innermost first.
    pub fn stack(&self, mut node: u32) -> Vec<u64> {
        let mut addresses = Vec::new();
        while node != ROOT {
            let here = self.tree.node(node);
            addresses.push(here.site);
            node = here.parent;
        }
        addresses
    }
}

#[cfg(test)]
mod tests;
