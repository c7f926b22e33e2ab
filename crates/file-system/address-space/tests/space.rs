//! The address space against a plain map of pages: all calls on two cores, files that grow and are cut, memory that runs out.
#![cfg(not(any(loom, shuttle)))]

mod support;

use std::collections::BTreeMap;
use std::ops::Range;

use address_space::{
    Backing, Fault, FileId, Growth, MapError, Place, ProtectError, Protection, RemapError, SPACE_PAGES, Sharing,
};
use pages::PAGE_BYTES;
use percpu::{Core, OutOfMemory};
use proptest::prelude::*;
use support::{Instance, TestFile, owner, part_of, with_instance};

const PAGE: u64 = PAGE_BYTES as u64;
const FILES: usize = 2;
const NAMED_PAGES: u64 = 40;

/// What a page of the model leads to.
#[derive(Clone, Debug)]
enum Kind {
    Own(Vec<u8>),
    File { file: usize, page: u64, sharing: Sharing, may_write: bool, copy: Option<(Vec<u8>, usize)> },
}

#[derive(Clone, Debug)]
struct Page {
    protection: Protection,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Call {
    Map {
        place: Option<u64>,
        may_replace: bool,
        pages: u64,
        protection: Protection,
        backing: Option<(usize, u64, Sharing, bool)>,
    },
    Unmap {
        range: Range<u64>,
    },
    Protect {
        range: Range<u64>,
        protection: Protection,
    },
    Load {
        address: u64,
        length: usize,
    },
    Store {
        address: u64,
        length: usize,
        byte: u8,
    },
    Resize {
        file: usize,
        length: usize,
    },
    Discard {
        range: Range<u64>,
    },
    Grow {
        range: Range<u64>,
        more: u64,
    },
    Relocate {
        range: Range<u64>,
        place: u64,
        more: u64,
    },
    /// Another space, if there are not enough yet; the last one goes if there are.
    Fork,
    Maintain,
}

const SPACES: usize = 3;

fn protection() -> impl Strategy<Value = Protection> {
    prop_oneof![1 => Just(Protection::None), 1 => Just(Protection::Read), 3 => Just(Protection::ReadWrite)]
}

/// Mostly one of few, so that calls meet.
fn page() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 0..6_u64, 1 => 0..NAMED_PAGES]
}

fn length() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 1..4_u64, 1 => 1..20_u64]
}

fn range() -> impl Strategy<Value = Range<u64>> {
    (page(), length()).prop_map(|(start, length)| start..(start + length).min(NAMED_PAGES))
}

fn address() -> impl Strategy<Value = u64> {
    (page(), prop_oneof![Just(0), Just(PAGE - 3), 0..PAGE]).prop_map(|(page, byte)| page * PAGE + byte)
}

fn call() -> impl Strategy<Value = Call> {
    let sharing = prop_oneof![Just(Sharing::Shared), Just(Sharing::Private)];
    let backing = proptest::option::of((0..FILES, 0..4_u64, sharing, any::<bool>()));
    let place = proptest::option::weighted(0.9, page());
    prop_oneof![
        3 => (place, any::<bool>(), length(), protection(), backing).prop_map(
            |(place, may_replace, pages, protection, backing)| Call::Map { place, may_replace, pages, protection, backing }
        ),
        2 => range().prop_map(|range| Call::Unmap { range }),
        2 => (range(), protection()).prop_map(|(range, protection)| Call::Protect { range, protection }),
        4 => (address(), 1..20_usize).prop_map(|(address, length)| Call::Load { address, length }),
        6 => (address(), 1..20_usize, 1..255_u8)
            .prop_map(|(address, length, byte)| Call::Store { address, length, byte }),
        2 => (0..FILES, prop_oneof![0..5 * PAGE_BYTES, (0..6_usize).prop_map(|pages| pages * PAGE_BYTES)])
            .prop_map(|(file, length)| Call::Resize { file, length }),
        1 => range().prop_map(|range| Call::Discard { range }),
        2 => (range(), 1..6_u64).prop_map(|(range, more)| Call::Grow { range, more }),
        2 => (range(), 0..NAMED_PAGES, 0..6_u64).prop_map(|(range, place, more)| Call::Relocate { range, place, more }),
        1 => Just(Call::Fork),
        1 => Just(Call::Maintain),
    ]
}

/// What pages of one mapping have in common: a file with its page that lies at the first one, and how it is shared; rights; whether
/// they can never be stored to.
type Common = (Option<(usize, u64, Sharing)>, Protection, bool);

