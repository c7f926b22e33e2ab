//! The tracer as a whole: which windows there are, and what each marker does.
//!
//! ```text
//! WINDOW_OPEN  ─►  CALL_BEGIN ─ recording ─ CALL_END  ─►  CALL_BEGIN ─ recording ─ CALL_END  ─►  WINDOW_CLOSE
//! (coordinator)    (worker 0)                             (worker 1)                             (coordinator)
//! ```
//!
//! **Threads.** A machine must run with `-accel tcg,thread=single`: then every callback comes from one thread, which is
//! checked at each translation. A program's threads call concurrently, each with its own virtual CPU. Each virtual CPU's
//! state belongs to the thread that runs it, except at WINDOW_OPEN and WINDOW_CLOSE, when the coordinator's thread takes
//! all of them. For that it clears [`RECORDING`] and [`FOLLOWING`], then waits until no [`VcpuCell`] is busy; a callback makes its cell
//! busy, then looks at its flag again (both sequentially consistent: one of the two sees the other). In a machine
//! there is nothing to wait for, and callbacks skip the hand-shake.
//!
//! [`Central`] is guarded by a mutex that only markers, task switches and the exit take, never a memory access.

use std::cell::UnsafeCell;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use mtrace::blocks::MOST_SITES;
use mtrace::encode;
use mtrace::layout::Layout;
use mtrace::record::{MAX_CORES, Mode};
use mtrace::rules::RuleSet;

use crate::blocks::Blocks;
use crate::context::Tasks;
use crate::instruction::Marker;
use crate::objects::Objects;
use crate::operand::Operand;
use crate::output::Output;
use crate::trace_stacks::TraceStacks;
use crate::translations::{self, Translations};
use crate::vcpu::{KERNEL_STACK_BYTES, Site, Vcpu};
use crate::window::{self, DirectMap, WindowAnalysis};
use qemu_plugin::current;
use qemu_plugin::registers::Registers;

/// Whether a traced call runs.
pub static RECORDING: AtomicBool = AtomicBool::new(false);
/// Whether a program's calls and returns are followed: while a traced call runs, and while a step of set-up or observation
/// does, since that allocates the memory that traced calls share.
pub static FOLLOWING: AtomicBool = AtomicBool::new(false);
/// Number of the traced call or followed step that runs.
pub static CALL_EPOCH: AtomicU32 = AtomicU32::new(0);
/// Of a program: the thread that makes the call under test. Atomic, written between calls.
pub static CALLER: AtomicU32 = AtomicU32::new(0);
/// The virtual CPUs seen so far, by index; never freed, since QEMU may call back until the process ends.
static VCPUS: [AtomicPtr<VcpuCell>; MAX_CORES] = [const { AtomicPtr::new(std::ptr::null_mut()) }; MAX_CORES];
static TRACER: OnceLock<Tracer> = OnceLock::new();

/// One virtual CPU's state and who may touch it.
pub struct VcpuCell {
    /// The owning thread is inside (user mode only).
    busy: AtomicBool,
    state: UnsafeCell<Vcpu>,
    /// Somebody has the state. Looked at in debug builds alone: it would be a store for each traced access.
    #[cfg(debug_assertions)]
    lent: AtomicBool,
}

impl VcpuCell {
    fn new(state: Vcpu) -> VcpuCell {
        VcpuCell {
            busy: AtomicBool::new(false),
            state: UnsafeCell::new(state),
            #[cfg(debug_assertions)]
            lent: AtomicBool::new(false),
        }
    }

    /// Lends the state to an action, which does not come here again.
    ///
    /// # Safety
    /// No other thread touches the state in the meantime.
    #[inline]
    unsafe fn lend(&self, action: impl FnOnce(&mut Vcpu)) {
        #[cfg(debug_assertions)]
        assert!(!self.lent.swap(true, Ordering::Relaxed), "the state of a virtual CPU is lent once at a time");
        // SAFETY: the caller's promise, and as said above.
        action(unsafe { &mut *self.state.get() });
        #[cfg(debug_assertions)]
        self.lent.store(false, Ordering::Relaxed);
    }
}

// SAFETY: the state is touched by one thread at a time: see "Threads" in this module's description.
unsafe impl Sync for VcpuCell {}
// SAFETY: nothing in a `Vcpu` is bound to a thread.
unsafe impl Send for VcpuCell {}

