//! Makes the tracer's layout from the kernel's own symbol table, the text of `/proc/kallsyms`.
//!
//! The kernel must run without address randomisation, or the text must come from the same boot. Names are those of
//! x86-64 Linux: entry points of `arch/x86/entry/entry_64.S` and `arch/x86/include/asm/idtentry.h`, the softirq
//! dispatcher of `kernel/softirq.c`, allocators of `mm/`.

use kernel_naming::{GuestLayout, KernelSymbols, KernelTypes};

use crate::layout::{Entry, EntryPoint, Layout, Range, RangeKind};

/// Interrupts that one core sends another on behalf of a call (TLB shoot-down, remote function calls, wake-ups).
const INTER_PROCESSOR_INTERRUPTS: [&str; 3] =
    ["asm_sysvec_call_function", "asm_sysvec_call_function_single", "asm_sysvec_reschedule_ipi"];

/// Entry points that are interrupts although they carry the name of an exception: they belong to no call.
const INTERRUPT_LIKE_EXCEPTIONS: [&str; 2] = ["asm_exc_nmi", "asm_exc_machine_check"];

/// Functions that clear memory: `memset`, `clear_page`, and the variants that boot-time patching chooses from.
const CLEAR_NAMES: [&str; 7] =
    ["__memset", "clear_page_erms", "clear_page_orig", "clear_page_rep", "memset", "memset_erms", "memset_orig"];

/// Functions under which cleared memory is fresh: the slab, page, per-CPU and vmalloc allocators, and the tmpfs
/// function that allocates a page of a file and clears it itself.
const ALLOCATOR_NAMES: [&str; 27] = [
    "___slab_alloc",
    "__alloc_pages",
    "__alloc_pages_bulk",
    "__alloc_percpu",
    "__alloc_percpu_gfp",
    "__folio_alloc",
    "__get_free_pages",
    "__kmalloc",
    "__kmalloc_large_node",
    "__kmalloc_node",
    "__kmalloc_node_track_caller",
    "__kmem_cache_alloc_node",
    "__slab_alloc",
    "__vmalloc_node_range",
    "alloc_pages",
    "get_page_from_freelist",
    "get_zeroed_page",
    "kmalloc_large",
    "kmalloc_node_trace",
    "kmalloc_trace",
    "kmem_cache_alloc",
    "kmem_cache_alloc_bulk",
    "kmem_cache_alloc_lru",
    "kmem_cache_alloc_node",
    "pcpu_alloc",
    "prep_new_page",
    "shmem_get_folio_gfp",
];

/// What the tick leaves to the task that it interrupted, to be done on the way out to user mode (`kernel/sched`): which call
/// meets it is a matter of time.
const WORK_OF_TICKS: [&str; 2] = ["task_mm_cid_work", "task_numa_work"];

/// Functions without which nothing can be attributed.
const NEEDED: [&str; 6] = [
    "entry_SYSCALL_64",
    "__do_softirq",
    "asm_exc_page_fault",
    "asm_sysvec_apic_timer_interrupt",
    "ret_from_fork",
    "__switch_to_asm",
];

/// Functions that call the scheduler for a task whose time is over: on the way out to user mode or out of an interrupt, and
/// where the kernel offers itself (`kernel/entry/common.c`, `kernel/sched/core.c`).
const PREEMPTING_NAMES: [&str; 6] = [
    "exit_to_user_mode_loop",
    "exit_to_user_mode_prepare",
    "preempt_schedule",
    "preempt_schedule_common",
    "preempt_schedule_irq",
    "preempt_schedule_notrace",
];

/// Why no layout could be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KallsymsError {
    /// A line is not `ADDRESS TYPE NAME`.
    #[error("kernel symbols, line {line}: expected 'ADDRESS TYPE NAME', got '{text}'")]
    Line {
        /// The line, counted from 1.
        line: usize,
        /// Its start.
        text: String,
    },
    /// Every address is zero: the reader lacked the right to see them.
    #[error("kernel symbols: expected addresses, got zeros only (read them as root, with kernel.kptr_restrict=0)")]
    Hidden,
    /// A symbol is missing without which the rules cannot work.
    #[error("kernel symbols: expected '{0}', not found (is this the /proc/kallsyms of an x86-64 Linux?)")]
    Missing(&'static str),
}

