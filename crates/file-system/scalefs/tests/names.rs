//! The calls on names and directories against the plain reference, with several cores in turn, maintenance in between,
//! allocation failures, and nothing lost in the end; and what the reference does not know: permissions and limits.
#![cfg(not(loom))]

mod reference;

use percpu::{Arena, ArenaConfig, Core, HeapRegion, OwnerId};
use proptest::prelude::*;
use reference::{Answer, Bijection, Call, Caller, Reference, any_call, call, create_new};
use scalefs::attributes::{self, Access, NewTime};
use scalefs::names::{self, RenameMode};
use scalefs::{
    Clocked, Context, Credentials, Errno, Fields, Follow, Kind, ObjectOperations, OpenFlags, ScaleFs, ScaleFsConfig,
    Start, directories,
};
use sync::Spin;

const AT: Start<scalefs::Node<'static>> = Start::WorkingDirectory;
const CREATE: OpenFlags = OpenFlags::CREATE;

fn owner() -> OwnerId {
    OwnerId::new(1).unwrap()
}

struct World<'a> {
    arena: &'a Arena,
    fs: &'a ScaleFs,
    cores: &'a [Core<'a>],
    context: &'a Context,
    caller: &'a Caller<'a>,
}

impl World<'_> {
    fn call(&self, core: usize, next: &Call) -> reference::Outcome {
        call(self.fs, &self.cores[core], self.caller, next)
    }

    fn settle(&self) {
        // Each level of a removed tree needs the level below to be freed first.
        for _ in 0..24 {
            self.cores.iter().for_each(|core| self.fs.maintain(core, &Spin));
        }
    }
}

fn with_fs(core_count: usize, buckets: usize, test: impl FnOnce(&World)) {
    let mut region = HeapRegion::new(16 << 20).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig { core_count, chunk_bytes: 4096 }).unwrap();
    let cores: Vec<Core> = (0..core_count).map(|number| arena.claim(number, owner()).unwrap()).collect();
    let config = ScaleFsConfig {
        hash_seed: 3,
        root_bucket_count: buckets,
        directory_bucket_count: buckets.min(4),
        count_slots_per_core: 4,
        ..ScaleFsConfig::default()
    };
    let fs = ScaleFs::create(&cores[0], config).unwrap();
    let context = Context::new(fs, &cores[0], Credentials::SUPERUSER);
    let caller = Caller::new(&context);
    test(&World { arena, fs, cores: &cores, context: &context, caller: &caller });
}

#[test]
fn bad_names_get_linuxs_errors() {
    with_fs(1, 4, |world| {
        let verbs = world.fs.begin(&world.cores[0], world.context, &Spin);
        let (long, endless) = ([b'x'; 256], [b'x'; 4096]);
        let cases = [
            (&b""[..], Errno::ENOENT),
            (&long, Errno::ENAMETOOLONG),
            (&endless, Errno::ENAMETOOLONG),
            (b"a\0b", Errno::EINVAL),
        ];
        for (name, errno) in cases {
            assert_eq!(names::open(&verbs, AT, name, CREATE, 0).err(), Some(errno));
            assert_eq!(attributes::stat(&verbs, AT, name, Follow::Nothing, Fields::ALL).err(), Some(errno));
            assert_eq!(attributes::access(&verbs, AT, name, Follow::Symlinks, Access::EXISTS), Err(errno));
            assert_eq!(names::unlink(&verbs, AT, name), Err(errno));
            assert_eq!(names::rename(&verbs, (AT, name), (AT, b"b"), RenameMode::Replace), Err(errno));
            assert_eq!(names::link(&verbs, (AT, name), (AT, b"b"), Follow::Nothing), Err(errno));
            assert_eq!(directories::make_directory(&verbs, AT, name, 0), Err(errno));
            assert_eq!(directories::remove_directory(&verbs, AT, name), Err(errno));
        }
        for dots in [&b"."[..], b"..", b"/"] {
            let status = attributes::stat(&verbs, AT, dots, Follow::Nothing, Fields::ALL).unwrap();
            assert_eq!((status.kind, status.link_count), (Kind::Directory, 1));
            assert_eq!(names::open(&verbs, AT, dots, CREATE, 0).err(), Some(Errno::EISDIR));
            assert_eq!(names::open(&verbs, AT, dots, create_new(), 0).err(), Some(Errno::EEXIST));
            assert_eq!(names::unlink(&verbs, AT, dots), Err(Errno::EISDIR));
            assert_eq!(names::rename(&verbs, (AT, dots), (AT, b"a"), RenameMode::Replace), Err(Errno::EBUSY));
            assert_eq!(names::link(&verbs, (AT, dots), (AT, b"a"), Follow::Nothing), Err(Errno::EPERM));
        }
        assert_eq!(names::symlink(&verbs, &endless, AT, b"a"), Err(Errno::ENAMETOOLONG));
        assert_eq!(names::symlink(&verbs, &endless[1..], AT, b"a"), Ok(()));
        assert_eq!(names::read_link(&verbs, AT, b"a"), Ok(&endless[1..]));
    });
}

