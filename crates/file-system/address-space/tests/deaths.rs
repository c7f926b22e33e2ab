//! A process dies before each of its accesses in each call on its memory: its heir finds a space that works, in which no page has
//! two uses, and few pages are lost.
#![cfg(all(shuttle, unix))]

mod support;

use std::cell::Cell;
use std::collections::BTreeSet;

use address_space::{AddressSpace, Backing, Fault, FileId, Memory, Place, Protection, Sharing};
use pages::PAGE_BYTES;
use percpu::Core;
use percpu::testing::{die, die_everywhere};
use support::{Instance, TestFile, TestFiles, owner, with_instance};
use sync::Spin;
use sync::mutant::must_be_caught;

const FILE: FileId = FileId(0);
const DEAD: usize = 1;
const PAGES: u64 = 32;
const POOL_PAGES: u32 = 80;
const PAGE: u64 = PAGE_BYTES as u64;

type Context<'a> = Memory<'a, TestFiles, Spin>;
/// What a process dies in, and how many pages are lost then at most. The second space is empty.
type Act = (&'static str, u64, fn(&Context<'_>, &AddressSpace, &AddressSpace));

const WRITE: Protection = Protection::ReadWrite;

fn file(page: u64, sharing: Sharing) -> Backing {
    Backing::File { file: FILE, page, sharing, may_write: true }
}

fn map(memory: &Context<'_>, space: &AddressSpace, page: u64, pages: u64, backing: Backing) {
    space.map(memory, Place::Fixed(page), pages, WRITE, backing).unwrap();
}

fn store(memory: &Context<'_>, space: &AddressSpace, page: u64, byte: u8) -> Result<(), Fault> {
    space.store(memory, page * PAGE, &[byte])
}

fn load(memory: &Context<'_>, space: &AddressSpace, page: u64) -> Result<u8, Fault> {
    let mut byte = [0];
    space.load(memory, page * PAGE, &mut byte).map(|()| byte[0])
}

/// Pages 0 to 5 are anonymous, 8 to 11 private ones of the file, 12 to 13 shared ones. 0, 1, 4, 8 and 9 have been stored to: 0 and 8
/// before a child got them, which is given too.
fn prepare(memory: &Context<'_>, space: &AddressSpace, child: &AddressSpace) {
    map(memory, space, 0, 6, Backing::Anonymous);
    map(memory, space, 8, 4, file(0, Sharing::Private));
    map(memory, space, 12, 2, file(0, Sharing::Shared));
    [(0, 10), (8, 18)].into_iter().for_each(|(page, byte)| store(memory, space, page, byte).unwrap());
    space.fork_to(memory, child).unwrap();
    [(1, 11), (4, 14), (9, 19)].into_iter().for_each(|(page, byte)| store(memory, space, page, byte).unwrap());
}

const ACTS: [Act; 15] = [
    ("map over what is stored", 3, |memory, space, _| map(memory, space, 0, 6, Backing::Anonymous)),
    ("map a page of a file over one", 1, |memory, space, _| map(memory, space, 1, 1, file(1, Sharing::Private))),
    ("map elsewhere", 0, |memory, space, _| map(memory, space, 20, 4, file(0, Sharing::Private))),
    ("unmap", 3, |memory, space, _| space.unmap(memory, 0..6).unwrap()),
    ("unmap a page", 1, |memory, space, _| space.unmap(memory, 9..10).unwrap()),
    ("hide", 0, |memory, space, _| space.protect(memory, 0..6, Protection::None).unwrap()),
    ("hide a page", 0, |memory, space, _| space.protect(memory, 1..2, Protection::None).unwrap()),
    ("protect", 0, |memory, space, _| space.protect(memory, 0..6, Protection::Read).unwrap()),
    ("store to a new page", 1, |memory, space, _| store(memory, space, 2, 12).unwrap()),
    ("store to a page of the file", 1, |memory, space, _| store(memory, space, 10, 20).unwrap()),
    ("store to what a child has too", 2, |memory, space, _| store(memory, space, 0, 30).unwrap()),
    ("load", 0, |memory, space, _| assert_eq!(load(memory, space, 4), Ok(14))),
    ("discard", 2, |memory, space, _| space.discard(memory, 0..12).unwrap()),
    ("move", 3, |memory, space, _| assert_eq!(space.relocate(memory, 0..6, Some(20), 8), Ok(20))),
    ("move a file's pages", 3, |memory, space, _| assert_eq!(space.relocate(memory, 8..12, Some(24), 4), Ok(24))),
];

