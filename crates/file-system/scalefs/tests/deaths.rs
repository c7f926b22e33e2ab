//! Deaths at every moment: a process that makes one call is ended before each of its accesses to shared memory in turn. Then
//! its core is taken over and repaired; the call must have happened or not, and all calls must work.
//!
//! Not looked at are link counts that are too high, objects that no name leads to, and references that the process held:
//! see docs/reference/scalefs.md, "Death of a process".
#![cfg(all(shuttle, target_os = "linux"))]

use std::cell::Cell;
use std::ptr::NonNull;

use pages::{PAGE_BYTES, PagePool};
use percpu::testing::{World, die, die_everywhere, owner};
use percpu::{Arena, ArenaConfig, Core, HeapRegion};
use scalefs::attributes::{self, NewTime};
use scalefs::data::{self, DescriptorOptions};
use scalefs::names::{self, RenameMode};
use scalefs::{
    AttributeChange, AttributeChanges, Credentials, DataChanges, DataOperations, Decision, Errno, Fields, FileChanges,
    FileRoom, Follow, Host, InProcess, Kind, Moment, NameChange, NameChanges, NewObject, NumberChoice,
    ObjectOperations as _, OnExec, OpenFlags, PageRoom, PermissionChange, Permissions, Precedence, Process,
    ReservedPages, ScaleFs, ScaleFsConfig, Stance, Start, StatusFlags, TimesRight, Urgency, WriteChange, allocation,
    directories, extended,
};
use sync::{Wait, WaitReason};

const PAGE_COUNT: u32 = 64;
const HALF: usize = PAGE_BYTES / 2;
const DEAD: usize = 1;
/// Times of marks play no part.
const NOTHING_TOUCHED: Moment<'static, Node<'static>> = Moment { now_ns: 0, touched: &[] };

/// Waits for a while, and then takes it that nobody will come.
struct Patience;

impl Wait for Patience {
    fn wait(&self, reason: WaitReason, round: u32) {
        assert!(round < 10_000, "waits for ever: {reason:?}");
    }
}

impl Host for Patience {
    fn now_ns(&self) -> u64 {
        0
    }
}

