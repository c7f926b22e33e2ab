//! As which core a thread calls: the one that it has, few of those that there are; how long one looks for space, and how much
//! of it there is said to be.
#![cfg(all(feature = "std", unix, not(loom)))]

use std::sync::Barrier;

use scalefs::{
    DataOperations as _, Errno, FileSystem, InProcess, Lease, Moment, NameChange, NameChanges as _,
    ObjectOperations as _, OpenOptions, Outside, OwnedConfig,
};

fn small(core_count: usize, page_count: u32) -> FileSystem {
    let config = OwnedConfig { metadata_bytes: 16 << 20, page_count, core_count, hash_seed: 1 };
    FileSystem::create(config).unwrap()
}

fn core_of(lease: &Lease<'_>) -> String {
    format!("{lease:?}")
}

/// A call within a call, and one of another instance between them.
fn a_thread_stays_the_core_that_it_is() {
    let (files, other) = (small(2, 16), small(2, 16));
    let outer = files.begin().unwrap();
    let calls = outer.calls();
    other.root().unwrap();
    let inner = files.begin().unwrap();
    assert_eq!(core_of(&inner), core_of(&outer));
    assert_eq!(files.space().unwrap().free_blocks, 16);
    drop(calls);
    // The outer one may end first.
    drop(outer);
    files.root().unwrap();
    drop(inner);
    files.root().unwrap();
}

#[test]
fn a_call_within_a_call_waits_for_nobody() {
    a_thread_stays_the_core_that_it_is();
    #[cfg(shuttle)]
    sync::mutant::must_be_caught(
        "scalefs: a thread that has a core asks for another",
        a_thread_stays_the_core_that_it_is,
    );
    let alone = small(1, 16);
    let within = |_: InProcess<'_, Outside>| alone.root().map(drop).map_err(|_| Errno::EIO);
    // Far more often than a core is maintained, which no call may be under way for.
    (0..200).for_each(|_| alone.act(within).unwrap());
}

#[test]
fn as_many_threads_as_cores_each_call_within_a_call() {
    let files = small(2, 16);
    let barrier = Barrier::new(2);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let outer = files.begin().unwrap();
                barrier.wait();
                files.space().unwrap();
                // Neither gives its core up before the other has called.
                barrier.wait();
                drop(outer);
            });
        }
    });
}

#[test]
fn a_call_in_the_middle_of_a_change_is_refused() {
    let files = small(2, 16);
    files.root().unwrap().create("f").unwrap();
    let lease = files.begin().unwrap();
    let calls = lease.calls();
    let objects = calls.objects();
    let (root, key) = (objects.root(), objects.key(b"f").unwrap());
    let before = objects.look_up(root, &key).unwrap().map(|found| objects.node(&found));
    let changes = [NameChange { directory: root, key: &key, before, after: None }];
    let mut room = [Default::default()];
    let prepared = objects.prepare(&changes, Moment { now_ns: 0, touched: &[] }, &mut room).ok().unwrap();
    assert_eq!(files.space().unwrap_err().raw_os_error(), Some(Errno::EDEADLK.number()));
    drop(prepared);
    assert!(files.root().unwrap().metadata("f").is_ok(), "the change was given up; the thread may call again");
}

#[test]
fn threads_one_after_the_other_use_no_more_cores_than_processors() {
    let files = small(64, 16);
    // SAFETY: asks, and changes nothing.
    let processors = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    for _ in 0..300 {
        std::thread::scope(|scope| scope.spawn(|| files.root().unwrap()).join().map(drop).unwrap());
    }
    assert!(files.used_cores() <= processors as usize, "{} of {processors}", files.used_cores());
}

#[test]
fn who_waits_for_a_core_gets_it_when_its_thread_has_called() {
    let files = small(1, 16);
    let lease = files.begin().unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| files.space().unwrap().free_blocks);
        drop(lease);
        assert_eq!(waiting.join().unwrap(), 16);
    });
}

/// How often a call that finds no space is worth another try, where nothing is on its way.
fn nobody_waits_where_nothing_is_on_its_way() {
    let files = small(4, 64);
    let root = files.root().unwrap();
    let file = root.create("full").unwrap();
    let page = [1; 4096];
    let written = (0..).take_while(|number| file.write_at(&page, 4096 * number).is_ok()).count() as u64;
    assert!(written > 10);
    // What writing and refusals have left to do is done by then.
    let drain = || {
        let mut lease = files.begin().unwrap();
        (0..100).find(|_| !lease.make_room()).expect("an end")
    };
    drain();
    for _ in 0..10 {
        assert_eq!(drain(), 2, "what does not come is not waited for");
        assert_eq!(file.write_at(&page, 4096 * written).unwrap_err().raw_os_error(), Some(Errno::ENOSPC.number()));
    }
    // What is given up is waited for.
    for _ in 0..10 {
        let options = OpenOptions::new().write(true);
        file.set_len(4096 * (written - 4)).unwrap();
        let again = root.open_with("full", options).unwrap();
        for number in written - 4..written {
            again.write_at(&page, 4096 * number).unwrap();
        }
        assert_eq!(again.write_at(&page, 4096 * written).unwrap_err().raw_os_error(), Some(Errno::ENOSPC.number()));
    }
}

#[test]
fn a_refused_write_waits_for_nothing_that_does_not_come() {
    nobody_waits_where_nothing_is_on_its_way();
    #[cfg(shuttle)]
    sync::mutant::must_be_caught(
        "scalefs: who finds no space waits whatever is on its way",
        nobody_waits_where_nothing_is_on_its_way,
    );
}

/// Files that can be made were some four thousand million whatever the memory, also where it was full.
fn inodes_follow_from_memory() {
    let config = OwnedConfig { metadata_bytes: 3 << 20, page_count: 16, core_count: 2, hash_seed: 1 };
    let files = FileSystem::create(config).unwrap();
    let root = files.root().unwrap();
    let before = files.space().unwrap();
    let made = (0..).take_while(|number| root.create(number.to_string()).is_ok()).count() as u64;
    assert!(made > 500 && before.free_inodes == before.inodes, "{made} of {before:?}");
    // A creation that was refused can keep its inode: that of one is not looked for here.
    let is_left = |left: u64| (left - 1..=left).contains(&files.space().unwrap().free_inodes);
    assert!(is_left(before.free_inodes - made), "{made} of {before:?}: {:?}", files.space());
    assert!(before.inodes * 512 <= 3 << 20, "{before:?}");
    (0..made).for_each(|number| root.remove_file(number.to_string()).unwrap());
    // Until all cores have maintained, which each of so many calls is a part of.
    assert!((0..10_000).any(|_| is_left(before.free_inodes)), "all can be made again");
}

#[test]
fn a_full_instance_is_seen_by_statfs() {
    inodes_follow_from_memory();
    #[cfg(shuttle)]
    sync::mutant::must_be_caught("scalefs: memory for inodes has no end", inodes_follow_from_memory);
}