fn with_spaces<R>(test: impl FnOnce(&Instance<'_>, [&AddressSpace; 3], [&Core<'_>; 2]) -> R) -> R {
    let outcome = Cell::new(None);
    with_instance(3, POOL_PAGES, |instance, space| {
        *instance.files.0.lock().unwrap() = vec![TestFile { bytes: vec![7; 4 * PAGE_BYTES], ..TestFile::default() }];
        // SAFETY: used with this instance only.
        let [child, other] = [(); 2].map(|()| instance.arena.place(unsafe { AddressSpace::new() }).unwrap());
        let cores = [0, 2].map(|number| instance.arena.claim_waiting(number, owner(), &sync::Spin).unwrap());
        outcome.set(Some(test(instance, [space, child, other], [&cores[0], &cores[1]])));
    });
    outcome.into_inner().unwrap()
}

fn look(instance: &Instance<'_>, space: &AddressSpace, core: &Core<'_>) -> Vec<Result<u8, Fault>> {
    instance.call(core, |memory| (0..PAGES).map(|page| load(memory, space, page)).collect())
}

fn maintain(instance: &Instance<'_>, cores: &[&Core<'_>]) {
    (0..6).for_each(|_| cores.iter().for_each(|core| instance.maintain(core)));
}

/// What can be loaded before a call, and after it.
fn before_and_after(act: Act) -> [Vec<Result<u8, Fault>>; 2] {
    with_spaces(|instance, [space, child, other], [core, _]| {
        instance.call(core, |memory| prepare(memory, space, child));
        let before = look(instance, space, core);
        instance.call(core, |memory| act.2(memory, space, other));
        [before, look(instance, space, core)]
    })
}

fn survive(act: Act, states: &[Vec<Result<u8, Fault>>; 2], access: u64) -> bool {
    with_spaces(|instance, [space, child, other], [core, third]| {
        instance.call(core, |memory| prepare(memory, space, child));
        // The third core's table has all that can be stored to, and loaded.
        instance.call(third, |memory| [1, 4, 9].map(|page| store(memory, space, page, 10 + page as u8).unwrap()));
        assert_eq!(look(instance, space, third), states[0]);
        let of_child = look(instance, child, core);
        let heir = die(instance.arena, DEAD, access, |dead| instance.call(dead, |memory| act.2(memory, space, other)));
        let Some(heir) = heir else { return false };
        // SAFETY: the process has gone.
        unsafe {
            instance.epochs.unpin_taken_over(&heir);
            instance.counts.repair_taken_over(&heir);
            instance.call(&heir, |memory| space.repair_taken_over(memory));
        }
        let cores = [core, third, &heir];
        let seen = look(instance, space, &heir);
        for (page, seen) in seen.iter().enumerate() {
            let possible = [states[0][page], states[1][page], Err(Fault::Segment)];
            assert!(possible.contains(seen), "page {page}: {seen:?}, not one of {possible:?}");
        }
        // What was given up is handed out again: to a space of its own, in which nobody else may store.
        maintain(instance, &cores);
        instance.call(core, |memory| {
            map(memory, other, 0, PAGES, Backing::Anonymous);
            (0..PAGES).for_each(|page| store(memory, other, page, 100 + page as u8).unwrap());
        });
        for core in cores {
            assert_eq!(look(instance, space, core), seen, "all cores find the same");
        }
        // All works on all cores.
        for (round, core) in cores.into_iter().enumerate() {
            instance.call(core, |memory| {
                for page in 0..PAGES {
                    match store(memory, space, page, 50) {
                        Ok(()) => assert_eq!(load(memory, space, page), Ok(50)),
                        fault => assert!(fault == Err(Fault::Segment), "{fault:?}"),
                    }
                }
                if round > 0 {
                    map(memory, space, 0, PAGES, Backing::Anonymous);
                    assert_eq!(load(memory, space, 3), Ok(0));
                    space.protect(memory, 2..5, Protection::None).unwrap();
                    assert_eq!(load(memory, space, 3), Err(Fault::Segment));
                    space.protect(memory, 2..5, WRITE).unwrap();
                    (0..PAGES).step_by(5).for_each(|page| store(memory, space, page, 60).unwrap());
                    space.unmap(memory, 0..PAGES).unwrap();
                }
            });
            maintain(instance, &cores);
        }
        let of_other: Vec<_> = (0..PAGES).map(|page| Ok(100 + page as u8)).collect();
        assert_eq!(look(instance, other, third), of_other, "a page had two uses");
        // Its pages 9 to 13 are as the file is, to which the parent has stored.
        assert_eq!(look(instance, child, third)[..9], of_child[..9], "a page of the child had two uses");
        // SAFETY: nobody uses the spaces any more.
        instance.call(core, |memory| unsafe { [space, child, other].map(|space| space.destroy(memory)) });
        maintain(instance, &cores);
        let lost = u64::from(POOL_PAGES) - instance.pages.free_pages();
        assert!(lost <= act.1, "{lost} pages are lost");
        let mut handed_out = BTreeSet::new();
        for core in cores {
            while let Ok(page) = instance.pages.allocate(core) {
                assert!(handed_out.insert(page.get()), "a page is handed out twice");
            }
        }
        true
    })
}