/// What never changes after installation.
pub struct Tracer {
    /// What is traced.
    pub mode: Mode,
    /// Where things lie in the traced system.
    pub layout: Layout,
    /// User addresses that count.
    pub user_window: std::ops::Range<u64>,
    /// Whether accesses are recorded.
    pub record: bool,
    /// The way to registers, for instructions whose address QEMU does not tell.
    pub registers: Option<Registers>,
    /// What the callbacks of `prefetchw` know, never freed: QEMU may call back until the process ends.
    prefetches: Mutex<HashSet<&'static Prefetch>>,
    rules: RuleSet,
    /// The switch to the translation that records; without one, all code records at all times.
    translations: OnceLock<Option<Translations>>,
    central: Mutex<Central>,
    /// What a program's memory functions have reported.
    blocks: Mutex<Blocks>,
    /// Virtual CPUs beyond [`MAX_CORES`] that were asked for; they are not recorded.
    too_many_vcpus: AtomicU64,
}

/// What markers work on.
pub struct Central {
    output: Output,
    analysis: WindowAnalysis,
    stacks: TraceStacks,
    objects: Option<Objects>,
    direct_map: Option<DirectMap>,
    /// What is known of the machine's tasks.
    pub tasks: Tasks,
    window_count: u64,
    ended: bool,
}

/// What installation found out.
pub struct Setup {
    /// What is traced.
    pub mode: Mode,
    /// Where things lie in the traced system.
    pub layout: Layout,
    /// User addresses that count.
    pub user_window: std::ops::Range<u64>,
    /// Whether accesses are recorded.
    pub record: bool,
    /// Rules that are switched on.
    pub rules: RuleSet,
    /// Whether neighbouring lines count, too.
    pub neighbours: bool,
    /// The way to registers, if there is one.
    pub registers: Option<Registers>,
    /// Where the trace goes, with its header in the buffer.
    pub output: Output,
    /// The look into the guest's memory, if its RAM is given.
    pub objects: Option<Objects>,
}

/// Installs the tracer; only the first call has an effect.
pub fn install(setup: Setup) -> &'static Tracer {
    TRACER.get_or_init(|| Tracer {
        mode: setup.mode,
        layout: setup.layout,
        user_window: setup.user_window,
        record: setup.record,
        registers: setup.registers,
        prefetches: Mutex::new(HashSet::new()),
        rules: setup.rules,
        translations: OnceLock::new(),
        central: Mutex::new(Central {
            output: setup.output,
            analysis: WindowAnalysis::new(setup.neighbours),
            stacks: TraceStacks::default(),
            objects: setup.objects,
            direct_map: None,
            tasks: Tasks::default(),
            window_count: 0,
            ended: false,
        }),
        blocks: Mutex::new(Blocks::default()),
        too_many_vcpus: AtomicU64::new(0),
    })
}

/// The tracer, once installed.
pub fn tracer() -> Option<&'static Tracer> {
    TRACER.get()
}

/// What the callback of a `prefetchw` knows of its instruction.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Prefetch {
    /// The instruction.
    pub site: Site,
    /// What it prefetches.
    pub operand: Operand,
}

/// Runs `action` on the state of a machine's virtual CPU that runs (`told` is what QEMU says), with no hand-shake.
#[cold]
#[inline(never)]
pub fn with_vcpu_of_machine(told: u32, action: impl FnOnce(&mut Vcpu)) {
    let Some(slot) = VCPUS.get(current::index(told) as usize) else { return };
    // SAFETY: a non-null pointer in `VCPUS` was leaked by `add_vcpu` and is valid forever.
    let Some(cell) = (unsafe { slot.load(Ordering::Acquire).as_ref() }) else { return };
    // SAFETY: all callbacks of a machine come from one thread (checked at each translation, before that
    // code runs), and callbacks do not nest.
    unsafe { cell.lend(action) };
}

/// Runs `action` on the state of the calling thread's virtual CPU if `flag` is set: [`RECORDING`] or [`FOLLOWING`] (programs).
#[cold]
#[inline(never)]
pub fn with_vcpu_of_program(index: u32, flag: &AtomicBool, action: impl FnOnce(&mut Vcpu)) {
    let Some(slot) = VCPUS.get(index as usize) else { return };
    // SAFETY: as above.
    let Some(cell) = (unsafe { slot.load(Ordering::Acquire).as_ref() }) else { return };
    // SeqCst, pairs with `quiesce`: either that sees this store, or the load below sees the flag cleared.
    cell.busy.store(true, Ordering::SeqCst);
    if flag.load(Ordering::SeqCst) {
        // SAFETY: only this thread runs the virtual CPU `index`, and no other takes its state while `busy` is set and
        // the flag was seen set after it.
        unsafe { cell.lend(action) };
    }
    // Release, pairs with the load in `quiesce`: what `action` wrote is seen there.
    cell.busy.store(false, Ordering::Release);
}