/// Makes the whole layout file of a kernel from its `/proc/kallsyms` and its type information (BTF). Without types the
/// layout has no part about objects, and the tracer captures none.
///
/// # Errors
/// One line that says which of the two is not what it should be.
pub fn layout_of_kernel(kallsyms: &str, types: Option<&KernelTypes>) -> Result<Layout, String> {
    let mut layout = layout_from_kallsyms(kallsyms).map_err(|error| error.to_string())?;
    let Some(types) = types else { return Ok(layout) };
    let symbols = KernelSymbols::parse(kallsyms.as_bytes()).map_err(|error| error.to_string())?;
    let objects = GuestLayout::derive(types, &symbols).map_err(|error| error.to_string())?;
    layout.objects = Some(objects.to_text());
    Ok(layout)
}

struct Symbol<'a> {
    address: u64,
    code: bool,
    name: &'a str,
}

/// Makes the layout of a kernel from the text of its `/proc/kallsyms`. [`Layout::objects`] stays empty.
///
/// # Errors
/// [`KallsymsError`] if the text is not such a table, or lacks a symbol that the rules need.
pub fn layout_from_kallsyms(text: &str) -> Result<Layout, KallsymsError> {
    let mut symbols = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let symbol = parse_symbol(line);
        symbols.push(
            symbol.ok_or_else(|| KallsymsError::Line { line: index + 1, text: line.chars().take(60).collect() })?,
        );
    }
    if !symbols.is_empty() && symbols.iter().all(|symbol| symbol.address == 0) {
        return Err(KallsymsError::Hidden);
    }
    symbols.sort_by_key(|symbol| symbol.address);

    let mut layout = Layout::default();
    for (index, symbol) in symbols.iter().enumerate() {
        if !symbol.code {
            continue;
        }
        if let Some(point) = entry_point(symbol.name)
            && layout.entry_at(symbol.address).is_none()
        {
            layout.entries.push(Entry { point, address: symbol.address, name: symbol.name.to_owned() });
        }
        if let Some(kind) = range_kind(symbol.name)
            && let Some(next) = symbols[index..].iter().find(|next| next.address > symbol.address)
        {
            let name = symbol.name.to_owned();
            layout.ranges.push(Range { kind, start: symbol.address, end: next.address, name });
        }
    }
    match NEEDED.iter().find(|name| !symbols.iter().any(|symbol| symbol.code && symbol.name == **name)) {
        Some(missing) => Err(KallsymsError::Missing(missing)),
        None => Ok(layout),
    }
}

fn parse_symbol(line: &str) -> Option<Symbol<'_>> {
    let mut fields = line.split_ascii_whitespace();
    let address = u64::from_str_radix(fields.next()?, 16).ok()?;
    let code = matches!(fields.next()?, "t" | "T" | "w" | "W");
    Some(Symbol { address, code, name: fields.next()? })
}

fn entry_point(name: &str) -> Option<EntryPoint> {
    Some(match name {
        "entry_SYSCALL_64" => EntryPoint::SystemCall,
        "__do_softirq" => EntryPoint::Softirq,
        _ if WORK_OF_TICKS.contains(&name) => EntryPoint::Softirq,
        "ret_from_fork" => EntryPoint::TaskStart,
        "schedule" | "__schedule" => EntryPoint::Schedule,
        "asm_common_interrupt" | "asm_spurious_interrupt" => EntryPoint::Interrupt,
        _ if INTER_PROCESSOR_INTERRUPTS.contains(&name) => EntryPoint::InterProcessorInterrupt,
        _ if name.starts_with("asm_sysvec_") || INTERRUPT_LIKE_EXCEPTIONS.contains(&name) => EntryPoint::Interrupt,
        _ if name.starts_with("asm_exc_") => EntryPoint::Exception,
        _ => return None,
    })
}