#[test]
fn only_what_is_asked_for_is_told() {
    with_fs(2, 4, |world| {
        world.call(0, &Call::Open("a".into(), create_new())).unwrap();
        let verbs = world.fs.begin(&world.cores[1], world.context, &Spin);
        let stat = |fields| attributes::stat(&verbs, AT, b"a", Follow::Nothing, fields).unwrap();
        let bare = stat(Fields::IDENTITY);
        assert_eq!((bare.link_count, bare.kind, bare.mode), (0, Kind::Regular, 0));
        assert_eq!((stat(Fields::PERMISSIONS).mode, stat(Fields::LINK_COUNT).link_count), (0o644, 1));
    });
}

#[test]
fn an_open_file_outlives_its_last_name() {
    with_fs(2, 4, |world| {
        let before = world.arena.live_bytes();
        let open = || names::open(&world.fs.begin(&world.cores[0], world.context, &Spin), AT, b"a", create_new(), 0);
        let node = open().unwrap().handle;
        world.call(1, &Call::Unlink("a".into())).unwrap();
        world.settle();
        assert!(world.arena.live_bytes() - before >= 256, "the inode is there");
        names::close(&world.fs.begin(&world.cores[1], world.context, &Spin), node);
        world.settle();
        assert_eq!(world.arena.live_bytes(), before, "objects were lost");
    });
}

#[test]
fn a_removed_directory_is_empty_and_takes_nothing() {
    with_fs(2, 4, |world| {
        let before = world.arena.live_bytes();
        world.call(0, &Call::MakeDirectory("a".into())).unwrap();
        world.call(0, &Call::MakeDirectory("a/b".into())).unwrap();
        let inner = Context::new(world.fs, &world.cores[0], Credentials::SUPERUSER);
        let begin = |core: usize| world.fs.begin(&world.cores[core], &inner, &Spin);
        directories::change_directory(&begin(0), AT, b"a/b").unwrap();
        let mut buffer = [0; 16];
        assert_eq!(directories::working_directory_path(&begin(0), &mut buffer).unwrap(), b"/a/b");
        assert_eq!(directories::working_directory_path(&begin(0), &mut buffer[..3]), Err(Errno::ERANGE));
        world.call(1, &Call::RemoveDirectory("a/b".into())).unwrap();
        world.settle();
        assert_eq!(names::open(&begin(0), AT, b"c", CREATE, 0o644).err(), Some(Errno::ENOENT));
        assert_eq!(directories::make_directory(&begin(1), AT, b"c", 0o755), Err(Errno::ENOENT));
        assert_eq!(directories::working_directory_path(&begin(0), &mut buffer), Err(Errno::ENOENT));
        let status = attributes::stat(&begin(0), AT, b".", Follow::Symlinks, Fields::LINK_COUNT).unwrap();
        assert_eq!(status.link_count, 0);
        assert!(attributes::stat(&begin(0), AT, b"../b", Follow::Symlinks, Fields::ALL).is_err());
        assert_eq!(attributes::access(&begin(0), AT, b"..", Follow::Symlinks, Access::EXISTS), Ok(()));
        inner.leave(world.fs, &world.cores[1]);
        world.call(0, &Call::RemoveDirectory("a".into())).unwrap();
        world.settle();
        assert_eq!(world.arena.live_bytes(), before, "objects were lost");
    });
}

