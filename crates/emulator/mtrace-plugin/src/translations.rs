//! Two translations of a machine's code: one that records its accesses, and one that runs as if no one watched.
//!
//! QEMU finds a translated block by its address, the processor's mode, and flags of the translation that each virtual
//! CPU has. The upper byte of these flags numbers the cluster that the virtual CPU belongs to (`CF_CLUSTER_MASK`), for
//! machines in which the same address is other code on other processors. A PC has one cluster. So if all virtual CPUs
//! are said to belong to another one while a window is open, QEMU finds none of the blocks that were made before and
//! translates what it needs a second time, then with our callbacks at each access. Switching costs a store per virtual
//! CPU, nothing is thrown away, and outside of windows the guest runs with callbacks at a handful of instructions.
//!
//! A virtual CPU in the middle of blocks that are linked stays with their translation until QEMU looks for a block: at
//! the latest where a system call, a fault or an interrupt enters the kernel, or when another one has its turn. Both
//! switches are made by marks in user code, so code of the kernel always runs in the translation that was asked for; and
//! between the mark that opens a window and its first call the processor passes to another virtual CPU.
//!
//! In a **program** each thread has a virtual CPU, and all share the blocks. A block links to another one that its thread looked
//! up, so no thread may have its translation changed by another one: it might link a block that records to one that does not.
//! Each thread begins with the translation that records, takes the other by the mark of a step, and comes back by that of a
//! call under test ([`select_here`]), always in the same blocks of the runner, between which and the library's code lies a
//! call by address. Threads of the library's own know no marks; one that a step starts has the flags of the step's thread, so
//! the runner marks that it starts one. Calls, returns and notes of blocks are followed in either.
//!
//! Where the flags lie in QEMU's structure is not part of any interface. It is found out by asking QEMU's own
//! `curr_cflags` about a structure whose words tell their places, and checked on the real one.

use std::cell::{Cell, OnceCell};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use qemu_plugin::current::GetCpu;
use qemu_plugin::symbols;

/// The lowest bit of the cluster's number among the flags of a translation (include/exec/exec-all.h).
const OTHER_CLUSTER: u32 = 1 << 24;
/// The cluster of a machine's virtual CPU without one (`UNASSIGNED_CLUSTER_INDEX`), among the flags; a program's has 0.
const NO_CLUSTER: u32 = 0xff << 24;
/// Words of the structure that are looked at.
const PROBED_WORDS: usize = 1 << 12;
/// The low bits, which `curr_cflags` may set by itself, are not used to tell a place.
const PLACE_SHIFT: u32 = 12;

/// `curr_cflags` of accel/tcg/cpu-exec.c: the flags that the virtual CPU's next block must have.
type CurrentFlags = unsafe extern "C" fn(*const c_void) -> u32;

/// The switch between the two translations.
pub struct Translations {
    /// The flags of each virtual CPU.
    flags: Vec<&'static AtomicU32>,
    recording: AtomicBool,
}

impl Translations {
    /// Finds the switch of a machine with that many virtual CPUs, all of which have started. `None` if this QEMU keeps its
    /// functions to itself, or they tell something else than expected: then all code has to record at all times.
    pub fn find(cpu_count: usize) -> Option<Self> {
        let flags: Option<Vec<_>> = (0..cpu_count).map(|index| flags_of(index as u32)).collect();
        flags.map(|flags| Self { flags, recording: AtomicBool::new(false) })
    }

    /// Whether the translation that records is selected.
    pub fn is_recording(&self) -> bool {
        self.recording.load(Ordering::Relaxed)
    }

    /// From the next block that QEMU looks for on, the translation that records runs, or the other.
    pub fn select(&self, recording: bool) {
        self.recording.store(recording, Ordering::Relaxed);
        self.flags.iter().for_each(|flags| choose(flags, recording));
    }
}

/// Where the flags of a virtual CPU stand. `None` if this QEMU keeps its functions to itself, or they tell something else than
/// expected.
fn flags_of(index: u32) -> Option<&'static AtomicU32> {
    // SAFETY: functions of QEMU's, of the types given, which have not changed from 7.2 to 10.0.
    let (current_flags, get_cpu) = unsafe {
        let current_flags: CurrentFlags = symbols::function(c"curr_cflags").ok()?;
        let get_cpu: GetCpu = symbols::function(c"qemu_get_cpu").ok()?;
        (current_flags, get_cpu)
    };
    let words: Vec<u32> = (0..PROBED_WORDS as u32).map(|place| place << PLACE_SHIFT).collect();
    // The word that says whether the processor is stepped through is among them, and only sets low bits.
    // SAFETY: `curr_cflags` only loads from the structure, within its first 16 KiB.
    let place = unsafe { current_flags(words.as_ptr().cast()) >> PLACE_SHIFT } as usize;
    // SAFETY: asks for a virtual CPU by its index.
    let cpu = unsafe { get_cpu(index as c_int) };
    if cpu.is_null() || place == 0 {
        return None;
    }
    // SAFETY: a virtual CPU's structure lives as long as what it runs, and `place` is one of its words, in which QEMU, in the
    // thread that runs it only, keeps the flags.
    let flags = unsafe { cpu.cast::<AtomicU32>().add(place).as_ref() };
    flags.filter(|flags| [0, NO_CLUSTER].contains(&(flags.load(Ordering::Relaxed) & NO_CLUSTER)))
}

fn choose(flags: &AtomicU32, recording: bool) {
    let now = flags.load(Ordering::Relaxed);
    flags.store(if recording { now & !OTHER_CLUSTER } else { now | OTHER_CLUSTER }, Ordering::Relaxed);
}

thread_local! {
    /// The flags of the virtual CPU that this thread runs, once it has come to a mark.
    static FLAGS: OnceCell<Option<&'static AtomicU32>> = const { OnceCell::new() };
    /// Whether this thread runs code in the translation that records.
    static RECORDS: Cell<bool> = const { Cell::new(true) };
}

/// From the next block that QEMU looks for on, the calling thread, which runs a program's virtual CPU of this index, has the
/// translation that records, or the other.
pub fn select_here(index: u32, recording: bool) {
    if RECORDS.get() == recording {
        return;
    }
    FLAGS.with(|flags| {
        if let Some(flags) = flags.get_or_init(|| flags_of(index)) {
            RECORDS.set(recording);
            choose(flags, recording);
        }
    });
}

/// Whether the calling thread has the translation that records. QEMU translates a program's block in the thread that needs it.
pub fn records_here() -> bool {
    RECORDS.get()
}