/// The plain address spaces: those that calls are on, and their files.
struct Model {
    spaces: Vec<BTreeMap<u64, Page>>,
    current: usize,
    files: Vec<TestFile>,
}

impl Model {
    fn map(&mut self, first: u64, pages: u64, protection: Protection, backing: Option<(usize, u64, Sharing, bool)>) {
        for page in 0..pages {
            let kind = match backing {
                None => Kind::Own(vec![0; PAGE_BYTES]),
                Some((file, start, sharing, may_write)) => {
                    Kind::File { file, page: start + page, sharing, may_write, copy: None }
                }
            };
            self.spaces[self.current].insert(first + page, Page { protection, kind });
        }
    }

    fn protect(&mut self, range: Range<u64>, protection: Protection) -> Result<(), ProtectError> {
        for page in range {
            let page = self.spaces[self.current].get_mut(&page).ok_or(ProtectError::NotMapped)?;
            let is_sealed = matches!(page.kind, Kind::File { sharing: Sharing::Shared, may_write: false, .. });
            if protection == Protection::ReadWrite && is_sealed {
                return Err(ProtectError::Denied);
            }
            page.protection = protection;
        }
        Ok(())
    }

    /// What pages are of, if they are one mapping: of a file with its page that lies at the first one.
    fn common(&self, range: &Range<u64>) -> Option<Common> {
        let mut pages = range.clone().map(|page| {
            let Page { protection, kind } = self.spaces[self.current].get(&page)?;
            Some(match kind {
                Kind::Own(_) => (None, *protection, false),
                Kind::File { file, page: in_file, sharing, may_write, .. } => {
                    let is_sealed = *sharing == Sharing::Shared && !may_write;
                    let first = in_file.wrapping_sub(page).wrapping_add(range.start);
                    (Some((*file, first, *sharing)), *protection, is_sealed)
                }
            })
        });
        let first = pages.next()??;
        pages.all(|page| page == Some(first)).then_some(first)
    }

    /// Pages behind the end of a mapping, like it.
    fn add_behind(&mut self, first: u64, pages: Range<u64>, like: Common) {
        let (file, protection, is_sealed) = like;
        for page in pages {
            let kind = match file {
                None => Kind::Own(vec![0; PAGE_BYTES]),
                Some((file, in_file, sharing)) => {
                    Kind::File { file, page: in_file + (page - first), sharing, may_write: !is_sealed, copy: None }
                }
            };
            self.spaces[self.current].insert(page, Page { protection, kind });
        }
    }

    fn is_cut(files: &[TestFile], file: usize, page: u64, seen: usize) -> bool {
        files[file].cuts[seen..].iter().any(|first| *first <= page)
    }

    fn load(&self, page: u64, start: usize, bytes: &mut [u8]) -> Result<(), Fault> {
        let found = self.spaces[self.current]
            .get(&page)
            .filter(|page| page.protection != Protection::None)
            .ok_or(Fault::Segment)?;
        match &found.kind {
            Kind::Own(own) => bytes.copy_from_slice(&own[start..start + bytes.len()]),
            Kind::File { file, page, copy: Some((copy, seen)), .. }
                if !Self::is_cut(&self.files, *file, *page, *seen) =>
            {
                bytes.copy_from_slice(&copy[start..start + bytes.len()]);
            }
            Kind::File { file, page, .. } => {
                let data = &self.files[*file].bytes;
                let part = part_of(data.len(), *page, start, bytes.len()).ok_or(Fault::Bus)?;
                bytes.fill(0);
                bytes[..part.len()].copy_from_slice(&data[part]);
            }
        }
        Ok(())
    }

    fn store(&mut self, page: u64, start: usize, bytes: &[u8]) -> Result<(), Fault> {
        let mut whole = vec![0; PAGE_BYTES];
        let may_load = self.load(page, 0, &mut whole);
        let found = self.spaces[self.current].get_mut(&page).ok_or(Fault::Segment)?;
        if found.protection != Protection::ReadWrite {
            return Err(Fault::Segment);
        }
        match &mut found.kind {
            Kind::Own(own) => own[start..start + bytes.len()].copy_from_slice(bytes),
            Kind::File { file, page, sharing: Sharing::Shared, .. } => {
                let data = &mut self.files[*file].bytes;
                let part = part_of(data.len(), *page, start, bytes.len()).ok_or(Fault::Bus)?;
                let there = part.len();
                data[part].copy_from_slice(&bytes[..there]);
            }
            Kind::File { file, copy, .. } => {
                may_load?;
                whole[start..start + bytes.len()].copy_from_slice(bytes);
                // A copy that lives on keeps the cuts that it has seen: none of them took it.
                *copy = Some((whole, self.files[*file].cuts.len()));
            }
        }
        Ok(())
    }
}