type ObjectOperations<'c> = InProcess<'c, Patience>;
type Call = (&'static str, fn(&ObjectOperations) -> Result<(), Errno>);
const AT: Start<scalefs::Node<'static>> = Start::WorkingDirectory;

fn rename(verbs: &ObjectOperations, old: &str, new: &str, mode: RenameMode) -> Result<(), Errno> {
    names::rename(verbs.objects(), (AT, old.as_bytes()), (AT, new.as_bytes()), mode)
}

fn open(verbs: &ObjectOperations, path: &str, flags: OpenFlags, status: StatusFlags) -> Result<u32, Errno> {
    let options = DescriptorOptions { status, ..DescriptorOptions::PLAIN };
    data::open(verbs, AT, path.as_bytes(), flags, 0o644, options)
}

/// Files f = d/f and h, of a page and a half; directories d, d/sub, e; descriptors 0 and 1 of f, the second O_APPEND; 2 and 3
/// of a pipe that holds two slots of bytes, 4 and 5 of an empty one.
fn prepare(verbs: &ObjectOperations) {
    let objects = verbs.objects();
    for path in ["d", "d/sub", "e"] {
        directories::make_directory(objects, AT, path.as_bytes(), 0o755).unwrap();
    }
    let flags = OpenFlags::CREATE | OpenFlags::READ | OpenFlags::WRITE;
    assert_eq!(open(verbs, "f", flags, StatusFlags::NONE), Ok(0));
    data::write(verbs, 0, &[1; 3 * HALF]).unwrap();
    assert_eq!(open(verbs, "f", flags, StatusFlags::APPEND), Ok(1));
    assert_eq!(data::pipe(verbs, DescriptorOptions::PLAIN), Ok((2, 3)));
    data::write(verbs, 3, &[1; PAGE_BYTES]).unwrap();
    data::write(verbs, 3, &[1; HALF]).unwrap();
    let other = open(verbs, "h", flags, StatusFlags::NONE).unwrap();
    data::close(verbs, other).unwrap();
    assert_eq!(data::pipe(verbs, DescriptorOptions::PLAIN), Ok((4, 5)));
    names::link(objects, (AT, b"f"), (AT, b"d/f"), Follow::Nothing).unwrap();
}

/// Where calls on many names are in the list.
const MANY_CHANGES: usize = 16;
const A_TREE_IS_REMOVED: usize = 17;
const A_TRANSACTION: usize = 18;
const A_TRANSACTION_WITH_DATA: usize = 19;

/// Of these each happens or does not.
const ON_NAMES: [Call; 21] = [
    ("create", |verbs| open(verbs, "d/n", OpenFlags::CREATE, StatusFlags::NONE).map(drop)),
    ("mkdir", |verbs| directories::make_directory(verbs.objects(), AT, b"d/n", 0o755)),
    ("symlink", |verbs| names::symlink(verbs.objects(), b"f", AT, b"d/n")),
    ("link", |verbs| names::link(verbs.objects(), (AT, b"f"), (AT, b"e/g"), Follow::Nothing)),
    ("unlink", |verbs| names::unlink(verbs.objects(), AT, b"d/f")),
    ("unlink of the last name", |verbs| names::unlink(verbs.objects(), AT, b"h")),
    ("rmdir", |verbs| directories::remove_directory(verbs.objects(), AT, b"e")),
    ("rename", |verbs| rename(verbs, "f", "g", RenameMode::Replace)),
    ("rename to another directory", |verbs| rename(verbs, "f", "e/g", RenameMode::NoReplace)),
    ("rename over a file", |verbs| rename(verbs, "d/f", "h", RenameMode::Replace)),
    ("move", |verbs| rename(verbs, "e", "d/e", RenameMode::Replace)),
    ("move over a directory", |verbs| rename(verbs, "e", "d/sub", RenameMode::Replace)),
    ("rename over a directory", |verbs| rename(verbs, "d/sub", "e", RenameMode::Replace)),
    ("exchange", |verbs| rename(verbs, "f", "h", RenameMode::Exchange)),
    ("exchange of directories", |verbs| rename(verbs, "d/sub", "e", RenameMode::Exchange)),
    ("exchange of a file and a directory", |verbs| rename(verbs, "f", "d/sub", RenameMode::Exchange)),
    ("many changes", |verbs| {
        let objects = verbs.objects();
        let handles = (make(verbs, NewObject::File)?, make(verbs, NewObject::Directory)?);
        let (made, directory) = (objects.held(&handles.0), objects.held(&handles.1));
        // A directory comes, with names in it: a new file, what was moved there, and a directory that goes up and over.
        change(
            verbs,
            &[
                ("n", None, Some(directory)),
                ("d/sub", look(verbs, "d/sub"), None),
                ("d/f", look(verbs, "d/f"), None),
                ("h", look(verbs, "h"), look(verbs, "f")),
                ("f", look(verbs, "f"), Some(made)),
                ("m", None, look(verbs, "e")),
                ("e", look(verbs, "e"), look(verbs, "d")),
                ("d", look(verbs, "d"), look(verbs, "h")),
            ],
        )?;
        objects.release(handles.0);
        objects.release(handles.1);
        Ok(())
    }),
    ("a tree is removed", |verbs| {
        let paths = ["d/sub", "d/f", "d", "f", "h"];
        change(verbs, &paths.map(|path| (path, look(verbs, path), None)))
    }),
    ("names and permissions change", |verbs| {
        let f = look(verbs, "f");
        change_with(verbs, &[("f", f, None), ("m", None, f), ("h", look(verbs, "h"), None)], &["f", "e"])
    }),
    ("names and data change", |verbs| {
        let (f, h) = (look(verbs, "f"), look(verbs, "h"));
        let write = |offset, bytes| WriteChange { offset, bytes };
        let of_f = [write(100, &[2; 200][..]), write(3 * PAGE_BYTES as u64, &[3; HALF])];
        let of_h = [write(PAGE_BYTES as u64 + 10, &[4; 20][..])];
        let file = |file, cut_to, writes| FileChanges { file, cut_to, writes, size_bytes: cut_to.map(|_| 5_000) };
        let (Some(f), Some(h)) = (f, h) else { return Err(Errno::ENOENT) };
        change_data(
            verbs,
            &[("f", Some(f), None), ("m", None, Some(f))],
            &[file(f, None, &of_f), file(h, Some(90), &of_h)],
        )
    }),
    ("files are cut", |verbs| {
        let (Some(f), Some(h)) = (look(verbs, "f"), look(verbs, "h")) else { return Err(Errno::ENOENT) };
        let file = |file, size| FileChanges { file, cut_to: Some(size), writes: &[], size_bytes: Some(size) };
        change_data(verbs, &[], &[file(f, 0), file(h, 90)])
    }),
];

type Node<'v> = scalefs::Node<'v>;

/// What a path of two names at most leads to.
fn look<'v>(verbs: &'v ObjectOperations<'_>, path: &str) -> Option<Node<'v>> {
    let objects = verbs.objects();
    path.split('/').try_fold(objects.root(), |node, name| {
        let key = objects.key(name.as_bytes()).unwrap();
        let found = (node.kind() == Kind::Directory).then(|| objects.look_up(node, &key).unwrap())??;
        Some(objects.node(&found))
    })
}

fn make(verbs: &ObjectOperations, object: NewObject) -> Result<scalefs::OpenNode, Errno> {
    let permissions = Permissions { mode: 0o755, user: 0, group: 0 };
    verbs.objects().make(verbs.objects().root(), object, permissions).map_err(|_| Errno::ENOSPC)
}

/// Changes many names at one moment, each from one object to another.
fn change<'v>(
    verbs: &'v ObjectOperations<'_>,
    changes: &[(&str, Option<Node<'v>>, Option<Node<'v>>)],
) -> Result<(), Errno> {
    change_with(verbs, changes, &[])
}