impl Tracer {
    /// A virtual CPU starts. Its index may have belonged to a thread that is gone.
    pub fn add_vcpu(&self, index: u32) {
        let Some(slot) = VCPUS.get(index as usize) else {
            if self.too_many_vcpus.fetch_add(1, Ordering::Relaxed) == 0 {
                eprintln!("commutant tracer: expected at most {MAX_CORES} virtual CPUs, got number {index}");
            }
            return;
        };
        if slot.load(Ordering::Acquire).is_null() {
            let stack_bytes = if self.mode == Mode::System { KERNEL_STACK_BYTES } else { u64::MAX };
            let state = Vcpu::new(stack_bytes, self.mode == Mode::User, self.rules);
            let cell = Box::into_raw(Box::new(VcpuCell::new(state)));
            // Release, pairs with the loads of `VCPUS`. QEMU starts virtual CPUs one after the other.
            slot.store(cell, Ordering::Release);
        }
    }

    /// The state that markers and task switches share.
    pub fn central(&self) -> MutexGuard<'_, Central> {
        self.central.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A virtual CPU executes a marker.
    pub fn mark(&self, index: u32, marker: Marker) {
        match marker {
            Marker::CallBegin if self.record => {
                let epoch = CALL_EPOCH.load(Ordering::Relaxed).wrapping_add(1);
                CALL_EPOCH.store(epoch, Ordering::Relaxed);
                CALLER.store(index, Ordering::Relaxed);
                self.adopt_task(index);
                self.select_translation_here(index, true);
                // SeqCst: the store of the epoch is seen by those who see a flag set.
                FOLLOWING.store(true, Ordering::SeqCst);
                RECORDING.store(true, Ordering::SeqCst);
            }
            Marker::StepBegin if self.record && self.mode == Mode::User => {
                let epoch = CALL_EPOCH.load(Ordering::Relaxed).wrapping_add(1);
                CALL_EPOCH.store(epoch, Ordering::Relaxed);
                self.select_translation_here(index, false);
                // SeqCst: as above.
                FOLLOWING.store(true, Ordering::SeqCst);
            }
            Marker::CallBegin | Marker::StepBegin => {}
            Marker::CallEnd | Marker::StepEnd => {
                RECORDING.store(false, Ordering::SeqCst);
                FOLLOWING.store(false, Ordering::SeqCst);
            }
            Marker::Thread => {
                self.adopt_task(index);
                self.select_translation_here(index, true);
            }
            Marker::WindowOpen => {
                self.quiesce(|vcpus| vcpus.iter_mut().for_each(|(_, vcpu)| vcpu.open_window()));
                self.blocks().forget_freed();
                self.select_translation(true);
            }
            Marker::WindowClose => {
                self.select_translation(false);
                self.quiesce(|vcpus| self.central().close_window(vcpus, self));
            }
            Marker::Flush => {
                let mut central = self.central();
                let count = central.window_count;
                encode::flush(&mut central.output.buffer, count);
                central.output.write();
            }
        }
    }