fn pieces(address: u64, length: usize) -> Vec<(u64, usize, Range<usize>)> {
    let first = (PAGE - address % PAGE) as usize;
    let (page, start) = (address / PAGE, (address % PAGE) as usize);
    match length.checked_sub(first) {
        None | Some(0) => vec![(page, start, 0..length)],
        Some(_) => vec![(page, start, 0..first), (page + 1, 0, first..length)],
    }
}

/// Makes a call on both, and compares. A call that found no memory has changed nothing.
fn step(instance: &Instance<'_>, space: &address_space::AddressSpace, core: &Core<'_>, model: &mut Model, call: &Call) {
    match *call {
        Call::Map { place, may_replace, pages, protection, backing } => {
            let place = match place {
                None => Place::Anywhere,
                Some(page) if may_replace => Place::Fixed(page),
                Some(page) => Place::FixedNoReplace(page),
            };
            // The calls above let nobody make a page writable that is not to be.
            let protection = match backing {
                Some((_, _, Sharing::Shared, false)) if protection == Protection::ReadWrite => Protection::Read,
                _ => protection,
            };
            let made = match backing {
                None => Backing::Anonymous,
                Some((file, page, sharing, may_write)) => {
                    instance.files.change_references(FileId(file as u64), 1);
                    Backing::File { file: FileId(file as u64), page, sharing, may_write }
                }
            };
            let mapped = instance.call(core, |memory| space.map(memory, place, pages, protection, made));
            if let (Backing::File { file, .. }, false) = (made, mapped.is_ok_and(|mapped| mapped.is_new)) {
                instance.files.change_references(file, -1);
            }
            match mapped {
                Ok(mapped) => {
                    let range = mapped.page..mapped.page + pages;
                    let is_free = model.spaces[model.current].range(range).next().is_none();
                    match place {
                        Place::Fixed(page) => assert_eq!(mapped.page, page),
                        Place::FixedNoReplace(page) => assert!(mapped.page == page && is_free),
                        Place::Anywhere => assert!(is_free && mapped.page + pages <= SPACE_PAGES),
                    }
                    model.map(mapped.page, pages, protection, backing);
                }
                Err(MapError::Exists) => {
                    let Place::FixedNoReplace(page) = place else { panic!("{place:?} exists") };
                    assert!(model.spaces[model.current].range(page..page + pages).next().is_some());
                }
                Err(MapError::OutOfMemory) => {}
            }
        }
        Call::Unmap { ref range } => {
            if instance.call(core, |memory| space.unmap(memory, range.clone())) == Ok(()) {
                model.spaces[model.current].retain(|page, _| !range.contains(page));
            }
        }
        Call::Protect { ref range, protection } => {
            let outcome = instance.call(core, |memory| space.protect(memory, range.clone(), protection));
            if outcome != Err(ProtectError::OutOfMemory) {
                assert_eq!(outcome, model.protect(range.clone(), protection));
            }
        }
        Call::Load { address, length } => {
            let (mut ours, mut theirs) = (vec![0xaa; length], vec![0xaa; length]);
            let outcome = instance.call(core, |memory| space.load(memory, address, &mut ours));
            if outcome != Err(Fault::OutOfMemory) {
                let expected = pieces(address, length)
                    .into_iter()
                    .try_for_each(|(page, start, part)| model.load(page, start, &mut theirs[part]));
                assert_eq!((outcome, ours), (expected, theirs));
            }
        }
        Call::Store { address, length, byte } => {
            for (page, start, part) in pieces(address, length) {
                let bytes = vec![byte; part.len()];
                let place = page * PAGE + start as u64;
                let outcome = instance.call(core, |memory| space.store(memory, place, &bytes));
                if outcome != Err(Fault::OutOfMemory) {
                    assert_eq!(outcome, model.store(page, start, &bytes));
                }
            }
        }
        Call::Resize { file, length } => {
            instance.files.resize(file, length);
            let data = &mut model.files[file];
            if length < data.bytes.len() {
                data.cuts.push(length.div_ceil(PAGE_BYTES) as u64);
            }
            data.bytes.resize(length, 0);
        }
        Call::Discard { ref range } => {
            // Each page is a step: without memory some have been forgotten, so this has enough.
            core.fail_allocations_after(None);
            instance.call(core, |memory| space.discard(memory, range.clone())).unwrap();
            for (_, page) in model.spaces[model.current].range_mut(range.clone()) {
                match &mut page.kind {
                    Kind::Own(bytes) => bytes.fill(0),
                    Kind::File { copy, .. } => *copy = None,
                }
            }
        }
        Call::Grow { ref range, more } => {
            let outcome = instance.call(core, |memory| space.grow(memory, range.clone(), more));
            let common = model.common(range);
            let behind = range.end..range.end + more;
            let is_free = model.spaces[model.current].range(behind.clone()).next().is_none();
            match outcome {
                Err(RemapError::OutOfMemory) => {}
                Err(error) => assert_eq!((error, common), (RemapError::NotOneMapping, None)),
                Ok(Growth::NoRoom) => assert!(common.is_some() && !is_free),
                Ok(Growth::Done) => {
                    assert!(is_free);
                    model.add_behind(range.start, behind, common.expect("one mapping"));
                }
            }
        }
        Call::Relocate { ref range, place, more } => {
            let pages = range.end - range.start + more;
            // Behind what calls name, or anywhere.
            let place = (place % 3 != 0).then_some(NAMED_PAGES + 64 + place);
            let outcome = instance.call(core, |memory| space.relocate(memory, range.clone(), place, pages));
            let common = model.common(range);
            let is_free =
                |model: &Model, first| model.spaces[model.current].range(first..first + pages).next().is_none();
            match outcome {
                Err(RemapError::OutOfMemory) => {}
                Err(RemapError::Exists) => assert!(!is_free(model, place.expect("a place"))),
                Err(error) => assert_eq!((error, common), (RemapError::NotOneMapping, None)),
                Ok(first) => {
                    assert!(is_free(model, first) && place.is_none_or(|place| place == first));
                    for page in range.clone() {
                        let moved = model.spaces[model.current].remove(&page).unwrap();
                        model.spaces[model.current].insert(first + (page - range.start), moved);
                    }
                    let behind = first + (range.end - range.start)..first + pages;
                    model.add_behind(first, behind, common.expect("one mapping"));
                }
            }
        }
        Call::Fork => unreachable!("made by `run`"),
        Call::Maintain => instance.maintain(core),
    }
}

