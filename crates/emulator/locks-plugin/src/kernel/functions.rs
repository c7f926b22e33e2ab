//! Where in a kernel locks are taken and released: its functions by name, from its symbol table.
//!
//! An acquire is the time from a function's entry to its return; the lock is what the function's first atomic instruction
//! touches. A release is the one instruction of a function that gives the lock away. Functions that a kernel lacks are left
//! out, and listed in the report.

use std::collections::HashMap;
use std::ops::Range;

use kernel_naming::KernelSymbols;
use lock_study::Exclusion;

/// Kinds of locks (`include/linux/{spinlock,rwlock,mutex,rwsem}.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// `spinlock_t`, `raw_spinlock_t`.
    Spin,
    /// `rwlock_t`.
    SpinReadWrite,
    /// `struct mutex`, `struct ww_mutex`.
    Mutex,
    /// `struct rw_semaphore`.
    Semaphore,
}

impl Family {
    /// As the report calls it.
    pub fn name(self) -> &'static str {
        match self {
            Family::Spin => "spinlock",
            Family::SpinReadWrite => "rwlock",
            Family::Mutex => "mutex",
            Family::Semaphore => "rw_semaphore",
        }
    }

    /// Whether a task switch leaves the lock with the task that held it. Else it goes to the next task: the lock of a run
    /// queue, which the scheduler holds across the switch.
    pub fn sleeps(self) -> bool {
        matches!(self, Family::Mutex | Family::Semaphore)
    }

    /// Parts of the lock's memory as (offset, bytes), the words that others tell apart left out: the spin lock within a
    /// mutex or semaphore (`wait_lock`) is a lock of its own.
    pub fn parts(self) -> [(u64, u32); 2] {
        match self {
            Family::Spin => [(0, 4), (0, 0)],
            Family::SpinReadWrite => [(0, 4), (8, 0)],
            Family::Mutex => [(0, 8), (12, 20)],
            Family::Semaphore => [(0, 20), (24, 16)],
        }
    }
}

/// What it means that a function is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// A lock is asked for. With `may_fail` the function may return without it.
    Acquire {
        /// Of which kind.
        family: Family,
        /// As reader or writer.
        exclusion: Exclusion,
        /// Whether it gives up if the lock is held, or if a signal comes.
        may_fail: bool,
    },
    /// The lock asked for is held by somebody.
    Wait,
    /// An interrupt begins.
    Interrupt,
    /// A fault begins.
    Exception,
    /// The handler of the innermost interrupt or fault has done its work; what follows may switch tasks.
    HandlerEnd,
    /// A new task runs for the first time.
    TaskStart,
    /// Recording begins, or ends if it has begun.
    Phase,
    /// A read section of RCU begins.
    ReadCopyUpdate,
}

/// What a function's releasing instruction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Gives the lock away.
    Release(Family),
    /// Makes a writer a reader.
    Downgrade,
}

/// What the recorder knows of a function's code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// First address and first address after.
    pub range: Range<u64>,
    /// What its atomic instruction, or its store of a zero byte, does; None for a function that acquires, or waits.
    pub exit: Option<Exit>,
}

/// A kernel's functions.
#[derive(Debug, Default)]
pub struct Functions {
    entries: HashMap<u64, Entry>,
    /// By first address.
    codes: Vec<Code>,
    /// The function that switches tasks.
    pub task_switch: Range<u64>,
    /// Functions that this kernel does not have.
    pub missing: Vec<&'static str>,
}

use Exclusion::{Exclusive, Shared};
use Family::{Mutex, Semaphore, Spin, SpinReadWrite};