#[test]
fn permissions_bind_users() {
    with_fs(1, 4, |world| {
        let core = &world.cores[0];
        let user = |number| Context::new(world.fs, core, Credentials::new(number, number, &[100]).unwrap());
        let (root, alice, bob) = (world.context, user(1), user(2));
        let begin = |context| world.fs.begin(core, context, &Spin);
        let open = |context, path: &[u8], flags, mode| {
            let verbs = begin(context);
            names::open(&verbs, AT, path, flags, mode).map(|opened| names::close(&verbs, opened.handle))
        };
        root.set_umask(0);
        let (read, write) = (OpenFlags::READ, OpenFlags::WRITE);
        directories::make_directory(&begin(root), AT, b"shared", 0o1777).unwrap();
        assert_eq!(open(&alice, b"top", CREATE, 0o666), Err(Errno::EACCES), "the root directory is root's");
        open(&alice, b"shared/a", CREATE, 0o666).unwrap();
        let status = attributes::stat(&begin(root), AT, b"shared/a", Follow::Nothing, Fields::ALL).unwrap();
        assert_eq!((status.mode, status.user, status.group), (0o644, 1, 1), "the mask of alice is 022");
        assert_eq!(open(&bob, b"shared/a", read, 0), Ok(()));
        assert_eq!(open(&bob, b"shared/a", write, 0), Err(Errno::EACCES));
        // Sticky: only the owners of file or directory remove or rename.
        assert_eq!(names::unlink(&begin(&bob), AT, b"shared/a"), Err(Errno::EPERM));
        let rename = |context, mode| names::rename(&begin(context), (AT, b"shared/a"), (AT, b"shared/b"), mode);
        assert_eq!(rename(&bob, RenameMode::Replace), Err(Errno::EPERM));
        assert_eq!(attributes::change_mode(&begin(&bob), AT, b"shared/a", 0o777), Err(Errno::EPERM));
        assert_eq!(attributes::change_mode(&begin(&alice), AT, b"shared/a", 0o600), Ok(()));
        assert_eq!(open(&bob, b"shared/a", read, 0), Err(Errno::EACCES));
        let owner = |context, user, group| {
            attributes::change_owner(&begin(context), AT, b"shared/a", Follow::Symlinks, (user, group))
        };
        assert_eq!(owner(&alice, Some(2), None), Err(Errno::EPERM));
        assert_eq!(owner(&alice, None, Some(100)), Ok(()), "a group that alice is in");
        assert_eq!(owner(&alice, None, Some(5)), Err(Errno::EPERM));
        attributes::change_mode(&begin(root), AT, b"shared/a", 0o6755).unwrap();
        assert_eq!(owner(root, Some(2), None), Ok(()));
        let status = attributes::stat(&begin(root), AT, b"shared/a", Follow::Nothing, Fields::ALL).unwrap();
        assert_eq!((status.mode, status.user, status.group), (0o755, 2, 100), "set-id bits are gone");
        // A symbolic link of another user in a sticky directory hides its loop from who would create (found by tmpfs).
        names::symlink(&begin(&alice), b"nowhere", AT, b"shared/link").unwrap();
        let no_follow = CREATE | OpenFlags::NO_FOLLOW;
        assert_eq!(open(&bob, b"shared/link", no_follow, 0), Err(Errno::EACCES));
        assert_eq!(open(&alice, b"shared/link", no_follow, 0), Err(Errno::ELOOP));
        // Searching a directory needs the right to.
        directories::make_directory(&begin(&alice), AT, b"shared/private", 0o700).unwrap();
        assert_eq!(open(&bob, b"shared/private/x", CREATE, 0o666), Err(Errno::EACCES));
        assert_eq!(open(&bob, b"shared/private", read, 0), Err(Errno::EACCES));
        assert_eq!(directories::change_directory(&begin(&bob), AT, b"shared/private"), Err(Errno::EACCES));
        open(root, b"shared/private/x", CREATE, 0o666).unwrap();
        let access =
            |context, path: &[u8], wanted| attributes::access(&begin(context), AT, path, Follow::Symlinks, wanted);
        let execute = Access { execute: true, ..Access::EXISTS };
        assert_eq!(access(root, b"shared/private/x", execute), Err(Errno::EACCES), "nobody may execute it");
        assert_eq!(access(root, b"shared/private", execute), Ok(()));
        assert_eq!(access(&bob, b"shared/private/x", Access::EXISTS), Err(Errno::EACCES));
        let both_now = (NewTime::Now, NewTime::Now);
        let times =
            |context, path: &[u8], times| attributes::set_times(&begin(context), AT, path, Follow::Symlinks, times);
        assert_eq!(times(&bob, b"shared/private", both_now), Err(Errno::EACCES));
        attributes::change_mode(&begin(root), AT, b"shared/private", 0o777).unwrap();
        assert_eq!(times(&bob, b"shared/private/x", both_now), Ok(()), "who may write");
        let set = (NewTime::At(-5), NewTime::Same);
        assert_eq!(times(&bob, b"shared/private/x", set), Err(Errno::EPERM));
        assert_eq!(times(root, b"shared/private/x", set), Ok(()));
        let status = attributes::stat(&begin(root), AT, b"shared/private/x", Follow::Nothing, Fields::ALL).unwrap();
        assert_eq!(status.accessed_ns, -5);
        // The group of a directory with the set-group bit goes to what is made in it.
        attributes::change_owner(&begin(root), AT, b"shared/private", Follow::Symlinks, (None, Some(100))).unwrap();
        attributes::change_mode(&begin(root), AT, b"shared/private", 0o2777).unwrap();
        directories::make_directory(&begin(&bob), AT, b"shared/private/d", 0o755).unwrap();
        let status = attributes::stat(&begin(root), AT, b"shared/private/d", Follow::Nothing, Fields::ALL).unwrap();
        assert_eq!((status.mode, status.group), (0o2755, 100));
    });
}