/// [`change`], together with the permissions and times of some objects, open for a look in between.
fn change_with<'v>(
    verbs: &'v ObjectOperations<'_>,
    changes: &[(&str, Option<Node<'v>>, Option<Node<'v>>)],
    attributes: &[&str],
) -> Result<(), Errno> {
    let objects = verbs.objects();
    let key = |path: &str| path.rsplit('/').next().unwrap().to_owned();
    let names: Vec<String> = changes.iter().map(|(path, ..)| key(path)).collect();
    let keys: Vec<_> = names.iter().map(|name| objects.key(name.as_bytes()).unwrap()).collect();
    let changes: Option<Vec<_>> = changes
        .iter()
        .zip(&keys)
        .map(|(&(path, before, after), key)| {
            let directory = path.rsplit_once('/').map_or(Some(objects.root()), |(outer, _)| look(verbs, outer))?;
            (directory.kind() == Kind::Directory).then_some(NameChange { directory, key, before, after })
        })
        .collect();
    let changes = changes.ok_or(Errno::ENOENT)?;
    let mut room: Vec<_> = changes.iter().map(|_| Default::default()).collect();
    let new = [
        AttributeChange::Permissions(PermissionChange::Mode(0o600)),
        AttributeChange::Times(TimesRight::Owner, (Some(7), Some(9))),
    ];
    let nodes: Option<Vec<_>> = attributes.iter().map(|path| look(verbs, path)).collect();
    let nodes = nodes.ok_or(Errno::ENOENT)?;
    let attributes: Vec<_> = nodes.iter().map(|node| AttributeChanges { node: *node, changes: &new }).collect();
    let mut attribute_room: Vec<_> = attributes.iter().map(|_| Default::default()).collect();
    let mut prepared = objects.prepare(&changes, NOTHING_TOUCHED, &mut room).map_err(|_| Errno::EAGAIN)?;
    if !nodes.is_empty() {
        let marked = objects.prepare_attributes(&mut prepared, &attributes, &mut attribute_room);
        marked.map_err(|_| Errno::EAGAIN)?;
        let urgency = Urgency { precedence: Precedence(0), stance: Stance::Yields };
        let looks = objects.open(&mut prepared, urgency);
        assert_ne!(looks.permissions(nodes[0])?.mode, 0o600, "one sees through one's own marks what was before");
        drop(looks);
        assert!(objects.decide(&mut prepared)?, "nobody comes in between");
    }
    objects.finish(prepared, Decision::Commit).map_err(Errno::from)
}

