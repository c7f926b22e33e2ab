//! The recorder, given by hand what happens in a guest.

use super::*;
use lock_study::{Exclusion, Fields, LockReport, Word};

/// Names every lock by its family, and no data.
struct NoNames;

impl Fields for NoNames {
    fn field(&mut self, _lock_address: u64, ours: &Word, _theirs: &Word) -> u64 {
        ours.number
    }
}

impl LockNames for NoNames {
    fn class(&mut self, _address: u64, _caller: u64, family: Family) -> Class {
        Class { name: family.name().to_owned(), known: true }
    }

    fn per_cpu_areas(&mut self, count: usize) -> Vec<Range<u64>> {
        (0..count as u64).map(|cpu| PER_CPU + cpu * 0x1000..PER_CPU + (cpu + 1) * 0x1000).collect()
    }
}

const PER_CPU: u64 = 0xffff_8880_7d00_0000;
const LOCK: u64 = 0xffff_8880_0000_0100;
const DATA: u64 = 0xffff_8880_0000_2000;
const FUNCTION: u64 = 0xffff_ffff_8100_0000;
const TASKS: [TaskIdentity; 2] = [0xffff_8880_0100_0518, 0xffff_8880_0200_0518];
/// Stacks of the two tasks.
const STACKS: [u64; 2] = [0xffff_c900_0001_0000, 0xffff_c900_0010_0000];

/// Two virtual CPUs, each of which runs a task of its own.
struct Guest {
    recorder: Recorder<NoNames>,
    instructions: u64,
}

impl Guest {
    fn new(filters_stack: bool) -> Self {
        let recorder = Recorder::new(NoNames, Options::default(), filters_stack);
        let mut guest = Self { recorder, instructions: 0 };
        for (cpu, task) in TASKS.into_iter().enumerate() {
            guest.recorder.add_cpu(cpu);
            guest.switch(cpu, task);
        }
        let at = guest.at(0);
        guest.recorder.enter(at, Entry::Phase, FUNCTION);
        guest
    }

    fn at(&mut self, cpu: usize) -> At {
        self.instructions += 10;
        At { cpu, instructions: self.instructions }
    }

    fn switch(&mut self, cpu: usize, identity: TaskIdentity) {
        let at = self.at(cpu);
        self.recorder.switch_task(at, identity);
    }

    fn ask(&mut self, cpu: usize, stack: u64, family: Family, may_fail: bool, touches: bool) {
        let at = self.at(cpu);
        self.recorder.call(cpu, stack + 0x3000, 0x77);
        let exclusion = Exclusion::Exclusive;
        self.recorder.enter(at, Entry::Acquire { family, exclusion, may_fail }, FUNCTION);
        if touches {
            self.recorder.atomic(at, LOCK, FUNCTION);
        }
        let at = self.at(cpu);
        self.recorder.ret(at, stack + 0x3000);
    }

    fn acquire(&mut self, cpu: usize, stack: u64, family: Family) {
        self.ask(cpu, stack, family, false, true);
    }

    fn touch(&mut self, cpu: usize, address: u64) {
        self.recorder.access(cpu, address, 8, true, 0x99, false);
    }

    fn release(&mut self, cpu: usize, family: Family) {
        let at = self.at(cpu);
        self.recorder.exit(at, Exit::Release(family), LOCK);
    }

    fn section(&mut self, cpu: usize, addresses: &[u64]) {
        self.acquire(cpu, STACKS[cpu], Family::Spin);
        addresses.iter().for_each(|&address| self.touch(cpu, address));
        self.release(cpu, Family::Spin);
    }

    fn report(&self) -> LockReport {
        self.recorder.study().report(LockId(0))
    }
}

#[test]
fn sections_of_two_tasks_are_compared_and_those_of_one_are_not() {
    let mut guest = Guest::new(true);
    guest.section(0, &[DATA]);
    guest.section(0, &[DATA]);
    assert_eq!(guest.report().pairs.compared, 0);
    guest.section(1, &[DATA]);
    let report = guest.report();
    assert_eq!((report.acquires, report.pairs.compared, report.pairs.conflicting[0]), (3, 2, 2));
}

#[test]
fn a_tasks_stack_is_left_out_if_asked_for() {
    for (filters_stack, conflicting) in [(true, 0), (false, 1)] {
        let mut guest = Guest::new(filters_stack);
        for cpu in 0..2 {
            // The memory of a stack is used again for another task's.
            guest.acquire(cpu, STACKS[0], Family::Spin);
            guest.recorder.call(cpu, STACKS[0] + 0x2f00, 0x78);
            guest.touch(cpu, STACKS[0] + 0x2e00);
            guest.release(cpu, Family::Spin);
        }
        assert_eq!(guest.report().pairs.conflicting[0], conflicting, "{filters_stack}");
    }
}

