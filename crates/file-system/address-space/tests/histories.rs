//! Concurrent histories of an address space: an order must exist in which a plain map of pages returns the same, each call being
//! one step; nothing is lost in the end, and no page has two uses.
//!
//! Calls are on one page each: of several pages each is a step of its own.
#![cfg(not(loom))]

mod support;

use address_space::{AddressSpace, Backing, Fault, FileId, MapError, Place, ProtectError, Protection, Sharing};
use history::threads::lock;
use history::{Event, Made, State, explore, is_linearisable, play, rounds, told};
use pages::PAGE_BYTES;
use percpu::Core;
use proptest::collection::vec;
use proptest::prelude::*;
use support::{Instance, TestFile, owner, with_instance};

const PAGES: usize = 2;
const FILE_PAGES: usize = 2;
const FILE: FileId = FileId(0);
const CORES: usize = 5;

/// What is mapped: anonymous memory, or a page of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Source {
    Anonymous,
    File { page: usize, is_shared: bool, may_write: bool },
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Map(usize, Source, Protection),
    Unmap(usize),
    Protect(usize, Protection),
    Load(usize),
    Store(usize, u8),
    /// The file has so many pages, zeros if they are new.
    Resize(usize),
    /// Writes to the file itself, below its end.
    Write(usize, u8),
    Maintain,
    Leave,
}

