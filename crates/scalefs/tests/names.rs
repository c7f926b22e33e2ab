//! The calls on names against the plain reference and against the host's tmpfs, with several cores in turn, maintenance
//! in between, allocation failures, and nothing lost in the end.
#![cfg(not(loom))]

mod reference;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use percpu::{Arena, ArenaConfig, Core, HeapRegion, OwnerId};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use reference::{Bijection, Call, Outcome, Reference, any_call, call};
use scalefs::{Errno, FieldChoice, Kind, OpenFlags, ScaleFs, ScaleFsConfig, names};
use sync::Spin;

fn owner() -> OwnerId {
    OwnerId::new(1).unwrap()
}

fn with_fs(core_count: usize, buckets: usize, test: impl FnOnce(&Arena, &ScaleFs, &[Core])) {
    let mut region = HeapRegion::new(16 << 20).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig { core_count, chunk_bytes: 4096 }).unwrap();
    let cores: Vec<Core> = (0..core_count).map(|number| arena.claim(number, owner()).unwrap()).collect();
    let config = ScaleFsConfig { hash_seed: 3, root_bucket_count: buckets, count_slots_per_core: 4 };
    let fs = ScaleFs::create(&cores[0], config).unwrap();
    test(arena, fs, &cores);
}

/// Removes all names and maintains until nothing but the root's table is left.
fn assert_nothing_lost(
    arena: &Arena,
    fs: &ScaleFs,
    cores: &[Core],
    names: &BTreeMap<String, u64>,
    bytes_at_start: i64,
) {
    for name in names.keys() {
        assert!(call(fs, &cores[0], &Call::Unlink(name.clone())).is_ok());
    }
    for _ in 0..12 {
        cores.iter().for_each(|core| fs.maintain(core, &Spin));
    }
    assert_eq!(arena.live_bytes(), bytes_at_start, "objects were lost");
}

#[test]
fn bad_names_get_linuxs_errors() {
    with_fs(1, 4, |_, fs, cores| {
        let verbs = fs.begin(&cores[0], &Spin);
        let long = [b'x'; 256];
        for (name, errno) in [(&b""[..], Errno::ENOENT), (&long, Errno::ENAMETOOLONG), (b"a\0b", Errno::EINVAL)] {
            assert_eq!(names::open(&verbs, name, OpenFlags::Create, 0).err(), Some(errno));
            assert_eq!(names::stat(&verbs, name, FieldChoice::All).err(), Some(errno));
            assert_eq!(names::access(&verbs, name), Err(errno));
            assert_eq!(names::unlink(&verbs, name), Err(errno));
            assert_eq!(names::rename(&verbs, name, b"b"), Err(errno));
            assert_eq!(names::link(&verbs, name, b"b"), Err(errno));
        }
        for dots in [&b"."[..], b".."] {
            assert_eq!(names::stat(&verbs, dots, FieldChoice::All).unwrap().kind, Kind::Directory);
            assert_eq!(names::open(&verbs, dots, OpenFlags::Create, 0).err(), Some(Errno::EISDIR));
            assert_eq!(names::open(&verbs, dots, OpenFlags::CreateNew, 0).err(), Some(Errno::EEXIST));
            assert_eq!(names::unlink(&verbs, dots), Err(Errno::EISDIR));
            assert_eq!(names::rename(&verbs, dots, b"a"), Err(Errno::EBUSY));
            assert_eq!(names::link(&verbs, dots, b"a"), Err(Errno::EPERM));
        }
    });
}

#[test]
fn stat_without_link_count_does_not_read_it() {
    with_fs(2, 4, |_, fs, cores| {
        call(fs, &cores[0], &Call::Open("a".into(), OpenFlags::CreateNew)).unwrap();
        let verbs = fs.begin(&cores[1], &Spin);
        let attributes = names::stat(&verbs, b"a", FieldChoice::WithoutLinkCount).unwrap();
        assert_eq!((attributes.link_count, attributes.kind, attributes.mode), (None, Kind::Regular, 0o644));
    });
}

#[test]
fn an_open_file_outlives_its_last_name() {
    with_fs(2, 4, |arena, fs, cores| {
        let before = arena.live_bytes();
        let open = || names::open(&fs.begin(&cores[0], &Spin), b"a", OpenFlags::CreateNew, 0);
        let node = open().unwrap();
        call(fs, &cores[1], &Call::Unlink("a".into())).unwrap();
        for _ in 0..12 {
            cores.iter().for_each(|core| fs.maintain(core, &Spin));
        }
        assert_eq!(arena.live_bytes() - before, 256, "one inode");
        names::close(&fs.begin(&cores[1], &Spin), node);
        assert_nothing_lost(arena, fs, cores, &BTreeMap::new(), before);
    });
}

