//! Names that are kept between windows: what was worked out once must be what would be worked out again. And what is
//! named where all that is known of a program is what it has loaded where, and which blocks it asked for.

#[allow(dead_code)]
#[path = "../../kernel-naming/tests/support/btf.rs"]
mod btf;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use kernel_naming::capture::NAME_BYTES;
use kernel_naming::{Holder, KernelSymbols, KernelTypes, Namer, ObjectCapture};
use mtrace::blocks::{BlockCapture, BlockState};
use mtrace::conflict::{Places, Sharing};
use mtrace::loaded::LoadedNames;
use mtrace::names::{Fields, NameSource, Names, Symbol};
use mtrace::record::{Access, SharedLine};
use proptest::prelude::*;

const SYMBOLS: &str = "\
0000000000000000 A __per_cpu_start
0000000000002000 A runqueues
0000000000002040 A counter
0000000000003000 A __per_cpu_end
ffffffff81000000 T vfs_open
ffffffff81000200 t pcpu_get_vm_areas
ffffffff81000300 T last
ffffffff82000000 d super_blocks
ffffffff82000010 D init_task
ffffffff82000100 d __key.7
";

fn line(address: u64, captures: Vec<Vec<u8>>) -> SharedLine {
    SharedLine { address, physical: None, captures, accesses: Vec::new(), moments: Vec::new() }
}

static KERNEL: LazyLock<Arc<Namer>> = LazyLock::new(|| {
    let types = KernelTypes::parse(&btf::small_kernel()).expect("whole");
    Arc::new(Namer::new(types, KernelSymbols::parse(SYMBOLS.as_bytes()).expect("whole")))
});

fn text(name: &str) -> [u8; NAME_BYTES] {
    std::array::from_fn(|index| name.as_bytes().get(index).copied().unwrap_or(0))
}

/// A capture of the byte at this offset of a line. Few values for each of its parts, so that many captures share some.
fn any_capture(line: u64) -> impl Strategy<Value = ObjectCapture> {
    let names = |of: &'static [&str]| prop::sample::select(of).prop_map(text);
    let object = prop_oneof![
        6 => prop::sample::select(vec![0_u64, 16, 40, 64]).prop_map(move |before| line - before),
        1 => prop::sample::select(vec![0x2000_u64, 0x2008, 0x2040, 0xffff_ffff_8200_0000, 0xffff_ffff_8200_0110]),
    ];
    let caches = names(&["", "dentry", "kmalloc-192", "shmem_inode_cache"]);
    let types = names(&["", "", "inode", "dentry", "dentry[]"]);
    let owner = prop::sample::select(vec![0, 0xffff_ffff_8100_0010, 0xffff_ffff_8100_0204_u64]);
    ((0..12_u32, 0..7_u32), object, (0..4_u64, 0..3_u64), (caches, types), owner).prop_map(
        move |((kind, page_kind), object, (at, typed), (cache_name, type_name), owner)| ObjectCapture {
            kind,
            page_kind,
            object,
            object_size: 144,
            owner,
            cache_name,
            type_name,
            typed_start: object + 8 * typed,
            ..ObjectCapture::unknown(line + 16 * at)
        },
    )
}

/// The same capture with one of its parts changed.
fn neighbours(of: ObjectCapture) -> Vec<ObjectCapture> {
    let mut all = vec![of];
    let mut add = |change: &dyn Fn(&mut ObjectCapture)| {
        let mut other = of;
        change(&mut other);
        all.push(other);
    };
    for more in [0, 8, 16, 40] {
        add(&|other| other.typed_start = other.object + more);
        add(&|other| other.object += more);
    }
    for owner in [0, 0xffff_ffff_8100_0010, 0xffff_ffff_8100_0204] {
        add(&|other| other.owner = owner);
    }
    for name in ["", "dentry", "shmem_inode_cache"] {
        add(&|other| other.cache_name = text(name));
    }
    for name in ["", "inode", "dentry[]"] {
        add(&|other| other.type_name = text(name));
    }
    for kind in 0..12 {
        add(&|other| other.kind = kind);
    }
    all
}