/// Functions that acquire: name, kind, exclusion, whether they may fail.
const ACQUIRES: &[(&str, Family, Exclusion, bool)] = &[
    ("_raw_spin_lock", Spin, Exclusive, false),
    ("_raw_spin_lock_bh", Spin, Exclusive, false),
    ("_raw_spin_lock_irq", Spin, Exclusive, false),
    ("_raw_spin_lock_irqsave", Spin, Exclusive, false),
    ("_raw_spin_trylock", Spin, Exclusive, true),
    ("_raw_spin_trylock_bh", Spin, Exclusive, true),
    ("_raw_read_lock", SpinReadWrite, Shared, false),
    ("_raw_read_lock_bh", SpinReadWrite, Shared, false),
    ("_raw_read_lock_irq", SpinReadWrite, Shared, false),
    ("_raw_read_lock_irqsave", SpinReadWrite, Shared, false),
    ("_raw_read_trylock", SpinReadWrite, Shared, true),
    ("_raw_write_lock", SpinReadWrite, Exclusive, false),
    ("_raw_write_lock_nested", SpinReadWrite, Exclusive, false),
    ("_raw_write_lock_bh", SpinReadWrite, Exclusive, false),
    ("_raw_write_lock_irq", SpinReadWrite, Exclusive, false),
    ("_raw_write_lock_irqsave", SpinReadWrite, Exclusive, false),
    ("_raw_write_trylock", SpinReadWrite, Exclusive, true),
    ("mutex_lock", Mutex, Exclusive, false),
    ("mutex_lock_interruptible", Mutex, Exclusive, true),
    ("mutex_lock_killable", Mutex, Exclusive, true),
    ("mutex_trylock", Mutex, Exclusive, true),
    ("ww_mutex_lock", Mutex, Exclusive, true),
    ("ww_mutex_lock_interruptible", Mutex, Exclusive, true),
    ("down_read", Semaphore, Shared, false),
    ("down_read_interruptible", Semaphore, Shared, true),
    ("down_read_killable", Semaphore, Shared, true),
    ("down_read_trylock", Semaphore, Shared, true),
    ("down_write", Semaphore, Exclusive, false),
    ("down_write_killable", Semaphore, Exclusive, true),
    ("down_write_trylock", Semaphore, Exclusive, true),
];

/// Functions that release, with their instruction's meaning.
const RELEASES: &[(&str, Exit)] = &[
    ("_raw_spin_unlock", Exit::Release(Spin)),
    ("_raw_spin_unlock_bh", Exit::Release(Spin)),
    ("_raw_spin_unlock_irq", Exit::Release(Spin)),
    ("_raw_spin_unlock_irqrestore", Exit::Release(Spin)),
    ("_raw_read_unlock", Exit::Release(SpinReadWrite)),
    ("_raw_read_unlock_bh", Exit::Release(SpinReadWrite)),
    ("_raw_read_unlock_irq", Exit::Release(SpinReadWrite)),
    ("_raw_read_unlock_irqrestore", Exit::Release(SpinReadWrite)),
    ("_raw_write_unlock", Exit::Release(SpinReadWrite)),
    ("_raw_write_unlock_bh", Exit::Release(SpinReadWrite)),
    ("_raw_write_unlock_irq", Exit::Release(SpinReadWrite)),
    ("_raw_write_unlock_irqrestore", Exit::Release(SpinReadWrite)),
    ("mutex_unlock", Exit::Release(Mutex)),
    ("up_read", Exit::Release(Semaphore)),
    ("up_write", Exit::Release(Semaphore)),
    ("downgrade_write", Exit::Downgrade),
];

/// Functions that are entered when a lock is held by somebody; names with other endings (`.constprop.0`) count too.
const WAITS: &[&str] = &[
    "native_queued_spin_lock_slowpath",
    "queued_read_lock_slowpath",
    "queued_write_lock_slowpath",
    "__mutex_lock",
    "__mutex_lock_slowpath",
    "__mutex_lock_killable_slowpath",
    "__mutex_lock_interruptible_slowpath",
    "__ww_mutex_lock",
    "rwsem_down_read_slowpath",
    "rwsem_down_write_slowpath",
];

/// Faults whose handlers do not end in `irqentry_exit` (`irqentry_nmi_exit` in `kernel/entry/common.c`).
const OTHER_WAY_OUT: &[&str] =
    &["asm_exc_int3", "asm_exc_nmi", "asm_exc_debug", "asm_exc_double_fault", "asm_exc_machine_check"];

/// What a guest does to tell that its workload begins or ends: it writes its name of the host
/// (`/proc/sys/kernel/hostname`), which nothing else in there does.
const PHASE: &str = "proc_do_uts_string";