#[test]
fn an_attempt_that_fails_is_no_acquire() {
    let mut guest = Guest::new(true);
    guest.ask(0, STACKS[0], Family::Spin, true, false);
    guest.acquire(0, STACKS[0], Family::Spin);
    guest.ask(1, STACKS[1], Family::Spin, true, true);
    assert_eq!((guest.report().acquires, guest.recorder.counts().failed, guest.recorder.counts().calls), (1, 2, 3));
}

#[test]
fn an_interrupt_adds_nothing_to_the_section_that_it_interrupts() {
    let mut guest = Guest::new(true);
    guest.section(1, &[DATA]);
    guest.acquire(0, STACKS[0], Family::Spin);
    let at = guest.at(0);
    guest.recorder.enter(at, Entry::Interrupt, FUNCTION);
    guest.touch(0, DATA);
    let at = guest.at(0);
    guest.recorder.enter(at, Entry::Exception, FUNCTION);
    guest.recorder.enter(at, Entry::HandlerEnd, FUNCTION);
    guest.touch(0, DATA);
    guest.recorder.enter(at, Entry::HandlerEnd, FUNCTION);
    guest.release(0, Family::Spin);
    let report = guest.report();
    assert_eq!((report.pairs.compared, report.pairs.conflicting[0]), (1, 0));
    assert!(report.hold.total.instructions < 60, "{:?}", report.hold);
}

#[test]
fn a_spin_lock_goes_to_the_next_task_and_a_mutex_stays() {
    let mut guest = Guest::new(true);
    guest.acquire(0, STACKS[0], Family::Spin);
    guest.switch(0, 0xffff_8880_0300_0518);
    guest.release(0, Family::Spin);
    let report = guest.report();
    assert_eq!((report.handed_over, report.sections, report.releases_without_acquire), (1, 1, 0));

    let mut guest = Guest::new(true);
    guest.acquire(0, STACKS[0], Family::Mutex);
    guest.switch(0, 0xffff_8880_0300_0518);
    guest.touch(0, DATA);
    guest.switch(1, TASKS[0]); // the task goes on elsewhere
    guest.release(1, Family::Mutex);
    let report = guest.report();
    assert_eq!((report.handed_over, report.sections, report.set_bytes), (0, 1, 0));
}

#[test]
fn a_store_to_its_word_makes_a_lock_anew() {
    let mut guest = Guest::new(true);
    guest.section(0, &[DATA]);
    guest.recorder.store(LOCK - 4, 8);
    guest.section(1, &[DATA]);
    let report = guest.report();
    assert_eq!((report.generations, report.acquires, report.pairs.compared), (2, 2, 0));
}

#[test]
fn a_section_is_compared_with_the_one_that_it_waited_for() {
    let mut guest = Guest::new(true);
    guest.acquire(0, STACKS[0], Family::Spin);
    guest.touch(0, DATA);
    guest.recorder.call(1, STACKS[1] + 0x3000, 0x77);
    let at = guest.at(1);
    let acquire = Entry::Acquire { family: Family::Spin, exclusion: Exclusion::Exclusive, may_fail: false };
    guest.recorder.enter(at, acquire, FUNCTION);
    guest.recorder.atomic(at, LOCK, FUNCTION);
    guest.recorder.enter(at, Entry::Wait, FUNCTION + 0x100);
    guest.release(0, Family::Spin);
    let at = guest.at(1);
    guest.recorder.ret(at, STACKS[1] + 0x3000);
    guest.touch(1, DATA);
    guest.release(1, Family::Spin);
    let report = guest.report();
    assert_eq!((report.contended, report.contended_compared, report.contended_conflicts), (1, 1, 1));
}

#[test]
fn data_of_the_own_processor_count_apart() {
    let mut guest = Guest::new(true);
    guest.section(0, &[PER_CPU + 0x10]);
    guest.switch(0, TASKS[1]);
    guest.acquire(0, STACKS[1], Family::Spin);
    guest.touch(0, PER_CPU + 0x10);
    guest.release(0, Family::Spin);
    let pairs = guest.report().pairs;
    assert_eq!((pairs.conflicting[0], pairs.conflicting_without_per_cpu[0]), (1, 0));
}

#[test]
fn sections_that_touched_devices_conflict() {
    let mut guest = Guest::new(true);
    for (cpu, stack) in STACKS.into_iter().enumerate() {
        guest.acquire(cpu, stack, Family::Spin);
        guest.recorder.touch_device(cpu);
        guest.release(cpu, Family::Spin);
    }
    assert_eq!((guest.report().device_sections, guest.report().pairs.conflicting[0]), (2, 1));
}

#[test]
fn an_access_without_a_lock_is_held_against_the_last_section() {
    let mut guest = Guest::new(true);
    guest.recorder.access_outside(1, DATA, 8, true);
    guest.section(0, &[DATA]);
    guest.recorder.access_outside(0, DATA, 8, true);
    guest.recorder.access_outside(1, DATA, 8, false);
    assert_eq!((guest.report().outside_reads, guest.report().outside_writes), (1, 0));
}