#[test]
fn changes_of_names_mark_times() {
    with_fs(2, 4, |world| {
        let clock = std::cell::Cell::new(100);
        let host = Clocked { wait: Spin, clock: || clock.replace(clock.get() + 100) };
        let begin = |core: usize| world.fs.begin(&world.cores[core], world.context, &host);
        let times = |path: &[u8]| {
            let status = attributes::stat(&begin(1), AT, path, Follow::Nothing, Fields::TIMES).unwrap();
            (status.modified_ns, status.changed_ns)
        };
        let mut seen = std::collections::BTreeMap::new();
        // Which of the paths have another time of modification, and of change, than before.
        let mut changed = |paths: &[&'static str]| {
            let mut marks = String::new();
            for path in paths {
                let now = times(path.as_bytes());
                let before = seen.insert(*path, now).unwrap_or((-1, -1));
                assert!(now.0 >= before.0 && now.1 >= before.1, "{path}: {now:?} after {before:?}");
                marks.push(match (now.0 > before.0, now.1 > before.1) {
                    (true, true) => 'm',
                    (false, true) => 'c',
                    (false, false) => '-',
                    (true, false) => '?',
                });
            }
            marks
        };
        let make = |core, path: &[u8]| directories::make_directory(&begin(core), AT, path, 0o755).unwrap();
        let create = |core, path: &[u8]| {
            let verbs = begin(core);
            names::close(&verbs, names::open(&verbs, AT, path, create_new(), 0o644).unwrap().handle);
        };
        let rename = |from: &[u8], to: &[u8], mode| names::rename(&begin(0), (AT, from), (AT, to), mode).unwrap();
        make(0, b"d");
        make(1, b"e");
        create(0, b"d/a");
        create(1, b"d/b");
        assert_eq!(changed(&["/", "d", "e", "d/a", "d/b"]), "mmmmm");
        create(1, b"d/c");
        assert_eq!(changed(&["/", "d", "e", "d/a"]), "-m--", "a creation marks its directory");
        names::link(&begin(0), (AT, b"d/a"), (AT, b"e/a"), Follow::Nothing).unwrap();
        assert_eq!(changed(&["/", "d", "e", "d/a"]), "--mc", "a link marks the new name's directory and the file");
        rename(b"d/c", b"e/c", RenameMode::Replace);
        assert_eq!(changed(&["/", "d", "e", "d/a"]), "-mm-");
        rename(b"d/b", b"e/a", RenameMode::Replace);
        assert_eq!(changed(&["d", "e", "d/a"]), "mmc", "who loses a name is marked");
        rename(b"d/a", b"e/a", RenameMode::Exchange);
        assert_eq!(changed(&["d", "e", "d/a"]), "mmm", "another file has the name");
        names::unlink(&begin(1), AT, b"e/c").unwrap();
        assert_eq!(changed(&["/", "d", "e"]), "--m");
        create(0, b"d/y");
        names::link(&begin(0), (AT, b"d/y"), (AT, b"e/y"), Follow::Nothing).unwrap();
        changed(&["/", "d", "e", "d/y"]);
        names::unlink(&begin(1), AT, b"e/y").unwrap();
        assert_eq!(changed(&["/", "d", "e", "d/y"]), "--mc", "who keeps another name is marked");
        attributes::change_mode(&begin(0), AT, b"d", 0o700).unwrap();
        assert_eq!(changed(&["/", "d"]), "-c");
        directories::remove_directory(&begin(1), AT, b"e").unwrap_err();
        assert_eq!(changed(&["/", "e"]), "--", "what fails marks nothing");
        let set = (NewTime::Same, NewTime::At(7));
        attributes::set_times(&begin(0), AT, b"d", Follow::Symlinks, set).unwrap();
        assert_eq!(times(b"d").0, 7);
        world.cores.iter().for_each(|core| world.fs.maintain(core, &Spin));
        assert_eq!(times(b"d").0, 7);
        create(1, b"d/z");
        assert!(times(b"d").0 > 7);
    });
}