/// Changes names and files at one moment, open for a look in between.
fn change_data<'v>(
    verbs: &'v ObjectOperations<'_>,
    names: &[(&str, Option<Node<'v>>, Option<Node<'v>>)],
    files: &[FileChanges<'_, Node<'v>>],
) -> Result<(), Errno> {
    let objects = verbs.objects();
    let keys: Vec<_> = names.iter().map(|(name, ..)| objects.key(name.as_bytes()).unwrap()).collect();
    let change = |(&(_, before, after), key)| NameChange { directory: objects.root(), key, before, after };
    let names: Vec<_> = names.iter().zip(&keys).map(change).collect();
    let mut room: Vec<_> = names.iter().map(|_| Default::default()).collect();
    let (mut file_room, mut page_room) = (<[FileRoom; 2]>::default(), <[PageRoom; 4]>::default());
    let reserved = [const { Cell::new(None) }; 4];
    for place in &reserved {
        place.set(verbs.reserve_page()?);
    }
    let pages = ReservedPages::new(&reserved);
    let mut prepared = objects.prepare(&names, NOTHING_TOUCHED, &mut room).map_err(|_| Errno::EAGAIN)?;
    let marked = verbs.prepare_data(&mut prepared, files, &pages, (&mut file_room, &mut page_room));
    marked.map_err(|_| Errno::EAGAIN)?;
    drop(objects.open(&mut prepared, Urgency { precedence: Precedence(0), stance: Stance::Yields }));
    assert!(verbs.ends_at(files[0].file, 3 * HALF as u64)?, "one sees through one's own marks what was before");
    assert!(objects.decide(&mut prepared)?, "nobody comes in between");
    objects.finish(prepared, Decision::Commit)?;
    reserved.iter().filter_map(Cell::take).try_for_each(|page| verbs.give_page_back(page)).map_err(Errno::from)
}

/// Lets a name lead elsewhere, and takes from a pipe and puts into it; it is locked meanwhile, and so is another one behind it, of
/// which the core's own line knows alone.
fn change_pipe(verbs: &ObjectOperations<'_>) -> Result<(), Errno> {
    let pipe = |end| Ok::<_, Errno>(verbs.node(verbs.description(end)?.ok_or(Errno::EBADF)?));
    let (pipe, other) = (pipe(3)?, pipe(5)?);
    let (waiting, room) = (verbs.peek_pipe(pipe, &mut [0; PAGE_BYTES])?, verbs.pipe_room(pipe, HALF)?);
    let lock = |pipe, put_bytes| verbs.lock_pipe(pipe, put_bytes).map_err(|_| Errno::ENOSPC);
    let locks = (lock(pipe, room.min(HALF))?, lock(other, 0)?);
    change(verbs, &[("k", look(verbs, "k"), look(verbs, "f"))])?;
    verbs.finish_pipe(locks.0, waiting, &[2; HALF][..room.min(HALF)])?;
    verbs.finish_pipe(locks.1, 0, &[]).map_err(Errno::from)
}

