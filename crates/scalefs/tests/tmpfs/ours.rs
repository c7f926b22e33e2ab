//! The calls on ScaleFS: two cores in turn, maintenance now and then, tables that have to grow.

use percpu::{Arena, ArenaConfig, Core, HeapRegion, OwnerId};
use scalefs::attributes::{self, Access};
use scalefs::{Context, Credentials, Errno, Fields, Follow, Kind, OpenFlags, ScaleFs, ScaleFsConfig, Start};
use scalefs::{directories, names};
use sync::Spin;

use crate::calls::{Answer, Call, Operation, Outcome, USERS};

/// An instance with a context for every user, who all work in one directory.
pub struct Ours<'a> {
    fs: &'a ScaleFs,
    cores: [Core<'a>; 2],
    contexts: [Context; USERS.len()],
}

/// Memory for one instance after the other.
pub fn memory() -> HeapRegion {
    HeapRegion::new(32 << 20).unwrap()
}

/// Runs `test` on an empty instance whose root everybody may write.
pub fn with_instance<T>(region: &mut HeapRegion, test: impl FnOnce(&Ours) -> T) -> T {
    let arena = Arena::create(region, ArenaConfig { core_count: 2, chunk_bytes: 4096 }).unwrap();
    let cores = [0, 1].map(|number| arena.claim(number, OwnerId::new(1).unwrap()).unwrap());
    let config = ScaleFsConfig {
        root_bucket_count: 2,
        directory_bucket_count: 1,
        count_slots_per_core: 8,
        ..ScaleFsConfig::default()
    };
    let fs = ScaleFs::create(&cores[0], config).unwrap();
    let contexts = USERS.map(|user| Context::new(fs, &cores[0], Credentials::new(user, user, &[]).unwrap()));
    attributes::change_mode(&fs.begin(&cores[0], &contexts[0], &Spin), Start::WorkingDirectory, b"/", 0o777).unwrap();
    test(&Ours { fs, cores, contexts })
}

fn follow(follow: bool) -> Follow {
    if follow { Follow::Symlinks } else { Follow::Nothing }
}

impl Ours<'_> {
    /// The call with this number in its sequence.
    pub fn call(&self, index: usize, call: &Call) -> Outcome {
        let core = &self.cores[index / 3 % 2];
        let outcome = self.make(core, call).map_err(Errno::number);
        if index.is_multiple_of(8) {
            self.fs.maintain(core, &Spin);
        }
        outcome
    }

    fn make(&self, core: &Core, call: &Call) -> Result<Answer, Errno> {
        let verbs = self.fs.begin(core, &self.contexts[call.user], &Spin);
        let at = Start::WorkingDirectory;
        let done = |()| Answer::Done;
        match &call.operation {
            Operation::Open(path, flags, mode) => names::open(&verbs, at, path.as_bytes(), *flags, *mode)
                .map(|opened| names::close(&verbs, opened.node))
                .map(done),
            Operation::MakeDirectory(path, mode) => {
                directories::make_directory(&verbs, at, path.as_bytes(), *mode).map(done)
            }
            Operation::RemoveDirectory(path) => directories::remove_directory(&verbs, at, path.as_bytes()).map(done),
            Operation::Symlink(target, path) => {
                names::symlink(&verbs, target.as_bytes(), at, path.as_bytes()).map(done)
            }
            Operation::ReadLink(path) => {
                names::read_link(&verbs, at, path.as_bytes()).map(|target| Answer::Text(target.to_vec()))
            }
            Operation::Link(old, new, follows) => {
                names::link(&verbs, (at, old.as_bytes()), (at, new.as_bytes()), follow(*follows)).map(done)
            }
            Operation::Unlink(path) => names::unlink(&verbs, at, path.as_bytes()).map(done),
            Operation::Rename(old, new, mode) => {
                names::rename(&verbs, (at, old.as_bytes()), (at, new.as_bytes()), *mode).map(done)
            }
            Operation::Stat(path, follows) => {
                let status = attributes::stat(&verbs, at, path.as_bytes(), follow(*follows), Fields::ALL)?;
                let is_directory = status.kind == Kind::Directory;
                Ok(Answer::Status {
                    file: status.number.0,
                    kind: status.kind as u8,
                    mode: status.mode,
                    user: status.user,
                    group: status.group,
                    links: if is_directory { 0 } else { status.link_count },
                    size: if is_directory { 0 } else { status.size_bytes },
                })
            }
            Operation::Access(path, bits) => {
                let wanted = Access { read: bits & 4 != 0, write: bits & 2 != 0, execute: bits & 1 != 0 };
                attributes::access(&verbs, at, path.as_bytes(), Follow::Symlinks, wanted).map(done)
            }
            Operation::ChangeMode(path, mode) => attributes::change_mode(&verbs, at, path.as_bytes(), *mode).map(done),
            Operation::ChangeOwner(path, follows, user, group) => {
                attributes::change_owner(&verbs, at, path.as_bytes(), follow(*follows), (*user, *group)).map(done)
            }
            Operation::ChangeDirectory(path) => {
                directories::change_directory(&verbs, at, path.as_bytes())?;
                // The users share the host's one working directory.
                for context in &self.contexts {
                    let other = self.fs.begin(core, context, &Spin);
                    directories::enter(&other, scalefs::Verbs::working_directory(&verbs));
                }
                Ok(Answer::Done)
            }
            Operation::WorkingDirectory => {
                let mut buffer = [0; 4096];
                directories::working_directory_path(&verbs, &mut buffer).map(|path| Answer::Text(path.to_vec()))
            }
            Operation::List(path) => {
                let flags = OpenFlags::READ | OpenFlags::DIRECTORY;
                let node = names::open(&verbs, at, path.as_bytes(), flags, 0)?.node;
                let mut listed = Vec::new();
                directories::read_directory(&verbs, node, 0, |entry| {
                    listed.push((String::from_utf8(entry.name.to_vec()).unwrap(), entry.kind as u8));
                    true
                })?;
                names::close(&verbs, node);
                listed.retain(|(name, _)| name != "." && name != "..");
                listed.sort();
                Ok(Answer::Names(listed))
            }
            Operation::DirectoryLinks(path) => {
                let status = attributes::stat(&verbs, at, path.as_bytes(), Follow::Symlinks, Fields::LINK_COUNT)?;
                Ok(Answer::Text(status.link_count.to_string().into_bytes()))
            }
        }
    }
}