#[test]
fn listings_go_on_where_they_stopped_while_the_directory_grows() {
    with_fs(1, 4, |world| {
        let core = &world.cores[0];
        for number in 0..300 {
            world.call(0, &Call::Open(format!("old-{number}"), create_new())).unwrap();
        }
        let (mut cookie, mut listed, mut made) = (Some(0), Vec::new(), 0);
        while let Some(from) = cookie {
            let verbs = world.fs.begin(core, world.context, &Spin);
            let root = names::open(&verbs, AT, b".", OpenFlags::READ, 0).unwrap().handle;
            let mut some = 0;
            cookie = directories::read_directory(&verbs, verbs.held(&root), from, |entry| {
                listed.push(String::from_utf8(entry.name.to_vec()).unwrap());
                some += 1;
                some < 7
            })
            .unwrap();
            names::close(&verbs, root);
            drop(verbs);
            // More names, and growth, between the parts.
            for _ in 0..20 {
                world.call(0, &Call::Open(format!("new-{made}"), create_new())).unwrap();
                made += 1;
            }
            world.fs.maintain(core, &Spin);
        }
        let mut old: Vec<&String> = listed.iter().filter(|name| !name.starts_with("new-")).collect();
        assert_eq!(old[..2], [".", ".."]);
        old.sort();
        let before = old.len();
        old.dedup();
        assert_eq!((old.len(), before), (302, 302), "each name that was there all the time is listed once");
    });
}

#[test]
fn inodes_are_limited_and_come_back() {
    let mut region = HeapRegion::new(8 << 20).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig { core_count: 2, chunk_bytes: 4096 }).unwrap();
    let cores = [0, 1].map(|number| arena.claim(number, owner()).unwrap());
    let fs = ScaleFs::create(&cores[0], ScaleFsConfig { inode_limit: 100, ..ScaleFsConfig::default() }).unwrap();
    let context = Context::new(fs, &cores[0], Credentials::SUPERUSER);
    let caller = Caller::new(&context);
    let free = || attributes::space(&fs.begin(&cores[0], &context, &Spin)).unwrap().free_inodes;
    let full = Err(Errno::ENOSPC);
    for round in 0..3 {
        assert_eq!(free(), 100);
        // Each core keeps some for itself, and gives them up when the other has none.
        for number in 0..100 {
            let made = Call::MakeDirectory(format!("{round}-{number}"));
            assert_eq!(call(fs, &cores[number % 2], &caller, &made), Ok(Answer::Done));
        }
        for core in &cores {
            assert_eq!(call(fs, core, &caller, &Call::Open("one-more".into(), create_new())), full);
            assert_eq!(call(fs, core, &caller, &Call::Symlink("x".into(), "one-more".into())), full);
        }
        assert_eq!(free(), 0);
        for number in 0..100 {
            let gone = Call::RemoveDirectory(format!("{round}-{number}"));
            assert_eq!(call(fs, &cores[0], &caller, &gone), Ok(Answer::Done));
        }
        for _ in 0..12 {
            cores.iter().for_each(|core| fs.maintain(core, &Spin));
        }
    }
}

