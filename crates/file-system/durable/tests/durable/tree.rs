//! All that a transaction can see of an instance, to be compared.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use durable::Durable;
use posix_calls::{Attributes, Fields, Kind};
use transact::Scope;

/// What one path leads to: all attributes but inode number and time of change, and what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub attributes: (Kind, u32, u32, u32, u32, u64),
    pub times_ns: (i64, i64),
    pub content: Vec<u8>,
    /// The first path by which the same object is found.
    pub first: PathBuf,
}

pub type Tree = BTreeMap<PathBuf, Seen>;

/// The whole tree, as of one moment.
pub fn tree(instance: &Durable) -> Tree {
    // It looks, and waits for no disk.
    instance.transaction_later(seen_in).unwrap()
}

fn seen_in(t: &Scope<'_>) -> io::Result<Tree> {
    let (mut tree, mut firsts) = (Tree::new(), BTreeMap::new());
    let mut open = vec![PathBuf::from("/")];
    while let Some(path) = open.pop() {
        let Attributes { number, kind, mode, user, group, link_count, size_bytes, accessed_ns, modified_ns, .. } =
            t.metadata(&path, Fields::ALL)?;
        let mut content = Vec::new();
        match kind {
            Kind::Regular => content = t.read(&path)?,
            Kind::Symlink => content = t.read_link(&path)?.into_os_string().into_encoded_bytes(),
            Kind::Directory => open.extend(t.names(&path)?.into_iter().map(|name| path.join(name))),
            _ => {}
        }
        let size_bytes = if kind == Kind::Directory { 0 } else { size_bytes };
        let attributes = (kind, mode, user, group, link_count, size_bytes);
        let first = firsts.entry(number.0).or_insert_with(|| path.clone()).clone();
        tree.insert(path, Seen { attributes, times_ns: (accessed_ns, modified_ns), content, first });
    }
    Ok(tree)
}

/// Which part of many draws this is (`COMMUTANT_PART`): each draws something else.
pub fn part() -> u64 {
    std::env::var("COMMUTANT_PART").map_or(0, |part| part.parse().unwrap())
}

/// A path of the tests' own.
pub fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("durable-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    path
}