    /// What a callback of that `prefetchw` is to know; the same for each translation of it.
    pub fn keep_prefetch(&self, prefetch: Prefetch) -> &'static Prefetch {
        let mut kept = self.prefetches.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept.get(&prefetch) {
            return known;
        }
        let leaked: &'static Prefetch = Box::leak(Box::new(prefetch));
        kept.insert(leaked);
        leaked
    }

    /// What a program's memory functions have reported.
    fn blocks(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A program's memory functions tell of a block at `address`: given with this size, or given back (0).
    pub fn note_block(&self, index: u32, address: u64, size_bytes: u64) {
        if size_bytes == 0 {
            self.blocks().give_back(address);
            return;
        }
        let mut sites = [0; MOST_SITES];
        let mut count = 0;
        with_vcpu_of_program(index, &FOLLOWING, |vcpu| {
            vcpu.enter_call(CALL_EPOCH.load(Ordering::Relaxed));
            count = vcpu.call_sites(&mut sites);
        });
        self.blocks().give(address, size_bytes, &sites[..count]);
    }

    /// The executing task belongs to the test.
    fn adopt_task(&self, index: u32) {
        if self.mode == Mode::System {
            let mut central = self.central();
            with_vcpu_of_machine(index, |vcpu| vcpu.marked(&mut central.tasks));
        }
    }

    /// Whether a block that is translated now is to record its accesses.
    pub fn translates_recording(&self) -> bool {
        match self.mode {
            Mode::User => self.record && translations::records_here(),
            Mode::System => self.record && self.translations().is_none_or(Translations::is_recording),
        }
    }

    /// A machine's switch between translations; each thread of a program has its own.
    fn translations(&self) -> Option<&Translations> {
        let find = || {
            let cpu_count = VCPUS.iter().take_while(|slot| !slot.load(Ordering::Acquire).is_null()).count();
            if self.mode == Mode::System && self.record { Translations::find(cpu_count) } else { None }
        };
        self.translations.get_or_init(find).as_ref()
    }

    /// Has code run in the translation that records, or in the other.
    fn select_translation(&self, recording: bool) {
        if let Some(translations) = self.translations() {
            translations.select(recording);
        }
    }

    /// Has a program's calling thread run code in the translation that records, or in the other.
    fn select_translation_here(&self, index: u32, recording: bool) {
        if self.mode == Mode::User {
            translations::select_here(index, recording);
        }
    }

    /// Stops recording and runs `action` on all virtual CPUs' states.
    fn quiesce(&self, action: impl FnOnce(&mut [(u8, &mut Vcpu)])) {
        // SeqCst, pairs with `with_vcpu_of_program`.
        RECORDING.store(false, Ordering::SeqCst);
        FOLLOWING.store(false, Ordering::SeqCst);
        let mut vcpus = Vec::with_capacity(MAX_CORES);
        for (core, slot) in VCPUS.iter().enumerate() {
            // SAFETY: as in `with_vcpu_of_machine`.
            let Some(cell) = (unsafe { slot.load(Ordering::Acquire).as_ref() }) else { continue };
            // SeqCst and acquire: see `with_vcpu_of_program`.
            while cell.busy.load(Ordering::SeqCst) {
                std::hint::spin_loop();
            }
            // SAFETY: both flags are clear and the cell is not busy, so its thread does not touch the state until the
            // next CALL_BEGIN or STEP_BEGIN, which the program executes after this marker. In a machine this is the
            // only thread.
            vcpus.push((core as u8, unsafe { &mut *cell.state.get() }));
        }
        action(&mut vcpus);
    }

    /// Makes sure that a machine runs in one thread. If not, says so and ends it: what several threads record without a
    /// hand-shake is worth nothing, and would end in a place that says less.
    pub fn bind_to_thread(&self) {
        if let Err(problem) = current::bind() {
            eprintln!("commutant tracer: {problem}");
            let mut central = self.central();
            encode::message(&mut central.output.buffer, problem);
            central.end();
            current::end_machine();
        }
    }
}

impl Central {
    fn close_window(&mut self, vcpus: &mut [(u8, &mut Vcpu)], tracer: &Tracer) {
        let sequence = self.window_count;
        self.window_count += 1;
        if !tracer.record {
            window::write_empty(sequence, &mut self.output.buffer);
            self.output.write_if_large();
            return;
        }
        let direct_map = *self.direct_map.get_or_insert_with(|| {
            let found = self.objects.as_mut().map_or(Ok(DirectMap::default()), Objects::direct_map);
            found.unwrap_or_else(|problem| {
                eprintln!("commutant tracer: {problem}");
                DirectMap::default()
            })
        });
        if tracer.too_many_vcpus.load(Ordering::Relaxed) > 0
            && let Some((_, vcpu)) = vcpus.first_mut()
        {
            vcpu.lost += 1; // the window cannot be trusted: a thread was not recorded
        }
        let core_count = vcpus.last().map_or(0, |(core, _)| usize::from(*core) + 1);
        let Self { analysis, stacks, objects, output, .. } = self;
        let logs = window::Logs { vcpus, core_count, direct_map };
        let mut blocks = tracer.blocks();
        match objects.as_mut().and_then(Objects::view) {
            Some(mut view) => analysis.close(sequence, logs, stacks, Some(&mut view), &mut output.buffer),
            None if !blocks.is_empty() => {
                analysis.close(sequence, logs, stacks, Some(&mut *blocks), &mut output.buffer);
            }
            None => analysis.close::<crate::objects::View<'_>>(sequence, logs, stacks, None, &mut output.buffer),
        }
        output.write_if_large();
    }

    /// The traced system ends.
    pub fn end(&mut self) {
        if !self.ended {
            self.ended = true;
            let count = self.window_count;
            encode::end(&mut self.output.buffer, count);
            self.output.write();
        }
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;

    #[test]
    #[should_panic = "lent once at a time"]
    fn a_state_is_not_lent_while_it_is_lent() {
        let cell = VcpuCell::new(Vcpu::new(u64::MAX, true, RuleSet::all()));
        // SAFETY: this thread alone has the cell.
        unsafe { cell.lend(|_| cell.lend(|_| {})) };
    }
}