#[test]
fn a_full_arena_refuses_and_loses_nothing() {
    let mut region = HeapRegion::new(2 << 20).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig { core_count: 1, chunk_bytes: 4096 }).unwrap();
    let core = arena.claim(0, owner()).unwrap();
    let config = ScaleFsConfig { hash_seed: 3, root_bucket_count: 4096, count_slots_per_core: 4 };
    let fs = ScaleFs::create(&core, config).unwrap();
    let before = arena.live_bytes();
    let mut made = BTreeMap::new();
    let full = loop {
        let name = format!("file-{}", made.len());
        match call(fs, &core, &Call::Open(name.clone(), OpenFlags::CreateNew)) {
            Ok(_) => made.insert(name, 0),
            Err(errno) => break errno,
        };
    };
    assert_eq!(full, Errno::ENOSPC);
    assert!(made.len() > 1000, "{}", made.len());
    for name in made.keys() {
        assert!(call(fs, &core, &Call::Access(name.clone())).is_ok());
    }
    let count = made.len();
    assert_nothing_lost(arena, fs, &[core], &made, before);
    let core = arena.claim(0, owner()).unwrap();
    for number in 0..count {
        call(fs, &core, &Call::Open(format!("again-{number}"), OpenFlags::CreateNew)).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn calls_follow_the_reference(
        buckets in prop_oneof![Just(1_usize), Just(64)],
        calls in proptest::collection::vec((0..3_usize, any_call(), 0..8_u32), 0..120),
    ) {
        with_fs(3, buckets, |arena, fs, cores| {
            let before = arena.live_bytes();
            let (mut reference, mut numbers) = (Reference::default(), Bijection::default());
            for (core, next, extra) in calls {
                let core = &cores[core];
                if extra == 0 {
                    // Without memory a call succeeds without needing it, fails as it would anyway, or says ENOSPC.
                    core.fail_allocations_after(Some(0));
                    let (outcome, mut then) = (call(fs, core, &next), reference.clone());
                    core.fail_allocations_after(None);
                    let expected = then.call(&next);
                    if outcome == Err(Errno::ENOSPC) {
                        assert!(expected.is_ok());
                    } else {
                        assert!(numbers.same(&outcome, &expected), "{next:?}: {outcome:?}, expected {expected:?}");
                        reference = then;
                    }
                } else {
                    let (outcome, expected) = (call(fs, core, &next), reference.call(&next));
                    assert!(numbers.same(&outcome, &expected), "{next:?}: {outcome:?}, expected {expected:?}");
                }
                if extra == 1 {
                    fs.maintain(core, &Spin);
                }
            }
            for name in reference.names.clone().keys() {
                let stat = Call::Stat(name.clone());
                assert!(numbers.same(&call(fs, &cores[0], &stat), &reference.call(&stat)));
            }
            assert_nothing_lost_unless_grown(arena, fs, cores, &reference.names, before, buckets);
        });
    }
}

/// A table of one bucket may have grown, and then is larger for good.
fn assert_nothing_lost_unless_grown(
    arena: &Arena,
    fs: &ScaleFs,
    cores: &[Core],
    names: &BTreeMap<String, u64>,
    before: i64,
    buckets: usize,
) {
    if buckets > 1 {
        assert_nothing_lost(arena, fs, cores, names, before);
    }
}

/// A directory of the host's tmpfs, removed when dropped.
struct Host(PathBuf);

impl Host {
    fn new() -> Host {
        // Everywhere but on Linux, or in containers without it, the temporary directory has to do.
        let base = if Path::new("/dev/shm").is_dir() { PathBuf::from("/dev/shm") } else { std::env::temp_dir() };
        let path = base.join(format!("scalefs-names-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Host(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        // An empty name is an empty path, not the directory.
        if name.is_empty() { PathBuf::new() } else { self.0.join(name) }
    }

    fn clear(&self) {
        for entry in fs::read_dir(&self.0).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
    }

    fn call(&self, call: &Call) -> Outcome {
        let unit = |outcome: io::Result<()>| outcome.map(|()| (0, 0));
        let outcome = match call {
            Call::Open(name, flags) => {
                let mut options = fs::OpenOptions::new();
                match flags {
                    OpenFlags::Existing => options.read(true),
                    OpenFlags::Create => options.read(true).write(true).create(true),
                    OpenFlags::CreateNew => options.write(true).create_new(true),
                };
                unit(options.open(self.path(name)).map(drop))
            }
            Call::Link(old, new) => unit(fs::hard_link(self.path(old), self.path(new))),
            Call::Unlink(name) => unit(fs::remove_file(self.path(name))),
            Call::Rename(old, new) => unit(fs::rename(self.path(old), self.path(new))),
            Call::Stat(name) => fs::metadata(self.path(name)).map(|data| (data.ino(), data.nlink() as u32)),
            Call::Access(name) => unit(fs::metadata(self.path(name)).map(drop)),
        };
        outcome.map_err(|error| match error.raw_os_error() {
            Some(2) => Errno::ENOENT,
            Some(17) => Errno::EEXIST,
            Some(36) => Errno::ENAMETOOLONG,
            _ => panic!("{call:?} on the host: {error}"),
        })
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Random sequences on both systems: results, link counts, and the final names agree. `SCALEFS_FUZZ_CALLS` sets how many
/// calls are made.
#[test]
fn calls_do_what_the_hosts_tmpfs_does() {
    let call_count = std::env::var("SCALEFS_FUZZ_CALLS").ok().map_or(6_000, |count| count.parse().unwrap());
    let host = Host::new();
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let sequences = proptest::collection::vec((0..2_usize, any_call()), 40);
    let mut made = 0;
    while made < call_count {
        let sequence = sequences.new_tree(&mut runner).unwrap().current();
        host.clear();
        with_fs(2, 8, |_, fs, cores| {
            // The host reuses numbers of inodes: a number means the same file only while that exists, so pairs are
            // compared name by name at the end, and counts at every call.
            for (index, (core, next)) in sequence.iter().enumerate() {
                let (ours, theirs) = (call(fs, &cores[*core], next), host.call(next));
                let (ours, theirs) = (ours.map(|(_, count)| count), theirs.map(|(_, count)| count));
                assert_eq!(ours, theirs, "{next:?} at the end of {:?}", &sequence[..=index]);
                if index % 8 == 0 {
                    fs.maintain(&cores[*core], &Spin);
                }
            }
            let mut numbers = Bijection::default();
            for entry in fs::read_dir(&host.0).unwrap() {
                let stat = Call::Stat(entry.unwrap().file_name().into_string().unwrap());
                assert!(numbers.same(&call(fs, &cores[0], &stat), &host.call(&stat)), "{stat:?} after {sequence:?}");
            }
        });
        made += sequence.len();
    }
}