const LINES: [u64; 3] = [0xffff_8880_0012_3440, 0xffff_8880_0012_3480, 0xffff_ffff_8200_0000];

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever a name depends on is part of what it is kept by: neighbours differ in one part each.
    #[test]
    fn names_that_are_kept_are_those_that_would_be_worked_out_anew(
        (address, capture) in prop::sample::select(LINES.to_vec()).prop_flat_map(|line| (Just(line), any_capture(line))),
        (offset, size_bytes) in (0..16_u8, prop::sample::select(vec![1_u8, 4, 8])),
    ) {
        let names = || Names::new(NameSource::Kernel(Arc::clone(&KERNEL)));
        let mut kept = names();
        let mut known: HashMap<u32, Fields> = HashMap::new();
        for capture in neighbours(capture) {
            let line = line(address, vec![capture.to_bytes().to_vec()]);
            let mut anew = names();
            let place = kept.place(&line, 4 * offset, size_bytes);
            let expected = anew.place(&line, 4 * offset, size_bytes);
            prop_assert_eq!(kept.place_name(place), anew.place_name(expected));
            let next = known.len() as u32;
            let number = kept.fields_once(&line, |fields| {
                known.insert(next, fields);
                next
            });
            prop_assert_eq!(&known[&number], &anew.fields(&line));
        }
    }
}

/// Numbers for lines' fields, and how often they were asked for.
fn numbered(names: &mut Names, lines: &[&SharedLine]) -> (Vec<u32>, usize) {
    let mut asked = 0;
    let number = |line: &&SharedLine| {
        names.fields_once(line, |_| {
            asked += 1;
            asked as u32
        })
    };
    let numbers = lines.iter().map(number).collect();
    (numbers, asked)
}

#[test]
fn a_programs_lines_have_the_names_of_their_symbols() {
    let symbol = |start, end, name: &str| Symbol { start, end, name: name.to_owned() };
    let mut names =
        Names::new(NameSource::Program(vec![symbol(0x9048, 0x9050, "later"), symbol(0x9000, 0x9040, "counters")]));
    let (first, second) = (line(0x9000, vec![]), line(0x9040, vec![]));
    assert_eq!(names.fields(&first), [((0, 64), "counters".to_owned())]);
    assert_eq!(names.fields(&second), [((8, 8), "later".to_owned())]);
    assert_eq!(numbered(&mut names, &[&first, &second, &first, &second]), (vec![1, 2, 1, 2], 2));
    assert_eq!([0x9004, 0x9040].map(|at| names.frames(at)), [["counters+0x4"], ["0x9040"]]);
    assert_eq!(names.holder(&second, 8), (Holder { name: String::new(), start: 0 }, 0x9040));
    assert_eq!(names.of_whom_at(&first, 0), 0);
}

/// A program with one library, which has no debug information, and two threads' stacks.
const LISTING: &str = "\
module 1000 2000 1000 /none/program
module 5000 9000 4000 /none/libtable.so
stack 20000 30000 0
stack 30000 40000 1
end
";

fn loaded(listing: &'static str) -> Names {
    let mut names =
        Names::new(NameSource::Loaded(Box::new(Mutex::new(LoadedNames::new(Box::new(|| listing.to_owned()))))));
    names.update();
    names
}

fn block(address: u64, size_bytes: u64, state: BlockState, sites: &[u64]) -> Vec<u8> {
    BlockCapture { address, size_bytes, state, sites: sites.to_vec() }.to_bytes().to_vec()
}

fn access(offset: u8) -> Access {
    Access { instruction: 0x5010, stack: 0, core: 0, offset, size_bytes: 8, kind: true.into() }
}

/// What an access to this offset of a line is called.
fn called(names: &mut Names, line: &SharedLine, offset: u8) -> (String, String) {
    names.pair([(line, access(offset)), (line, access(offset))], Sharing::True)
}

