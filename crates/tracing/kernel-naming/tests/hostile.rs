//! A guest whose memory is random, or damaged where it matters: captures must neither panic nor run without end.

mod support;

use std::sync::atomic::AtomicU64;

use kernel_naming::layout::{GuestLayout, Numbers};
use kernel_naming::{GuestMemory, ObjectCapture, WindowView};
use proptest::prelude::*;
use support::guest::*;

/// Words that look like what a kernel holds: addresses of all its parts, small numbers, anything.
fn word() -> impl Strategy<Value = u64> {
    prop_oneof![
        (0..RAM_BYTES).prop_map(direct),
        (0..RAM_BYTES).prop_map(|offset| IMAGE + offset),
        (0..RAM_BYTES).prop_map(|offset| VMEMMAP + (offset & 0xf_ffff)),
        (0..RAM_BYTES).prop_map(|offset| VMALLOC + offset),
        (0..RAM_BYTES).prop_map(|offset| offset & !0xfff | 0x63),
        0..4096u64,
        Just(u64::MAX),
        any::<u64>(),
    ]
}

/// Asks about addresses of all kinds, near and far from `words`.
fn ask(memory: GuestMemory<'_>, layout: &GuestLayout, addresses: &[u64]) {
    let mut view = WindowView::new(memory, layout);
    let _ = view.holds_kernel();
    for address in addresses {
        let capture = view.capture(*address);
        assert_eq!(capture.address, *address);
        assert_eq!(ObjectCapture::from_bytes(&capture.to_bytes()), Ok(capture));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn random_memory_is_survived(
        pattern in prop::collection::vec(word(), 1..64),
        addresses in prop::collection::vec(word(), 1..16),
        below_4g_bytes in prop_oneof![Just(u64::MAX), 0..RAM_BYTES],
    ) {
        let words: Vec<AtomicU64> =
            pattern.iter().cycle().take(0x4_0000).map(|word| AtomicU64::new(word.to_le())).collect();
        ask(GuestMemory::new(&words, below_4g_bytes), &layout(), &addresses);
    }

    #[test]
    fn damage_to_a_whole_guest_is_survived(
        damage in prop::collection::vec((0..RAM_BYTES / 8, word()), 1..200),
        at_structures in prop::collection::vec((0..0x800u64, word()), 1..100),
        addresses in prop::collection::vec(word(), 1..16),
    ) {
        let mut guest = Guest::new();
        guest.cache(direct(FREE + 0x8000), "kmalloc-128", 128, 128, 0);
        for frame in 0..8 {
            guest.slab((FREE >> 12) + frame, direct(FREE + 0x8000));
        }
        guest.task(direct(FREE), "worker", 5, VMALLOC);
        guest.set(direct(PER_CPU_AREAS + CURRENT_TASK), direct(FREE));
        guest.link_task(direct(FREE));
        for (at, value) in damage {
            guest.write(8 * at, value);
        }
        for (at, value) in at_structures {
            // Image variables, page tables, tasks: where most is read from.
            let part = [0x10_0000, 0x18_0000, 0x20_1000, FREE][at as usize % 4];
            guest.write(part + 8 * (at / 4), value);
        }
        ask(guest.memory(), &guest.layout, &addresses);
        let objects: Vec<u64> = (0..64).map(|index| direct(FREE + 520 * index)).collect();
        ask(guest.memory(), &guest.layout, &objects);
    }

    #[test]
    fn any_numbers_in_the_layout_are_survived(
        numbers in prop::collection::vec(word(), layout().to_text().lines().count()),
        zeroes in prop::collection::vec(any::<bool>(), 64),
        addresses in prop::collection::vec(word(), 1..16),
    ) {
        let mut guest = Guest::new();
        guest.slab(FREE >> 12, direct(FREE + 0x8000));
        let mut layout = guest.layout.clone();
        layout.numbers = random_numbers(&layout, &numbers, &zeroes);
        for (edge, offset) in layout.edges.iter_mut().zip(&numbers) {
            edge.offset_bytes = *offset as u32;
            edge.target_offset_bytes = (*offset >> 32) as u32;
        }
        for (root, address) in layout.roots.iter_mut().zip(&numbers) {
            root.address = *address;
        }
        ask(guest.memory(), &layout, &addresses);
    }
}

/// Numbers of a layout, about half of them replaced; made through the text, so that new ones are not forgotten. Those that
/// reading a text refuses are replaced behind its back.
fn random_numbers(layout: &GuestLayout, values: &[u64], keep: &[bool]) -> Numbers {
    const CHECKED: [&str; 6] =
        ["layout_version", "page_size", "stack_size", "image_start", "image_end", "page_reserved_bit"];
    let count = layout.to_text().lines().position(|line| line.starts_with("type ")).unwrap_or(0);
    let text = layout.to_text();
    let lines =
        text.lines().zip(values).zip(keep.iter().cycle()).enumerate().map(|(index, ((line, value), keep))| match line
            .split_once(' ')
        {
            Some((key, _)) if index < count && !keep && !CHECKED.contains(&key) => format!("{key} {value:#x}\n"),
            _ => format!("{line}\n"),
        });
    let mut numbers = GuestLayout::parse(&lines.collect::<String>()).expect("only unchecked numbers differ").numbers;
    for (index, number) in [
        &mut numbers.page_size,
        &mut numbers.stack_size,
        &mut numbers.image_start,
        &mut numbers.image_end,
        &mut numbers.page_reserved_bit,
    ]
    .into_iter()
    .enumerate()
    {
        if !keep[index] {
            *number = values[index];
        }
    }
    numbers
}