impl Functions {
    /// Finds them in a kernel's symbols.
    ///
    /// # Errors
    /// One line if the kernel lacks a function without which nothing can be recorded.
    pub fn find(symbols: &KernelSymbols) -> Result<Self, String> {
        let mut functions = Self::default();
        let needed = |name: &str| {
            let address = symbols.address(name);
            address.ok_or_else(|| format!("the kernel's symbol table has no `{name}`: its locks cannot be followed"))
        };
        for &(name, family, exclusion, may_fail) in ACQUIRES {
            functions.add(symbols, name, Some(Entry::Acquire { family, exclusion, may_fail }), None);
        }
        for &(name, exit) in RELEASES {
            functions.add(symbols, name, None, Some(exit));
        }
        for &name in WAITS {
            functions.add(symbols, name, Some(Entry::Wait), None);
        }
        for name in ["_raw_spin_lock", "_raw_spin_unlock", "irqentry_exit"] {
            needed(name)?;
        }
        functions.entries.insert(needed("irqentry_exit")?, Entry::HandlerEnd);
        functions.entries.insert(needed("ret_from_fork")?, Entry::TaskStart);
        functions.entries.insert(needed(PHASE)?, Entry::Phase);
        if let Some(address) = symbols.address("__rcu_read_lock") {
            functions.entries.insert(address, Entry::ReadCopyUpdate);
        }
        for symbol in symbols.functions() {
            // The vector's code in assembler, which every interrupt or fault enters by.
            if symbol.name.starts_with("asm_sysvec_") || symbol.name == "asm_common_interrupt" {
                functions.entries.insert(symbol.address, Entry::Interrupt);
            } else if symbol.name.starts_with("asm_exc_") && !OTHER_WAY_OUT.contains(&symbol.name) {
                functions.entries.insert(symbol.address, Entry::Exception);
            }
        }
        let switch = needed("__switch_to_asm")?;
        functions.task_switch = extent(symbols, switch);
        functions.codes.sort_by_key(|code| code.range.start);
        Ok(functions)
    }

    fn add(&mut self, symbols: &KernelSymbols, name: &'static str, entry: Option<Entry>, exit: Option<Exit>) {
        let plain = symbols.address(name);
        let Some(start) = plain.or_else(|| symbols.address(&format!("{name}.constprop.0"))) else {
            self.missing.push(name);
            return;
        };
        if let Some(entry) = entry {
            self.entries.insert(start, entry);
        }
        self.codes.push(Code { range: extent(symbols, start), exit });
    }

    /// What it means that the instruction at an address is executed.
    pub fn entry_at(&self, address: u64) -> Option<Entry> {
        self.entries.get(&address).copied()
    }

    /// The function of a lock that holds an instruction.
    pub fn code_at(&self, address: u64) -> Option<&Code> {
        let index = self.codes.partition_point(|code| code.range.start <= address).checked_sub(1)?;
        self.codes.get(index).filter(|code| code.range.contains(&address))
    }
}

fn extent(symbols: &KernelSymbols, start: u64) -> Range<u64> {
    start..start + symbols.function_at(start).map_or(1, |symbol| symbol.reach_bytes.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols(extra: &str) -> KernelSymbols {
        let text = format!(
            "ffffffff81000000 T _raw_spin_lock\nffffffff81000040 T _raw_spin_unlock\nffffffff81000060 T mutex_trylock\n\
             ffffffff81000100 T irqentry_exit\nffffffff81000120 T ret_from_fork\nffffffff81000140 t proc_do_uts_string\n\
             ffffffff81000160 T asm_sysvec_apic_timer_interrupt\nffffffff81000180 T asm_exc_page_fault\n\
             ffffffff810001a0 t __mutex_lock.constprop.0\nffffffff81000200 T end_of_code\n{extra}"
        );
        KernelSymbols::parse(text.as_bytes()).expect("well-formed symbols")
    }

    #[test]
    fn functions_are_found_by_name_with_their_code() {
        let functions = Functions::find(&symbols("ffffffff81000220 T __switch_to_asm\n")).expect("all that is needed");
        let acquire = Entry::Acquire { family: Family::Spin, exclusion: Exclusion::Exclusive, may_fail: false };
        assert_eq!(functions.entry_at(0xffff_ffff_8100_0000), Some(acquire));
        assert_eq!(functions.entry_at(0xffff_ffff_8100_0001), None);
        assert_eq!(functions.entry_at(0xffff_ffff_8100_01a0), Some(Entry::Wait));
        assert_eq!(functions.entry_at(0xffff_ffff_8100_0160), Some(Entry::Interrupt));
        assert_eq!(functions.entry_at(0xffff_ffff_8100_0180), Some(Entry::Exception));
        let unlock = functions.code_at(0xffff_ffff_8100_0045).expect("code of a release");
        assert_eq!(unlock.exit, Some(Exit::Release(Family::Spin)));
        assert_eq!(functions.code_at(0xffff_ffff_8100_0013).map(|code| code.exit), Some(None));
        assert_eq!(functions.code_at(0xffff_ffff_8100_0110), None);
        assert!(functions.missing.contains(&"down_read") && !functions.missing.contains(&"mutex_trylock"));
    }

    #[test]
    fn a_kernel_without_the_task_switch_is_refused() {
        let problem = Functions::find(&symbols("")).expect_err("no task switch");
        assert!(problem.contains("`__switch_to_asm`"), "{problem}");
    }
}