/// All pages in the end, by a load of each; then nothing is left of the space.
fn finish(instance: &Instance<'_>, space: &address_space::AddressSpace, cores: &[Core<'_>], model: &Model) {
    let mut mapped = Vec::new();
    instance.call(&cores[0], |memory| space.for_each_mapped(memory.guard, |range| mapped.extend(range)));
    assert_eq!(mapped, model.spaces[model.current].keys().copied().collect::<Vec<_>>());
    for page in mapped {
        let call = Call::Load { address: page * PAGE, length: PAGE_BYTES };
        let (mut ours, mut theirs) = (vec![0; PAGE_BYTES], vec![0; PAGE_BYTES]);
        for core in cores {
            let outcome = instance.call(core, |memory| space.load(memory, page * PAGE, &mut ours));
            assert_eq!(outcome, model.load(page, 0, &mut theirs), "{call:?}");
            assert_eq!(ours, theirs, "page {page}");
        }
    }
    // SAFETY: nobody calls it after this.
    instance.call(&cores[0], |memory| unsafe { space.destroy(memory) });
}

/// Another space like the last one, and the model of it; if there are enough, the last one goes.
fn fork<'a>(
    instance: &Instance<'a>,
    spaces: &mut Vec<&'a address_space::AddressSpace>,
    cores: &[Core<'_>],
    core: &Core<'_>,
    model: &mut Model,
) {
    if spaces.len() == SPACES {
        model.current = SPACES - 1;
        core.fail_allocations_after(None);
        finish(instance, spaces.pop().unwrap(), cores, model);
        model.spaces.pop();
        return;
    }
    let parent = *spaces.last().unwrap();
    // SAFETY: used with this instance only.
    let child = instance.arena.place(unsafe { address_space::AddressSpace::new() }).unwrap();
    match instance.call(core, |memory| parent.fork_to(memory, child)) {
        Ok(()) => {
            spaces.push(child);
            model.spaces.push(model.spaces.last().unwrap().clone());
        }
        // SAFETY: nobody knows it.
        Err(OutOfMemory) => instance.call(core, |memory| unsafe { child.destroy(memory) }),
    }
}