/// Of these a part may have happened.
const ON_OBJECTS: [Call; 23] = [
    ("chmod", |verbs| attributes::change_mode(verbs.objects(), AT, b"f", 0o600)),
    ("utimensat, access", |verbs| set_times(verbs, (NewTime::At(7), NewTime::Same))),
    ("utimensat, modification", |verbs| set_times(verbs, (NewTime::Same, NewTime::At(7)))),
    ("utimensat", |verbs| set_times(verbs, (NewTime::At(7), NewTime::At(7)))),
    ("write in place", |verbs| data::write_at(verbs, 0, &[2; PAGE_BYTES], 100).map(drop)),
    ("write behind the end", |verbs| data::write_at(verbs, 0, &[2; PAGE_BYTES], 5 * HALF as i64).map(drop)),
    ("write at the offset", |verbs| data::write(verbs, 0, &[2; PAGE_BYTES]).map(drop)),
    ("append", |verbs| data::write(verbs, 1, &[2; PAGE_BYTES]).map(drop)),
    ("read", |verbs| data::read(verbs, 1, &mut [0; PAGE_BYTES]).map(drop)),
    ("cut to nothing", |verbs| data::truncate(verbs, 0, 0)),
    ("cut to a part of a page", |verbs| data::truncate(verbs, 0, 100)),
    ("cut to a page", |verbs| data::truncate(verbs, 0, PAGE_BYTES as i64)),
    ("extend", |verbs| data::truncate(verbs, 0, 90_000)),
    ("write to a pipe", |verbs| data::write(verbs, 3, &[2; 100]).map(drop)),
    ("write pages to a pipe", |verbs| data::write(verbs, 3, &[2; 2 * PAGE_BYTES]).map(drop)),
    ("read from a pipe", |verbs| data::read(verbs, 2, &mut [0; PAGE_BYTES + 100]).map(drop)),
    ("change a name and a pipe", change_pipe),
    ("dup", |verbs| data::duplicate(verbs, 0, NumberChoice::LowestFrom(5), OnExec::Keep).map(drop)),
    ("dup2", |verbs| data::duplicate_to(verbs, 3, 1, OnExec::Keep).map(drop)),
    ("first attribute", |verbs| set_attribute(verbs, "user.a", &[1; 100])),
    ("attributes come and go", |verbs| {
        set_attribute(verbs, "user.b", &[2; 300])?;
        set_attribute(verbs, "user.a", &[3; 10])?;
        let objects = verbs.objects();
        extended::remove(objects, || extended::of(verbs, 0), b"user.b")
    }),
    ("room is taken", |verbs| allocation::change(verbs, 0, 0, (100, 4 * PAGE_BYTES as i64))),
    ("a hole is made", |verbs| allocation::change(verbs, 0, 3, (0, PAGE_BYTES as i64 + 100))),
];

/// By a descriptor: other calls give its file's names away.
fn set_attribute(verbs: &ObjectOperations, name: &str, value: &[u8]) -> Result<(), Errno> {
    extended::set(verbs.objects(), || extended::of(verbs, 0), (name.as_bytes(), value), 0)
}

fn set_times(verbs: &ObjectOperations, times: (NewTime, NewTime)) -> Result<(), Errno> {
    attributes::set_times(verbs.objects(), AT, b"f", Follow::Symlinks, times)
}

/// Of all paths: what they lead to, its number and permissions, and a file's bytes.
type Tree = Vec<(String, Kind, u64, u32, Vec<u8>)>;

/// All that paths lead to.
fn tree(fs: &ScaleFs, core: &Core, process: &Process) -> Tree {
    let (mut todo, mut told) = (vec![String::from("/")], Vec::new());
    while let Some(path) = todo.pop() {
        let verbs = fs.enter(core, process, &Patience);
        let status = attributes::stat(verbs.objects(), AT, path.as_bytes(), Follow::Nothing, Fields::ALL).unwrap();
        let mut bytes = Vec::new();
        match status.kind {
            Kind::Directory => {
                let flags = OpenFlags::READ | OpenFlags::DIRECTORY;
                let node = names::open(verbs.objects(), AT, path.as_bytes(), flags, 0).unwrap().handle;
                let outer = path.rsplit_once('/').map_or("/", |(outer, _)| outer);
                let parent = attributes::stat(
                    verbs.objects(),
                    AT,
                    format!("{path}/..").as_bytes(),
                    Follow::Nothing,
                    Fields::IDENTITY,
                );
                let expected = attributes::stat(
                    verbs.objects(),
                    AT,
                    format!("/{outer}").as_bytes(),
                    Follow::Nothing,
                    Fields::IDENTITY,
                );
                assert_eq!(parent.unwrap().number, expected.unwrap().number, "the parent of {path}");
                directories::read_directory(verbs.objects(), verbs.objects().held(&node), 0, |entry| {
                    let name = str::from_utf8(entry.name).unwrap();
                    if !matches!(name, "." | "..") {
                        todo.push(format!("{}/{name}", path.trim_end_matches('/')));
                    }
                    true
                })
                .unwrap();
                names::close(verbs.objects(), node);
            }
            Kind::Regular => {
                let node = open(&verbs, &path, OpenFlags::READ, StatusFlags::NONE).unwrap();
                bytes = vec![0; status.size_bytes as usize + 10];
                let length = data::read_at(&verbs, node, &mut bytes, 0).unwrap();
                assert_eq!(length as u64, status.size_bytes, "the size of {path}");
                bytes.truncate(length);
                data::close(&verbs, node).unwrap();
            }
            _ => {}
        }
        told.push((path, status.kind, status.number.0, status.mode, bytes));
    }
    told.sort_by(|one, other| one.0.cmp(&other.0));
    told
}