#[test]
fn code_is_named_by_the_module_that_is_loaded_there() {
    let mut names = loaded(LISTING);
    for (address, function, frames) in [
        (0x5010, "libtable.so+0x1010", vec!["libtable.so+0x1010"]),
        (0x8fff, "libtable.so+0x4fff", vec!["libtable.so+0x4fff"]),
        (0x9000, "0x9000", vec!["0x9000"]),
        (0x1004, "program+0x4", vec![]),
    ] {
        let number = names.function(address);
        assert_eq!(names.function_name(number), function);
        assert_eq!(names.frames(address), frames, "the program itself only runs the tests");
    }
    let mut early = loaded("module 5000 9000 4000 /none/libtable.so\n");
    assert_eq!(early.frames(0x5010), ["0x5010"], "a list that is not whole yet");
}

#[test]
fn what_is_in_no_block_is_the_stack_the_module_or_nothing() {
    let mut names = loaded(LISTING);
    for (address, object) in [
        (0x20000, "stack or thread-local of core 0's thread"),
        (0x3ffc0, "stack or thread-local of core 1's thread"),
        (0x40000, "memory outside of blocks"),
        (0x6000, "libtable.so+0x2000"),
    ] {
        assert_eq!(called(&mut names, &line(address, vec![]), 0), (object.to_owned(), String::new()));
    }
}

#[test]
fn a_block_is_told_by_its_size_and_by_who_asked_for_it() {
    let mut names = loaded(LISTING);
    let asked = &[0x5100];
    let captures = vec![
        block(0xa0f8, 24, BlockState::Live, asked),
        block(0xa120, 32, BlockState::Freed, asked),
        block(0xa110, 0, BlockState::Header, asked),
        // What lived where there is another now.
        block(0xa100, 8, BlockState::Freed, &[0x5200]),
    ];
    let shared = line(0xa100, captures);
    for (offset, bytes, field) in [(0, 24, "+0x8"), (15, 24, "+0x17"), (32, 32, "+0x0"), (63, 32, "+0x1f")] {
        let expected = (format!("block of {bytes} bytes"), format!("{field} (libtable.so)"));
        // Twice: it is known by then, and still the same.
        assert_eq!([(); 2].map(|()| called(&mut names, &shared, offset)), [expected.clone(), expected], "{offset}");
    }
    assert_eq!(called(&mut names, &shared, 16).0, "header of a block, the C library's allocator");
    assert_eq!(called(&mut names, &shared, 31).0, "header of a block, the C library's allocator");
    let both = names.pair([(&shared, access(8)), (&shared, access(40))], Sharing::False);
    assert!(both.0.contains("24 bytes") && both.0.contains("32 bytes") && both.0.contains(" | "), "{both:?}");
    assert_eq!(
        names.holder(&shared, 40).0,
        Holder { name: "block of 32 bytes (libtable.so)".to_owned(), start: 0xa120 }
    );
    assert_eq!(
        names.holder(&shared, 8).0,
        Holder { name: "block of 24 bytes (libtable.so)".to_owned(), start: 0xa0f8 }
    );
    let ranges: Vec<_> = names.fields(&shared).into_iter().map(|(range, _)| range).collect();
    assert_eq!(ranges.iter().map(|(_, size)| u32::from(*size)).sum::<u32>(), 64, "{ranges:?}");
}

#[test]
fn blocks_of_one_kind_have_one_name_wherever_they_lie() {
    let mut names = loaded(LISTING);
    let at = |address: u64, before: u64, size: u64, site: u64| {
        line(address, vec![block(address - before, size, BlockState::Live, &[site])])
    };
    let lines = [
        at(0xa000, 16, 100, 0x5100),
        at(0xb000, 16, 100, 0x5100),
        at(0xb000, 32, 100, 0x5100),
        at(0xb000, 16, 104, 0x5100),
        at(0xb000, 16, 100, 0x5104),
        // Data of a module is named by its address.
        line(0x6000, vec![]),
        line(0x6040, vec![]),
        line(0xc000, vec![]),
        line(0xd000, vec![]),
    ];
    let (numbers, asked) = numbered(&mut names, &lines.each_ref());
    assert_eq!((numbers, asked), (vec![1, 1, 2, 3, 4, 5, 6, 7, 7], 7));
}
