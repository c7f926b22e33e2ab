//! Paths: from a start to the directory and the last component, and on to what it leads to.
//!
//! Linux: `path_init`, `link_path_walk`, `walk_component`, `pick_link` (fs/namei.c), and their order of checks: the right
//! to search a directory before the name in it, a name's length when it is looked up, at most 40 symbolic links.
//!
//! A walk writes nothing and locks nothing. It reads of each directory its table and the entry of one name; a user who is
//! not the superuser also reads who may search it. It is not atomic: a directory may move while a path goes through it,
//! as on Linux; the change at the end of the path is.

use hashdir::Key;

use crate::errno::Errno;
use crate::inode::{Kind, Permissions};
use crate::verbs::Verbs;

/// Longest path in bytes (`PATH_MAX` of Linux, less the terminating NUL).
pub const MAX_PATH_BYTES: usize = 4095;
/// Most symbolic links that one path leads through (`MAXSYMLINKS` of Linux).
const MAX_SYMLINKS: usize = 40;

/// Where relative paths start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start<N> {
    /// At the caller's working directory (`AT_FDCWD`).
    WorkingDirectory,
    /// At a directory that the caller has a handle of (`openat` and its like).
    Handle(N),
}

/// Whether a symbolic link at the end of a path is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// It is.
    Symlinks,
    /// It is not (`AT_SYMLINK_NOFOLLOW`), unless a slash follows.
    Nothing,
}

/// The end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last<'p> {
    /// A name that has not been looked up; it may be too long.
    Name(&'p [u8]),
    /// `.`, or nothing but slashes: the directory itself.
    Dot,
    /// `..`
    DotDot,
    /// Nothing but slashes.
    Root,
}

impl Last<'_> {
    #[inline]
    fn of(component: &[u8]) -> Last<'_> {
        match component {
            [b'.'] => Last::Dot,
            [b'.', b'.'] => Last::DotDot,
            name => Last::Name(name),
        }
    }
}

/// A permission that a call needs, with the bit of the lowest class of the mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Need(pub(crate) u32);

impl Need {
    pub(crate) const SEARCH: Need = Need(1);
    /// To change a directory's names.
    pub(crate) const CHANGE_NAMES: Need = Need(3);
    pub(crate) const WRITE: Need = Need(2);
}

/// Whether the caller has a permission (Linux: `inode_permission`, `generic_permission`).
#[inline]
pub(crate) fn check_permission<V: Verbs>(verbs: &V, node: V::Node, need: Need) -> Result<(), Errno> {
    let credentials = verbs.credentials();
    if credentials.is_superuser() {
        // Everything is allowed but to execute what nobody may: nothing has to be read.
        let is_allowed =
            need.0 & 1 == 0 || verbs.kind(node) == Kind::Directory || verbs.permissions(node).mode & 0o111 != 0;
        return if is_allowed { Ok(()) } else { Err(Errno::EACCES) };
    }
    check_user(verbs, verbs.permissions(node), need)
}

/// Whether these permissions let the caller, who is not the superuser, do what it needs.
#[inline]
pub(crate) fn check_user<V: Verbs>(
    verbs: &V,
    Permissions { mode, user, group }: Permissions,
    need: Need,
) -> Result<(), Errno> {
    let credentials = verbs.credentials();
    let class = if credentials.user == user {
        mode >> 6
    } else if credentials.is_in_group(group) {
        mode >> 3
    } else {
        mode
    };
    if class & need.0 == need.0 { Ok(()) } else { Err(Errno::EACCES) }
}

/// Whether a path, or the target of a symbolic link, is the end of a walk or only on its way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    End,
    Middle,
}

/// A walk that has come to the last component of its path.
pub(crate) struct Walk<'v, V: Verbs> {
    verbs: &'v V,
    /// The directory in which the last component is.
    pub(crate) directory: V::Node,
    pub(crate) last: Last<'v>,
    /// Whether a slash follows the last component: it must be a directory.
    pub(crate) has_slash: bool,
    /// Symbolic links followed so far.
    symlinks: usize,
}

/// What a path leads to.
pub(crate) struct Resolved<'v, V: Verbs + 'v> {
    pub(crate) node: V::Node,
    /// The name through which it was found; none for `.`, `..` and the root.
    pub(crate) found: Option<V::Found<'v>>,
}

/// A path as a user gives it: not empty, not too long, without NUL (Linux: `getname`).
#[inline]
pub(crate) fn check_path(path: &[u8]) -> Result<(), Errno> {
    match path.len() {
        0 => Err(Errno::ENOENT),
        length if length > MAX_PATH_BYTES => Err(Errno::ENAMETOOLONG),
        _ if contains(path, 0) => Err(Errno::EINVAL),
        _ => Ok(()),
    }
}

/// The key of a name that is looked for in a directory. A removed directory has no names, and says so before it looks how
/// long this one is (Linux: `__lookup_slow`, `lookup_one_qstr_excl`, `lookup_open`).
#[inline]
pub(crate) fn key_in<'n, V: Verbs>(verbs: &V, directory: V::Node, name: &'n [u8]) -> Result<Key<'n>, Errno> {
    verbs.key(name).ok_or_else(|| if verbs.is_removed(directory) { Errno::ENOENT } else { Errno::ENAMETOOLONG })
}