/// How large the tables of an instance are.
#[derive(Clone, Copy, Debug)]
enum Tables {
    /// As small as they can be, so that everything collides.
    Smallest,
    /// As they are by default.
    Default,
}

/// Runs a test on an instance in memory that is shared with processes made meanwhile; core 0 is the test's.
fn with_instance<R>(tables: Tables, test: impl FnOnce(&Arena, &ScaleFs, &Core) -> R) -> R {
    let (bytes, config) = match tables {
        Tables::Smallest => {
            let small = ScaleFsConfig { root_bucket_count: 2, directory_bucket_count: 2, ..ScaleFsConfig::default() };
            (1 << 20, ScaleFsConfig { count_slots_per_core: 2, ..small })
        }
        Tables::Default => (3 << 20, ScaleFsConfig::default()),
    };
    let world = World::with(bytes, ArenaConfig { core_count: 2, chunk_bytes: 4096 });
    let mut pages = HeapRegion::new((PAGE_COUNT as usize + 1) * PAGE_BYTES).unwrap();
    let core = world.core(0);
    let pages = NonNull::new(pages.as_mut_ptr()).unwrap();
    // SAFETY: the pages are the pool's alone, and outlive the instance.
    let pool = unsafe { PagePool::create(world.arena(), pages, PAGE_COUNT) }.unwrap();
    let fs = ScaleFs::create_with_pages(&core, pool, config).unwrap();
    test(world.arena(), fs, &core)
}

fn maintain(fs: &ScaleFs, cores: [&Core; 2]) {
    for _ in 0..4 {
        cores.iter().for_each(|core| fs.maintain(core, &Patience));
    }
}

/// What all is before a call, and after it.
fn before_and_after(tables: Tables, call: Call) -> [Tree; 2] {
    with_instance(tables, |arena, fs, core| {
        let process = Process::new(fs, core, Credentials::SUPERUSER).unwrap();
        let other = arena.claim(DEAD, owner(2)).unwrap();
        prepare(&fs.enter(&other, &process, &Patience));
        let before = tree(fs, core, &process);
        assert_eq!(call.1(&fs.enter(&other, &process, &Patience)), Ok(()), "{}", call.0);
        [before, tree(fs, core, &process)]
    })
}

/// Where a process dies: in a call, or in the maintenance after it, before its access of this number; and whether it had
/// maintained before, so that times, sizes and counts had reached the objects.
#[derive(Clone, Copy, Debug)]
struct Death {
    call: Call,
    access: u64,
    is_settled: bool,
    in_maintenance: bool,
    tables: Tables,
}

/// Lets a process die; false if it came to the end of the call.
fn survive(death: Death, states: Option<&[Tree; 2]>) -> bool {
    let Death { call, access, is_settled, in_maintenance, tables } = death;
    with_instance(tables, |arena, fs, core| {
        let process = Process::new(fs, core, Credentials::SUPERUSER).unwrap();
        {
            let other = arena.claim(DEAD, owner(2)).unwrap();
            prepare(&fs.enter(&other, &process, &Patience));
            if is_settled {
                maintain(fs, [core, &other]);
            }
            if in_maintenance {
                call.1(&fs.enter(&other, &process, &Patience)).unwrap();
            }
        }
        let heir = die(arena, DEAD, access, |other| {
            if in_maintenance {
                (0..4).for_each(|_| fs.maintain_with_idle_cores(other, &Patience));
            } else {
                let _ = call.1(&fs.enter(other, &process, &Patience));
            }
        });
        let Some(heir) = heir else {
            return false;
        };
        // SAFETY: the process has gone.
        unsafe {
            fs.repair_taken_over(&heir, &Patience);
            process.repair_taken_over(fs, &heir, &Patience);
        }
        let found = tree(fs, core, &process);
        if let Some(states) = states {
            assert!(
                states.contains(&found),
                "neither all nor nothing: {:?}",
                found.iter().map(|one| &one.0).collect::<Vec<_>>()
            );
        }
        maintain(fs, [core, &heir]);
        for core in [core, &heir] {
            for (_, call) in ON_NAMES.iter().chain(&ON_OBJECTS) {
                let _ = call(&fs.enter(core, &process, &Patience));
            }
            maintain(fs, [core, &heir]);
        }
        tree(fs, &heir, &process);
        process.exit(fs, core, &Patience);
        maintain(fs, [core, &heir]);
        true
    })
}