/// A call with what it returned.
#[derive(Clone, Debug)]
enum Step {
    Map(usize, Source, Protection),
    Unmap(usize),
    Protect(usize, Protection, Result<(), ProtectError>),
    Load(usize, Result<u8, Fault>),
    Store(usize, u8, Result<(), Fault>),
    Resize(usize),
    Write(usize, u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Page {
    source: Source,
    can_load: bool,
    can_store: bool,
    /// What it holds by itself.
    own: Option<u8>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Plain {
    pages: [Option<Page>; PAGES],
    /// The first byte of each of the file's pages, as far as it goes.
    file: Vec<u8>,
}

impl Plain {
    fn load(&self, page: Page) -> Result<u8, Fault> {
        match (page.own, page.source) {
            (Some(own), _) => Ok(own),
            (None, Source::Anonymous) => Ok(0),
            (None, Source::File { page, .. }) => self.file.get(page).copied().ok_or(Fault::Bus),
        }
    }

    fn store(&mut self, number: usize, byte: u8) -> Result<(), Fault> {
        let page = self.pages[number].filter(|page| page.can_store).ok_or(Fault::Segment)?;
        self.load(page)?;
        match page.source {
            Source::File { page, is_shared: true, .. } => self.file[page] = byte,
            _ => self.pages[number] = Some(Page { own: Some(byte), ..page }),
        }
        Ok(())
    }
}

impl State for Plain {
    type Step = Step;

    fn take(&mut self, _: usize, step: &Step) -> bool {
        match *step {
            Step::Map(page, source, protection) => {
                let can_load = protection != Protection::None;
                let can_store = protection == Protection::ReadWrite;
                self.pages[page] = Some(Page { source, can_load, can_store, own: None });
                true
            }
            Step::Unmap(page) => {
                self.pages[page] = None;
                true
            }
            Step::Protect(number, protection, outcome) => {
                let Some(page) = &mut self.pages[number] else { return outcome == Err(ProtectError::NotMapped) };
                let is_sealed = matches!(page.source, Source::File { is_shared: true, may_write: false, .. });
                if protection == Protection::ReadWrite && is_sealed {
                    return outcome == Err(ProtectError::Denied);
                }
                page.can_load = protection != Protection::None;
                page.can_store = protection == Protection::ReadWrite;
                outcome == Ok(())
            }
            Step::Load(page, outcome) => {
                let page = self.pages[page].filter(|page| page.can_load);
                page.ok_or(Fault::Segment).and_then(|page| self.load(page)) == outcome
            }
            Step::Store(page, byte, outcome) => self.store(page, byte) == outcome,
            Step::Resize(pages) => {
                for page in self.pages.iter_mut().flatten() {
                    if matches!(page.source, Source::File { page, .. } if page >= pages && pages < self.file.len()) {
                        page.own = None;
                    }
                }
                self.file.resize(pages, 0);
                true
            }
            Step::Write(page, byte) => {
                if let Some(place) = self.file.get_mut(page) {
                    *place = byte;
                }
                true
            }
        }
    }
}

fn act(instance: &Instance<'_>, space: &AddressSpace, core: &Core<'_>, operation: Operation) -> Vec<Step> {
    vec![match operation {
        Operation::Map(page, source, protection) => {
            let backing = match source {
                Source::Anonymous => Backing::Anonymous,
                Source::File { page, is_shared, may_write } => {
                    instance.files.change_references(FILE, 1);
                    let sharing = if is_shared { Sharing::Shared } else { Sharing::Private };
                    Backing::File { file: FILE, page: page as u64, sharing, may_write }
                }
            };
            let place = Place::Fixed(page as u64);
            let mapped = instance.call(core, |memory| space.map(memory, place, 1, protection, backing));
            if backing != Backing::Anonymous && !mapped.is_ok_and(|mapped| mapped.is_new) {
                instance.files.change_references(FILE, -1);
            }
            match mapped {
                Err(MapError::OutOfMemory) => return vec![],
                mapped => assert_eq!(mapped.unwrap().page, page as u64),
            }
            Step::Map(page, source, protection)
        }
        Operation::Unmap(page) => {
            let number = page as u64;
            match instance.call(core, |memory| space.unmap(memory, number..number + 1)) {
                Ok(()) => Step::Unmap(page),
                Err(_) => return vec![],
            }
        }
        Operation::Protect(page, protection) => {
            let number = page as u64;
            match instance.call(core, |memory| space.protect(memory, number..number + 1, protection)) {
                Err(ProtectError::OutOfMemory) => return vec![],
                outcome => Step::Protect(page, protection, outcome),
            }
        }
        Operation::Load(page) => {
            let mut byte = [0];
            let address = (page * PAGE_BYTES) as u64;
            match instance.call(core, |memory| space.load(memory, address, &mut byte)) {
                Err(Fault::OutOfMemory) => return vec![],
                outcome => Step::Load(page, outcome.map(|()| byte[0])),
            }
        }
        Operation::Store(page, byte) => {
            let address = (page * PAGE_BYTES) as u64;
            match instance.call(core, |memory| space.store(memory, address, &[byte])) {
                Err(Fault::OutOfMemory) => return vec![],
                outcome => Step::Store(page, byte, outcome),
            }
        }
        Operation::Resize(pages) => {
            instance.files.resize(0, pages * PAGE_BYTES);
            Step::Resize(pages)
        }
        Operation::Write(page, byte) => {
            let mut files = instance.files.0.lock().unwrap();
            if let Some(place) = files[0].bytes.get_mut(page * PAGE_BYTES) {
                *place = byte;
            }
            Step::Write(page, byte)
        }
        Operation::Maintain | Operation::Leave => return vec![],
    }]
}

/// An operation, and after how many allocations there is no memory left for it.
type Attempt = (Operation, Option<u32>);

fn any_operation() -> impl Strategy<Value = Attempt> {
    let page = || prop_oneof![3 => Just(0), 1 => 0..PAGES];
    let protection =
        || prop_oneof![1 => Just(Protection::None), 2 => Just(Protection::Read), 4 => Just(Protection::ReadWrite)];
    let source = || {
        let file = (0..FILE_PAGES, any::<bool>(), any::<bool>())
            .prop_map(|(page, is_shared, may_write)| Source::File { page, is_shared, may_write });
        prop_oneof![1 => Just(Source::Anonymous), 2 => file]
    };
    let map = (page(), source(), protection()).prop_map(|(page, source, protection)| {
        // The calls above let nobody map writably what cannot be made so.
        let is_sealed = matches!(source, Source::File { is_shared: true, may_write: false, .. });
        let is_wrong = is_sealed && protection == Protection::ReadWrite;
        Operation::Map(page, source, if is_wrong { Protection::Read } else { protection })
    });
    let operation = prop_oneof![
        4 => map,
        2 => page().prop_map(Operation::Unmap),
        3 => (page(), protection()).prop_map(|(page, protection)| Operation::Protect(page, protection)),
        6 => page().prop_map(Operation::Load),
        6 => (page(), 1..100_u8).prop_map(|(page, byte)| Operation::Store(page, byte)),
        2 => (0..FILE_PAGES + 1).prop_map(Operation::Resize),
        2 => (0..FILE_PAGES, 100..200_u8).prop_map(|(page, byte)| Operation::Write(page, byte)),
        2 => Just(Operation::Maintain),
        1 => Just(Operation::Leave),
    ];
    (operation, proptest::option::weighted(0.1, 0..4_u32))
}

type Plan = Vec<Vec<Attempt>>;

fn plans(number: u64) -> impl Strategy<Value = Plan> {
    let threads = 2 + number as usize % 3;
    vec(vec(any_operation(), 18 / threads), threads)
}

fn check(number: u64, plan: &Plan) {
    with_instance(CORES, 40, |instance, space| {
        *lock(&instance.files.0) = vec![TestFile::default()];
        let prelude = [Operation::Resize(1), Operation::Map(0, Source::Anonymous, Protection::ReadWrite)];
        let mut first = Vec::new();
        {
            let core = instance.arena.claim(CORES - 1, owner()).unwrap();
            for operation in prelude {
                first.extend(act(instance, space, &core, operation));
            }
        }
        let made = play(plan, |thread| {
            let mut core = None;
            move |(operation, memory): &Attempt| {
                if matches!(operation, Operation::Leave) {
                    core = None;
                }
                let core = core.get_or_insert_with(|| instance.arena.claim(thread, owner()).unwrap());
                core.fail_allocations_after(*memory);
                let steps = act(instance, space, core, *operation);
                core.fail_allocations_after(None);
                if matches!(operation, Operation::Maintain) {
                    instance.maintain(core);
                    instance.arena.for_each_idle_core(|idle| instance.maintain(idle));
                }
                steps
            }
        });
        let event = |made: &Made<Attempt, Vec<Step>>| Event {
            steps: made.outcome.clone(),
            began: made.began + 1,
            ended: made.ended + 1,
        };
        let mut events: Vec<Vec<_>> = made.iter().map(|made| made.iter().map(event).collect()).collect();
        events.push(vec![Event { steps: first, began: 0, ended: 1 }]);
        let core = instance.arena.claim(CORES - 1, owner()).unwrap();
        let looks: Vec<_> = (0..PAGES).flat_map(|page| act(instance, space, &core, Operation::Load(page))).collect();
        let told = format!("{}{looks:?}", told(&made));
        events.push(vec![Event { steps: looks, began: u64::MAX - 1, ended: u64::MAX }]);
        assert!(is_linearisable(&events, &Plain::default()), "no order explains round {number}:\n{told}");
        // SAFETY: all threads have ended.
        instance.call(&core, |memory| unsafe { space.destroy(memory) });
        for _ in 0..8 {
            instance.maintain(&core);
            instance.arena.for_each_idle_core(|idle| instance.maintain(idle));
        }
        assert_eq!(instance.pages.free_pages(), instance.pages.total(), "pages were lost in round {number}:\n{told}");
        assert_eq!(instance.arena.live_bytes(), 0, "nodes, tables or mappings were lost");
        assert_eq!(lock(&instance.files.0)[0].references, 0, "references to the file were lost");
    });
}

#[test]
fn calls_have_an_order() {
    explore(rounds(400).longer(3), plans, check);
}

/// A test that cannot fail proves nothing.
#[cfg(shuttle)]
#[test]
fn planted_faults_are_found() {
    for fault in [
        "address-space: what an entry rests on is not looked at again",
        "address-space: stores under way are not waited for",
        "address-space: a file is looked at once",
    ] {
        sync::mutant::must_be_caught(fault, || explore(0..20_000, plans, check));
    }
}