fn survive_all(act: Act) -> u64 {
    let states = before_and_after(act);
    die_everywhere(|access| survive(act, &states, access))
}

#[test]
fn a_space_works_wherever_a_thread_of_it_dies() {
    let deaths: u64 = ACTS
        .into_iter()
        .map(|act| {
            print!("{}: ", act.0);
            survive_all(act)
        })
        .sum();
    println!("{deaths} deaths in calls on memory");
}

#[test]
fn fork_can_be_called_again_wherever_a_thread_dies_in_it() {
    // What the child has got is lost, and nothing else: the pages 0, 1, 4, 8 and 9, which it had from then on.
    let fork: Act = ("fork", 5, |memory, space, other| space.fork_to(memory, other).unwrap());
    let states = before_and_after(fork);
    assert_eq!(states[0], states[1]);
    println!("fork: {} deaths", die_everywhere(|access| survive_fork(fork, &states[0], access)));
}

fn survive_fork(fork: Act, state: &[Result<u8, Fault>], access: u64) -> bool {
    with_spaces(|instance, [space, child, other], [core, third]| {
        instance.call(core, |memory| prepare(memory, space, child));
        instance.call(third, |memory| [1, 4, 9].map(|page| store(memory, space, page, 10 + page as u8).unwrap()));
        let heir = die(instance.arena, DEAD, access, |dead| instance.call(dead, |memory| fork.2(memory, space, other)));
        let Some(heir) = heir else { return false };
        // SAFETY: the process has gone.
        unsafe {
            instance.epochs.unpin_taken_over(&heir);
            instance.counts.repair_taken_over(&heir);
            instance.call(&heir, |memory| space.repair_taken_over(memory));
        }
        let cores = [core, third, &heir];
        cores.into_iter().for_each(|core| assert_eq!(look(instance, space, core), state));
        // Another child has the same, and neither sees what the other stores.
        // SAFETY: used with this instance only.
        let second = instance.arena.place(unsafe { AddressSpace::new() }).unwrap();
        instance.call(&heir, |memory| space.fork_to(memory, second).unwrap());
        instance.call(third, |memory| (0..6).for_each(|page| store(memory, space, page, 70).unwrap()));
        assert_eq!(look(instance, second, core), state);
        // SAFETY: nobody uses the spaces any more.
        instance.call(core, |memory| unsafe { [space, child, second].map(|space| space.destroy(memory)) });
        maintain(instance, &cores);
        let lost = u64::from(POOL_PAGES) - instance.pages.free_pages();
        assert!(lost <= fork.1, "{lost} pages are lost");
        true
    })
}

/// A test that cannot fail proves nothing.
#[test]
fn what_an_heir_does_not_do_is_found() {
    for fault in [
        "radix: what was there is given up before it has gone",
        "address-space: an heir leaves the tables as they are",
        "address-space: an heir leaves what is half mapped",
    ] {
        must_be_caught(fault, || ACTS.into_iter().map(survive_all).sum::<u64>());
    }
}