/// Lets a process die everywhere in calls, or in the maintenance after them; `is_whole` says that a call happens or not.
fn all_deaths(calls: &[Call], is_whole: bool, in_maintenance: bool) {
    let mut failures = Vec::new();
    for call in calls {
        for (tables, is_settled) in [(Tables::Smallest, false), (Tables::Smallest, true), (Tables::Default, false)] {
            let states = is_whole
                .then(|| before_and_after(tables, *call))
                .map(|[before, after]| if in_maintenance { [after.clone(), after] } else { [before, after] });
            die_everywhere(|access| {
                let death = Death { call: *call, access, is_settled, in_maintenance, tables };
                std::panic::catch_unwind(|| survive(death, states.as_ref())).unwrap_or_else(|_| {
                    failures.push((call.0, access, is_settled, tables));
                    true
                })
            });
        }
    }
    assert!(failures.is_empty(), "a death was not made good: {failures:?}");
}

#[test]
fn a_call_on_names_happens_or_not_wherever_its_process_dies() {
    all_deaths(&ON_NAMES, true, false);
}

#[test]
fn files_and_pipes_work_wherever_a_process_dies() {
    all_deaths(&ON_OBJECTS, false, false);
}

#[test]
fn maintenance_changes_nothing_that_can_be_seen_wherever_a_process_dies() {
    all_deaths(&[ON_NAMES[3], ON_NAMES[5], ON_NAMES[9]], true, true);
}

/// The reader of a pipe that a dead commit had locked would wait for ever.
#[test]
fn a_pipe_that_is_not_noted_stays_locked() {
    let call = *ON_OBJECTS.iter().find(|(name, _)| *name == "change a name and a pipe").unwrap();
    sync::mutant::must_be_caught("scalefs: a pipe that a commit has locked is not noted", || {
        die_everywhere(|access| {
            let death = Death { call, access, is_settled: false, in_maintenance: false, tables: Tables::Smallest };
            survive(death, None)
        })
    });
}

/// Who changes attributes after the dead would wait for ever.
#[test]
fn a_lock_of_attributes_that_an_heir_forgets_is_found() {
    let call = *ON_OBJECTS.iter().find(|(name, _)| *name == "first attribute").unwrap();
    sync::mutant::must_be_caught("scalefs: an heir forgets the lock of attributes", || {
        die_everywhere(|access| {
            let death = Death { call, access, is_settled: false, in_maintenance: false, tables: Tables::Smallest };
            survive(death, None)
        })
    });
}

/// What makes many names change at one moment, or not at all, whoever dies.
#[test]
fn changes_of_many_names_that_are_not_made_good_are_found() {
    for (mutant, call) in [
        ("scalefs: changes of many names are not noted", MANY_CHANGES),
        ("scalefs: names change before it is decided", A_TREE_IS_REMOVED),
        ("scalefs: an heir forgets permissions that were decided", A_TRANSACTION),
        ("scalefs: an heir forgets a size that was decided", A_TRANSACTION_WITH_DATA),
        ("scalefs: an heir forgets pages that were decided", A_TRANSACTION_WITH_DATA),
    ] {
        let call = ON_NAMES[call];
        let states = before_and_after(Tables::Smallest, call);
        sync::mutant::must_be_caught(mutant, || {
            die_everywhere(|access| {
                let death = Death { call, access, is_settled: false, in_maintenance: false, tables: Tables::Smallest };
                survive(death, Some(&states))
            })
        });
    }
}