/// Memory ran out before anybody asked whether the directory was still there.
#[test]
fn a_removed_directory_says_so_without_memory_too() {
    with_fs(1, 64, |world| {
        for done in [Call::MakeDirectory("a".into()), Call::ChangeDirectory("a".into())] {
            world.call(0, &done).unwrap();
        }
        let creations = || {
            [
                Call::Open("b".into(), create_new()),
                Call::MakeDirectory("b".into()),
                Call::Symlink("x".into(), "b".into()),
            ]
        };
        world.cores[0].fail_allocations_after(Some(0));
        for creation in creations() {
            assert_eq!(world.call(0, &creation), Err(Errno::ENOSPC), "{creation:?}");
        }
        world.cores[0].fail_allocations_after(None);
        world.call(0, &Call::RemoveDirectory("../a".into())).unwrap();
        world.cores[0].fail_allocations_after(Some(0));
        for creation in creations() {
            assert_eq!(world.call(0, &creation), Err(Errno::ENOENT), "{creation:?}");
        }
        world.cores[0].fail_allocations_after(None);
        world.call(0, &Call::ChangeDirectory("/".into())).unwrap();
    });
}

#[test]
fn a_full_arena_refuses_and_loses_nothing() {
    let mut region = HeapRegion::new(3 << 20).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig { core_count: 1, chunk_bytes: 4096 }).unwrap();
    let core = arena.claim(0, owner()).unwrap();
    let config = ScaleFsConfig { root_bucket_count: 4096, count_slots_per_core: 4, ..ScaleFsConfig::default() };
    let fs = ScaleFs::create(&core, config).unwrap();
    let context = Context::new(fs, &core, Credentials::SUPERUSER);
    let caller = &Caller::new(&context);
    let before = arena.live_bytes();
    let made_until_full = |prefix: &str| {
        let mut made = Vec::new();
        loop {
            // Each kind of object needs memory of its own kind.
            let name = format!("{prefix}-{}", made.len());
            let next = match made.len() % 3 {
                0 => Call::Open(name.clone(), create_new()),
                1 => Call::MakeDirectory(name.clone()),
                _ => Call::Symlink("x".repeat(300), name.clone()),
            };
            match call(fs, &core, caller, &next) {
                Ok(_) => made.push(name),
                Err(errno) => break (made, errno),
            }
        }
    };
    let (made, full) = made_until_full("first");
    assert_eq!(full, Errno::ENOSPC);
    assert!(made.len() > 300, "{}", made.len());
    for (number, name) in made.iter().enumerate() {
        let follow = Follow::Nothing;
        assert!(call(fs, &core, caller, &Call::Stat(name.clone(), follow)).is_ok());
        let removal = if number % 3 == 1 { Call::RemoveDirectory(name.clone()) } else { Call::Unlink(name.clone()) };
        call(fs, &core, caller, &removal).unwrap();
    }
    for _ in 0..12 {
        fs.maintain(&core, &Spin);
    }
    assert_eq!(arena.live_bytes(), before, "objects were lost");
    let (again, _) = made_until_full("second");
    assert!(again.len() >= made.len(), "{} after {}", again.len(), made.len());
}