impl<'v, V: Verbs> Walk<'v, V> {
    /// A walk that has not begun. It is filled where it lies: copying it on its way would cost as much as a lookup.
    #[inline]
    pub(crate) fn new(verbs: &'v V) -> Walk<'v, V> {
        Walk { verbs, directory: verbs.root(), last: Last::Root, has_slash: false, symlinks: 0 }
    }

    /// Walks to the last component.
    #[inline]
    pub(crate) fn go_to_last(&mut self, start: Start<V::Node>, path: &'v [u8]) -> Result<(), Errno> {
        check_path(path)?;
        self.directory = match start {
            _ if path[0] == b'/' => self.verbs.root(),
            Start::WorkingDirectory => self.verbs.working_directory(),
            Start::Handle(node) if self.verbs.kind(node) == Kind::Directory => node,
            Start::Handle(_) => return Err(Errno::ENOTDIR),
        };
        if contains(path, b'/') {
            return self.run(path, Part::End);
        }
        // One name, as most paths of a program that works in its directory.
        check_permission(self.verbs, self.directory, Need::SEARCH)?;
        self.last = Last::of(path);
        Ok(())
    }

    /// Follows the symbolic link that the last component leads to, to the last component of what it stands for.
    pub(crate) fn follow_last(&mut self, symlink: V::Node) -> Result<(), Errno> {
        self.last = Last::Root;
        self.follow(symlink, Part::End)
    }

    fn follow(&mut self, symlink: V::Node, part: Part) -> Result<(), Errno> {
        if self.symlinks == MAX_SYMLINKS {
            return Err(Errno::ELOOP);
        }
        self.symlinks += 1;
        let target = self.verbs.link_target(symlink);
        if target.first() == Some(&b'/') {
            self.directory = self.verbs.root();
        }
        self.run(target, part)
    }

    /// Walks along a path: to its last component, or, in the middle of another, through it. Symbolic links in the middle
    /// nest, at most as deep as there may be of them.
    fn run(&mut self, path: &'v [u8], part: Part) -> Result<(), Errno> {
        let mut path = without_slashes(path);
        while !path.is_empty() {
            check_permission(self.verbs, self.directory, Need::SEARCH)?;
            let end = path.iter().position(|byte| *byte == b'/').unwrap_or(path.len());
            let (component, behind) = path.split_at(end);
            path = without_slashes(behind);
            let last = Last::of(component);
            if part == Part::End && path.is_empty() {
                self.last = last;
                self.has_slash |= !behind.is_empty();
            } else {
                self.step(last)?;
            }
        }
        Ok(())
    }

    fn step(&mut self, component: Last<'_>) -> Result<(), Errno> {
        match component {
            Last::Dot | Last::Root => Ok(()),
            Last::DotDot => {
                self.directory = self.verbs.parent(self.directory);
                Ok(())
            }
            Last::Name(name) => {
                let key = key_in(self.verbs, self.directory, name)?;
                let found = self.verbs.look_up(self.directory, &key).ok_or(Errno::ENOENT)?;
                let node = self.verbs.node(&found);
                match self.verbs.kind(node) {
                    Kind::Directory => {
                        self.directory = node;
                        Ok(())
                    }
                    Kind::Symlink => self.follow(node, Part::Middle),
                    Kind::Regular | Kind::Pipe => Err(Errno::ENOTDIR),
                }
            }
        }
    }

    /// What the path leads to.
    #[inline]
    pub(crate) fn resolve(&mut self, follow: Follow) -> Result<Resolved<'v, V>, Errno> {
        loop {
            let name = match self.last {
                Last::Dot | Last::Root => return Ok(Resolved { node: self.directory, found: None }),
                Last::DotDot => return Ok(Resolved { node: self.verbs.parent(self.directory), found: None }),
                Last::Name(name) => name,
            };
            let key = key_in(self.verbs, self.directory, name)?;
            let found = self.verbs.look_up(self.directory, &key).ok_or(Errno::ENOENT)?;
            let node = self.verbs.node(&found);
            let kind = self.verbs.kind(node);
            if kind == Kind::Symlink && (follow == Follow::Symlinks || self.has_slash) {
                self.follow_last(node)?;
            } else if self.has_slash && kind != Kind::Directory {
                return Err(Errno::ENOTDIR);
            } else {
                return Ok(Resolved { node, found: Some(found) });
            }
        }
    }
}

/// What a path leads to.
pub(crate) fn resolve<'v, V: Verbs>(
    verbs: &'v V,
    start: Start<V::Node>,
    path: &'v [u8],
    follow: Follow,
) -> Result<Resolved<'v, V>, Errno> {
    let mut walk = Walk::new(verbs);
    walk.go_to_last(start, path)?;
    walk.resolve(follow)
}

/// For names of a few bytes: what searches long texts fast takes longer to begin.
#[inline]
fn contains(path: &[u8], byte: u8) -> bool {
    let mut found = false;
    for other in path {
        found |= *other == byte;
    }
    found
}

fn without_slashes(path: &[u8]) -> &[u8] {
    let start = path.iter().position(|byte| *byte != b'/').unwrap_or(path.len());
    &path[start..]
}