fn range_kind(name: &str) -> Option<RangeKind> {
    // The compiler appends what it did to a function (`.isra.0`, `.constprop.0`, `.part.0`).
    let plain = name.split('.').next().unwrap_or(name);
    if plain == "__switch_to_asm" {
        Some(RangeKind::TaskSwitch)
    } else if CLEAR_NAMES.contains(&plain) {
        Some(RangeKind::Clear)
    } else if ALLOCATOR_NAMES.contains(&plain) {
        Some(RangeKind::Allocator)
    } else if PREEMPTING_NAMES.contains(&plain) {
        Some(RangeKind::Preemption)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: &str = "\
0000000000000000 A fixed_percpu_data
ffffffff81000010 T __do_softirq
ffffffff81000100 T kmem_cache_alloc
ffffffff81000200 t get_page_from_freelist.isra.0
ffffffff81000300 W memset
ffffffff81000300 T __memset
ffffffff81000340 t memset_orig
ffffffff81000380 t memset_io
ffffffff81000400 T memcpy
ffffffff81000500 t exit_to_user_mode_prepare
ffffffff81000600 T schedule
ffffffff81000700 t task_mm_cid_work
ffffffff82000000 T __switch_to_asm
ffffffff82000050 T ret_from_fork
ffffffff82000080 T entry_SYSCALL_64
ffffffff82000100 T asm_exc_page_fault
ffffffff82000110 T asm_exc_nmi
ffffffff82000120 T asm_sysvec_apic_timer_interrupt
ffffffff82000130 T asm_sysvec_call_function
ffffffff82000140 T asm_common_interrupt
ffffffffc0000000 t asm_of_module\t[module]
";

    #[test]
    fn each_symbol_gets_its_part() {
        let layout = layout_from_kallsyms(SYMBOLS).expect("all symbols are there");
        let point = |address| layout.entry_at(address).map(|entry| entry.point);
        assert_eq!(point(0xffff_ffff_8200_0100), Some(EntryPoint::Exception));
        assert_eq!(point(0xffff_ffff_8200_0110), Some(EntryPoint::Interrupt));
        assert_eq!(point(0xffff_ffff_8200_0120), Some(EntryPoint::Interrupt));
        assert_eq!(point(0xffff_ffff_8200_0130), Some(EntryPoint::InterProcessorInterrupt));
        assert_eq!(point(0xffff_ffff_8200_0140), Some(EntryPoint::Interrupt));
        assert!(layout.is_in(RangeKind::Clear, 0xffff_ffff_8100_037f));
        assert!(!layout.is_in(RangeKind::Clear, 0xffff_ffff_8100_0380));
        assert!(layout.is_in(RangeKind::Preemption, 0xffff_ffff_8100_05ff));
        assert_eq!(point(0xffff_ffff_8100_0600), Some(EntryPoint::Schedule));
        assert_eq!(point(0xffff_ffff_8100_0700), Some(EntryPoint::Softirq), "a tick's work, as a softirq is");
        assert!(layout.is_in(RangeKind::Allocator, 0xffff_ffff_8100_0250));
        assert_eq!(Layout::parse(&layout.to_text()), Ok(layout));
    }

    #[test]
    fn what_is_missing_is_named() {
        for name in NEEDED {
            let without = SYMBOLS.replace(&format!("T {name}\n"), "T other\n");
            assert_eq!(layout_from_kallsyms(&without), Err(KallsymsError::Missing(name)));
        }
        assert_eq!(layout_from_kallsyms(""), Err(KallsymsError::Missing("entry_SYSCALL_64")));
        assert_eq!(layout_from_kallsyms("0 T a\n0 T b\n"), Err(KallsymsError::Hidden));
        let error = layout_from_kallsyms("0 T a\nxyz\n").expect_err("not a symbol");
        assert_eq!(error.to_string(), "kernel symbols, line 2: expected 'ADDRESS TYPE NAME', got 'xyz'");
    }
}