fn run(calls: &[(usize, Call)], page_count: u32, failures: &[Option<u32>]) {
    with_instance(2, page_count, |instance, space| {
        let cores = [0, 1].map(|number| instance.arena.claim_waiting(number, owner(), &sync::Spin).unwrap());
        *instance.files.0.lock().unwrap() = vec![TestFile::default(); FILES];
        let mut model = Model { spaces: vec![BTreeMap::new()], current: 0, files: vec![TestFile::default(); FILES] };
        let mut spaces = vec![space];
        for (number, (choice, call)) in calls.iter().enumerate() {
            let core = &cores[choice % 2];
            core.fail_allocations_after(failures.get(number).copied().flatten());
            if matches!(call, Call::Fork) {
                fork(instance, &mut spaces, &cores, core, &mut model);
            } else {
                model.current = choice / 2 % spaces.len();
                step(instance, spaces[model.current], core, &mut model, call);
            }
            core.fail_allocations_after(None);
        }
        for (current, space) in spaces.iter().enumerate() {
            model.current = current;
            finish(instance, space, &cores, &model);
        }
        for core in cores.iter().cycle().take(8 * cores.len()) {
            instance.maintain(core);
        }
        assert_eq!(instance.pages.free_pages(), instance.pages.total(), "pages");
        assert_eq!(instance.arena.live_bytes(), 0, "nodes, tables, mappings and shared pages");
        assert!(instance.files.0.lock().unwrap().iter().all(|file| file.references == 0), "references to files");
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn calls_do_what_the_plain_map_does(calls in prop::collection::vec((0..12_usize, call()), 1..60)) {
        run(&calls, 1000, &[]);
    }

    #[test]
    fn a_call_without_memory_changes_nothing(
        calls in prop::collection::vec((0..12_usize, call()), 1..40),
        failures in prop::collection::vec(prop::option::of(0..4_u32), 40),
    ) {
        run(&calls, 1000, &failures);
    }

    #[test]
    fn pages_run_out(calls in prop::collection::vec((0..12_usize, call()), 1..60)) {
        run(&calls, 5, &[]);
    }
}

/// A private copy of a file's page that a fork shares counts once at its new place, whoever moves it.
#[test]
fn a_copy_that_is_shared_since_a_fork_may_move() {
    for mover in 0..2 {
        let map = Call::Map {
            place: Some(2),
            may_replace: true,
            pages: 1,
            protection: Protection::ReadWrite,
            backing: Some((0, 0, Sharing::Private, true)),
        };
        let calls = [
            (0, Call::Resize { file: 0, length: 3 * PAGE_BYTES }),
            (0, map),
            (0, Call::Store { address: 2 * PAGE + 7, length: 1, byte: 9 }),
            (0, Call::Fork),
            (2 * mover, Call::Relocate { range: 2..3, place: 1, more: 0 }),
        ];
        run(&calls, 100, &[]);
    }
}

/// A mapping of 1 GiB, beside another one whose nodes are there, is a few folded slots; a page that is stored to has a line for what it leads
/// to, and one in the core's table.
#[test]
fn a_large_mapping_is_small() {
    const GIB_PAGES: u64 = 1 << 18;
    with_instance(1, 4096, |instance, space| {
        let core = instance.arena.claim_waiting(0, owner(), &sync::Spin).unwrap();
        let map = |pages| {
            let mapped = instance.call(&core, |memory| {
                space.map(memory, Place::Anywhere, pages, Protection::ReadWrite, Backing::Anonymous)
            });
            mapped.unwrap()
        };
        map(1);
        let before = instance.arena.live_bytes();
        let mapped = map(GIB_PAGES);
        let bytes = instance.arena.live_bytes() - before;
        assert!(bytes <= 8 << 10, "{bytes} bytes for 1 GiB");
        let touched = 2048;
        for page in 0..touched {
            let address = (mapped.page + page) * PAGE;
            instance.call(&core, |memory| space.store(memory, address, &[1])).unwrap();
        }
        let per_page = (instance.arena.live_bytes() - before - bytes) as u64 / touched;
        assert!(per_page <= 192, "{per_page} bytes for each page that was touched");
        assert_eq!(
            instance.call(&core, |memory| space.unmap(memory, mapped.page..mapped.page + GIB_PAGES)),
            Ok::<_, OutOfMemory>(())
        );
    });
}

/// Pages of which a core chooses addresses: 128 GiB.
const PART_PAGES: u64 = 1 << 25;

/// A core chooses addresses of its own part, and takes all of it, but no more.
#[test]
fn a_core_chooses_as_many_pages_as_its_part_has() {
    with_instance(2, 64, |instance, space| {
        let core = instance.arena.claim_waiting(0, owner(), &sync::Spin).unwrap();
        let map = |pages| {
            instance.call(&core, |memory| {
                space.map(memory, Place::Anywhere, pages, Protection::ReadWrite, Backing::Anonymous)
            })
        };
        for pages in [PART_PAGES + 1, 2 * PART_PAGES, 1 << 62, u64::MAX] {
            assert!(matches!(map(pages), Err(MapError::OutOfMemory)), "{pages} pages");
        }
        let all = map(PART_PAGES).map(|mapped| mapped.page).expect("an empty part");
        assert!(matches!(map(1), Err(MapError::OutOfMemory)), "nothing is left");
        instance.call(&core, |memory| space.unmap(memory, all + 5..all + 6)).unwrap();
        assert_eq!(map(1).map(|mapped| mapped.page).expect("one page is free"), all + 5);
    });
}

/// Of one page that is to lead where it leads, with the rights that it has, nothing is written.
#[test]
fn a_page_that_is_mapped_so_already_is_not_mapped_again() {
    with_instance(1, 64, |instance, space| {
        instance.files.0.lock().unwrap().extend([TestFile::default(), TestFile::default()]);
        let core = instance.arena.claim_waiting(0, owner(), &sync::Spin).unwrap();
        let is_new = |page, protection, backing| {
            instance.call(&core, |memory| space.map(memory, Place::Fixed(page), 1, protection, backing)).unwrap().is_new
        };
        let of_file = |file, page, sharing| Backing::File { file: FileId(file), page, sharing, may_write: true };
        let (read, write) = (Protection::Read, Protection::ReadWrite);
        let places = [
            (write, Backing::Anonymous),
            (read, Backing::Anonymous),
            (read, of_file(0, 2, Sharing::Shared)),
            (read, of_file(1, 2, Sharing::Shared)),
            (read, of_file(1, 3, Sharing::Shared)),
            (read, of_file(1, 3, Sharing::Private)),
            (Protection::None, of_file(1, 3, Sharing::Private)),
        ];
        for (protection, backing) in places {
            assert!(is_new(7, protection, backing), "{protection:?} {backing:?} is another");
            assert!(!is_new(7, protection, backing), "{protection:?} {backing:?} is the same");
        }
    });
}

#[test]
fn a_space_tells_of_ranges_whether_they_are_free_or_mapped_throughout() {
    with_instance(1, 64, |instance, space| {
        let core = instance.arena.claim_waiting(0, owner(), &sync::Spin).unwrap();
        let (place, own) = (Place::Fixed(10), Backing::Anonymous);
        instance.call(&core, |memory| space.map(memory, place, 4, Protection::Read, own)).unwrap();
        instance.call(&core, |memory| {
            let told =
                |range: Range<u64>| (space.is_free(memory, range.clone()), space.is_mapped_throughout(memory, range));
            assert_eq!([told(8..10), told(14..20)], [(true, false); 2]);
            assert_eq!([told(10..14), told(11..12)], [(false, true); 2]);
            assert_eq!([told(9..11), told(13..15), told(8..20)], [(false, false); 3]);
        });
    });
}

/// A mapping that begins four pages before the last one of a file that has a number goes on for four, and no further.
#[test]
fn a_mapping_grows_up_to_the_last_page_that_a_file_can_have() {
    let last = u64::MAX / PAGE;
    with_instance(1, 64, |instance, space| {
        instance.files.0.lock().unwrap().push(TestFile::default());
        let core = instance.arena.claim_waiting(0, owner(), &sync::Spin).unwrap();
        let backing = Backing::File { file: FileId(0), page: last - 4, sharing: Sharing::Private, may_write: true };
        instance.call(&core, |memory| {
            space.map(memory, Place::Fixed(10), 2, Protection::Read, backing).unwrap();
            assert_eq!(space.grow(memory, 10..12, 3), Err(RemapError::TooLarge));
            assert_eq!(space.relocate(memory, 10..12, Some(30), 5), Err(RemapError::TooLarge));
            assert_eq!(space.grow(memory, 10..12, 2), Ok(Growth::Done));
            assert_eq!(space.relocate(memory, 10..14, Some(30), 4), Ok(30));
            assert!(space.is_free(memory, 10..14) && space.is_mapped_throughout(memory, 30..34));
        });
    });
}
