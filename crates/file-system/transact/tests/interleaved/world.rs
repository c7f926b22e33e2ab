//! The world that calls meet, and what is left of it.

use std::collections::BTreeMap;

use plain::{Plain, Process};
use posix_calls::{Credentials, Fields, Kind, ObjectOperations as _, OpenFlags, Start, attributes, directories, names};

/// A file system and the processes of two parties.
#[derive(Clone, Debug)]
pub struct World {
    pub file_system: Plain,
    pub processes: [Process; 2],
    pub there_first: u64,
}

/// `f`, `g` with another name `d/f`, `s` to `d`, and the directories `d`, `d/c`, `e`, in which user 5 may do anything.
pub fn world(users: [u32; 2]) -> World {
    let file_system = Plain::default();
    let superuser = Process::new(&file_system, Credentials::SUPERUSER);
    let at = || Start::WorkingDirectory;
    let there_first = {
        let call = file_system.begin(&superuser);
        attributes::change_mode(&call, at(), b"/", 0o777).unwrap();
        for path in [&b"d"[..], b"d/c", b"e"] {
            directories::make_directory(&call, at(), path, 0o755).unwrap();
            attributes::change_owner(&call, at(), path, posix_calls::Follow::Nothing, (Some(5), Some(7))).unwrap();
        }
        names::symlink(&call, b"d", at(), b"s").unwrap();
        for path in [b"f", b"g"] {
            let flags = OpenFlags::CREATE | OpenFlags::WRITE;
            let opened = names::open(&call, at(), path, flags, 0o644).unwrap();
            names::close(&call, opened.handle);
            attributes::change_owner(&call, at(), path, posix_calls::Follow::Nothing, (Some(5), Some(7))).unwrap();
        }
        names::link(&call, (at(), b"g"), (at(), b"d/f"), posix_calls::Follow::Nothing).unwrap();
        attributes::stat(&call, at(), b"g", posix_calls::Follow::Nothing, Fields::IDENTITY).unwrap().number.0
    };
    superuser.exit(&file_system);
    let process = |user| {
        let process = Process::new(&file_system, Credentials::new(user, user, &[7]).unwrap());
        process.set_umask(0);
        process
    };
    let processes = users.map(process);
    World { file_system, processes, there_first }
}

/// All that can be seen, but for numbers and times of modification of directories.
pub fn seen(world: &World) -> BTreeMap<String, String> {
    let superuser = Process::new(&world.file_system, Credentials::SUPERUSER);
    let mut seen = BTreeMap::new();
    {
        let call = world.file_system.begin(&superuser);
        let (mut indices, mut todo) = (BTreeMap::new(), vec![(String::new(), call.root())]);
        while let Some((path, node)) = todo.pop() {
            let mut told = call.attributes(node, Fields::ALL).unwrap();
            let count = indices.len();
            let index = *indices.entry(told.number.0).or_insert(count);
            told.number.0 = 0;
            let mut more = String::new();
            match told.kind {
                Kind::Directory => {
                    told.modified_ns = 0;
                    let parent = call.parent(node).unwrap();
                    more = format!("in {}", indices[&call.attributes(parent, Fields::IDENTITY).unwrap().number.0]);
                    let mut below = Vec::new();
                    call.list(node, 2, &mut |item| {
                        below.push((format!("{path}/{}", String::from_utf8_lossy(item.name)), item.node));
                        true
                    })
                    .unwrap();
                    below.sort_by(|(one, _), (other, _)| other.cmp(one));
                    todo.extend(below);
                }
                Kind::Symlink => more = format!("{:?}", call.link_target(node).unwrap()),
                _ => {}
            }
            seen.insert(path, format!("{index} {told:?} {more}"));
        }
        seen.insert("space".into(), format!("{:?}", call.space().unwrap()));
        for (index, process) in world.processes.iter().enumerate() {
            let call = world.file_system.begin(process);
            let mut buffer = [0; 64];
            let path = directories::working_directory_path(&call, &mut buffer).map(<[u8]>::to_vec);
            seen.insert(format!("process {index}"), format!("{path:?}"));
        }
    }
    superuser.exit(&world.file_system);
    seen
}