/// Calls that remove all that the reference has below a directory.
fn removals(reference: &mut Reference, directory: &str) -> Vec<Call> {
    let listing = Call::List(directory.to_string(), 5);
    let Ok(Answer::Names(names)) = reference.call(&listing) else { panic!("{directory} is a directory") };
    let mut calls = Vec::new();
    for (name, kind) in names {
        let path = format!("{directory}/{name}");
        if kind == Kind::Directory as u8 {
            calls.extend(removals(reference, &path));
            calls.push(Call::RemoveDirectory(path));
        } else {
            calls.push(Call::Unlink(path));
        }
    }
    calls
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn calls_follow_the_reference(
        buckets in prop_oneof![Just(1_usize), Just(64)],
        calls in proptest::collection::vec((0..3_usize, any_call(4), 0..12_u32), 0..120),
    ) {
        with_fs(3, buckets, |world| {
            let before = world.arena.live_bytes();
            let (mut reference, mut numbers) = (Reference::default(), Bijection::default());
            for (core, next, extra) in calls {
                if extra == 0 {
                    // Without memory a call succeeds without needing it, fails as it would anyway, or says ENOSPC.
                    world.cores[core].fail_allocations_after(Some(0));
                    let (outcome, mut then) = (world.call(core, &next), reference.clone());
                    world.cores[core].fail_allocations_after(None);
                    let expected = then.call(&next);
                    if outcome == Err(Errno::ENOSPC) {
                        assert!(expected.is_ok());
                    } else {
                        assert!(numbers.same(&outcome, &expected), "{next:?}: {outcome:?}, expected {expected:?}");
                        reference = then;
                    }
                } else {
                    let (outcome, expected) = (world.call(core, &next), reference.call(&next));
                    assert!(numbers.same(&outcome, &expected), "{next:?}: {outcome:?}, expected {expected:?}");
                }
                if extra == 1 {
                    world.fs.maintain(&world.cores[core], &Spin);
                }
            }
            world.call(0, &Call::ChangeDirectory("/".into())).unwrap();
            world.caller.let_go(world.fs, &world.cores[0]);
            for removal in removals(&mut reference, "/") {
                assert_eq!(world.call(0, &removal), Ok(Answer::Done), "{removal:?}");
            }
            world.settle();
            // A table of one bucket may have grown, and then is larger for good.
            if buckets > 1 {
                assert_eq!(world.arena.live_bytes(), before, "objects were lost");
            }
        });
    }
}

/// Linux: `MAXSYMLINKS`.
#[test]
fn a_path_goes_through_forty_symbolic_links_and_no_more() {
    with_fs(1, 4, |world| {
        let call = world.fs.begin(&world.cores[0], world.context, &Spin);
        directories::make_directory(&call, AT, b"l0", 0o755).unwrap();
        for number in 1..=41 {
            let target = format!("l{}", number - 1);
            names::symlink(&call, target.as_bytes(), AT, format!("l{number}").as_bytes()).unwrap();
        }
        let kind = |path: &[u8]| {
            attributes::stat(&call, AT, path, Follow::Symlinks, Fields::IDENTITY).map(|status| status.kind)
        };
        assert_eq!((kind(b"l40"), kind(b"l41")), (Ok(Kind::Directory), Err(Errno::ELOOP)));
        assert_eq!((kind(b"l20/../l20"), kind(b"l20/../l21")), (Ok(Kind::Directory), Err(Errno::ELOOP)));
    });
}

/// An absolute target starts at the root, wherever its link was met.
#[test]
fn a_link_within_a_links_target_may_be_absolute() {
    with_fs(1, 4, |world| {
        let call = world.fs.begin(&world.cores[0], world.context, &Spin);
        for directory in [&b"d"[..], b"e"] {
            directories::make_directory(&call, AT, directory, 0o755).unwrap();
        }
        names::symlink(&call, b"/e", AT, b"d/to-e").unwrap();
        names::symlink(&call, b"to-e/x", AT, b"d/to-x").unwrap();
        directories::make_directory(&call, AT, b"e/x", 0o755).unwrap();
        let stat = |path: &[u8]| attributes::stat(&call, AT, path, Follow::Symlinks, Fields::IDENTITY);
        assert_eq!(stat(b"/d/to-x").map(|status| status.number), stat(b"e/x").map(|status| status.number));
        assert!(stat(b"/d/to-x").is_ok());
    });
}

/// A directory that comes to another parent gives up the one before.
#[test]
fn a_directory_that_moved_keeps_no_parent() {
    with_fs(2, 4, |world| {
        let free = || attributes::space(&world.fs.begin(&world.cores[0], world.context, &Spin)).unwrap().free_inodes;
        let before = free();
        let call = world.fs.begin(&world.cores[0], world.context, &Spin);
        directories::make_directory(&call, AT, b"p", 0o755).unwrap();
        directories::make_directory(&call, AT, b"p/d", 0o755).unwrap();
        names::rename(&call, (AT, b"p/d"), (AT, b"d"), RenameMode::Replace).unwrap();
        directories::remove_directory(&call, AT, b"p").unwrap();
        directories::remove_directory(&call, AT, b"d").unwrap();
        drop(call);
        world.settle();
        assert_eq!(free(), before);
    });
}
