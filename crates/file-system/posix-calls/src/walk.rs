//! Paths: from a start to the directory and the last component, and on to what it leads to.
//!
//! Linux: `path_init`, `link_path_walk`, `walk_component`, `pick_link` (fs/namei.c), and their order of checks: the right
//! to search a directory before the name in it, a name's length when it is looked up, at most 40 symbolic links.
//!
//! A walk writes nothing and locks nothing. It reads of each directory its table and the entry of one name; a user who is
//! not the superuser also reads who may search it. It is not atomic: a directory may move while a path goes through it,
//! as on Linux; the change at the end of the path is.

use core::ops::Range;

use sync::mutant::planted;

use crate::errno::Errno;
use crate::kind::Kind;
use crate::object_operations::ObjectOperations;
use crate::rights::Need;

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

/// Whether the caller has a permission (Linux: `inode_permission`, `generic_permission`).
#[inline(always)]
pub(crate) fn check_permission<'v, V: ObjectOperations>(
    objects: &'v V,
    node: V::Node<'v>,
    need: Need,
) -> Result<(), Errno> {
    if objects.credentials().is_superuser() {
        return need.check_superuser(objects.kind(node), || Ok(objects.permissions(node)?.mode));
    }
    if objects.permits(node, need)? { Ok(()) } else { Err(Errno::EACCES) }
}

/// Whether a path, or the target of a symbolic link, is the end of a walk or only on its way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    End,
    Middle,
}

/// A walk that has come to the last component of its path.
pub(crate) struct Walk<'v, 'p, V: ObjectOperations> {
    objects: &'v V,
    /// The directory in which the last component is.
    pub(crate) directory: V::Node<'v>,
    /// The last component of the path itself.
    pub(crate) last: Last<'p>,
    /// The target of the symbolic link at the end of the path that was followed last, and where its last component is.
    followed: Option<(V::LinkTarget<'v>, Range<usize>)>,
    /// Whether a slash follows the last component: it must be a directory.
    pub(crate) has_slash: bool,
    /// Symbolic links followed so far.
    symlinks: usize,
}

/// What a path leads to.
pub(crate) struct Resolved<'v, V: ObjectOperations + 'v> {
    pub(crate) node: V::Node<'v>,
    /// The name through which it was found; none for `.`, `..` and the root.
    pub(crate) found: Option<V::Found<'v>>,
}

/// A path as a user gives it: not empty, not too long, without NUL (Linux: `getname`).
#[inline]
pub(crate) fn check_path(path: &[u8]) -> Result<(), Errno> {
    match path.len() {
        0 => Err(Errno::ENOENT),
        length if length > MAX_PATH_BYTES && !planted("calls: paths have no limit") => Err(Errno::ENAMETOOLONG),
        _ if contains(path, 0) => Err(Errno::EINVAL),
        _ => Ok(()),
    }
}

/// The key of a name that is looked for in a directory. A removed directory has no names, and says so before it looks how
/// long this one is (Linux: `__lookup_slow`, `lookup_one_qstr_excl`, `lookup_open`).
#[inline(always)]
pub(crate) fn key_in<'v, 'n, V: ObjectOperations>(
    objects: &'v V,
    directory: V::Node<'v>,
    name: &'n [u8],
) -> Result<V::Key<'n>, Errno> {
    match objects.key(name) {
        Some(key) => Ok(key),
        None if objects.is_removed(directory)? && !planted("calls: names are measured before their directory") => {
            Err(Errno::ENOENT)
        }
        None => Err(Errno::ENAMETOOLONG),
    }
}

impl<'v, 'p, V: ObjectOperations> Walk<'v, 'p, V> {
    /// A walk that has not begun. It is filled where it lies: copying it on its way would cost as much as a lookup.
    #[inline]
    pub(crate) fn new(objects: &'v V) -> Walk<'v, 'p, V> {
        Walk { objects, directory: objects.root(), last: Last::Root, followed: None, has_slash: false, symlinks: 0 }
    }

    /// Walks to the last component.
    #[inline]
    pub(crate) fn go_to_last(&mut self, start: Start<V::Node<'v>>, path: &'p [u8]) -> Result<(), Errno> {
        check_path(path)?;
        self.directory = match start {
            _ if path[0] == b'/' => self.objects.root(),
            Start::WorkingDirectory => self.objects.working_directory(),
            Start::Handle(node) if self.objects.kind(node) == Kind::Directory => node,
            Start::Handle(_) => return Err(Errno::ENOTDIR),
        };
        if contains(path, b'/') {
            return self.run(path);
        }
        // One name, as most paths of a program that works in its directory.
        check_permission(self.objects, self.directory, Need::SEARCH)?;
        self.last = Last::of(path);
        Ok(())
    }

    /// Walks along the path to its last component.
    fn run(&mut self, path: &'p [u8]) -> Result<(), Errno> {
        let mut path = without_slashes(path);
        while !path.is_empty() {
            let (component, behind) = self.next_component(path)?;
            path = without_slashes(behind);
            let component = Last::of(component);
            if path.is_empty() {
                self.has_slash |= !behind.is_empty();
                self.last = component;
            } else if let Some(symlink) = self.step(component)? {
                self.follow(symlink, Part::Middle)?;
            }
        }
        Ok(())
    }

    /// Goes ahead on a path as far as can be told at once; then the next component, and what is behind it.
    #[inline(always)]
    fn next_component<'t>(&mut self, mut path: &'t [u8]) -> Result<(&'t [u8], &'t [u8]), Errno> {
        let (directory, passed) = self.objects.walk_ahead(self.directory, path)?;
        if passed > 0 {
            self.directory = directory;
            path = without_slashes(&path[passed..]);
        }
        check_permission(self.objects, self.directory, Need::SEARCH)?;
        let end = path.iter().position(|byte| *byte == b'/').unwrap_or(path.len());
        Ok(path.split_at(end))
    }

    /// Goes along a component that is not the last; returns the symbolic link that is there instead of a directory.
    #[inline(always)]
    fn step(&mut self, component: Last<'_>) -> Result<Option<V::Node<'v>>, Errno> {
        match component {
            Last::Dot | Last::Root => {}
            Last::DotDot => self.directory = self.objects.parent(self.directory)?,
            Last::Name(name) => {
                let key = key_in(self.objects, self.directory, name)?;
                let found = self.objects.look_up(self.directory, &key)?.ok_or(Errno::ENOENT)?;
                let node = self.objects.node(&found);
                match self.objects.kind(node) {
                    Kind::Directory => self.directory = node,
                    Kind::Symlink => return Ok(Some(node)),
                    _ => return Err(Errno::ENOTDIR),
                }
            }
        }
        Ok(None)
    }

    /// The last component of where [`Walk::resolve`] has come to, in `directory`.
    pub(crate) fn reached(&self) -> Last<'_> {
        if self.followed.is_some() { self.followed_last() } else { self.last }
    }

    /// Whether no symbolic link was followed.
    pub(crate) fn is_straight(&self) -> bool {
        self.symlinks == 0
    }

    /// Follows the symbolic link that the last component leads to, to the last component of what it stands for.
    pub(crate) fn follow_last(&mut self, symlink: V::Node<'v>) -> Result<(), Errno> {
        self.follow(symlink, Part::End)
    }

    /// The last component after [`Walk::follow_last`].
    pub(crate) fn followed_last(&self) -> Last<'_> {
        match &self.followed {
            Some((target, component)) if !component.is_empty() => Last::of(&target.as_ref()[component.clone()]),
            _ => Last::Root,
        }
    }

    /// Follows a symbolic link to the last component of its target, or through it. Links in a target nest; a target in which
    /// one was met is asked for again when that one has been followed, so that only one is at hand at a time.
    #[cold]
    fn follow(&mut self, symlink: V::Node<'v>, part: Part) -> Result<(), Errno> {
        // Of the links that are being followed, each in the target of the one before: how far their targets were walked.
        let mut under_way = [(symlink, 0); MAX_SYMLINKS];
        let mut depth = 0;
        self.count_symlink()?;
        loop {
            let (symlink, done) = under_way[depth];
            let target = self.objects.link_target(symlink)?;
            let path = target.as_ref();
            if done == 0 && path.first() == Some(&b'/') {
                self.directory = self.objects.root();
            }
            let mut nested = None;
            let mut rest = without_slashes(&path[done..]);
            while nested.is_none() && !rest.is_empty() {
                let (component, behind) = self.next_component(rest)?;
                rest = without_slashes(behind);
                if depth == 0 && part == Part::End && rest.is_empty() {
                    self.has_slash |= !behind.is_empty();
                    let end = path.len() - behind.len();
                    let component = end - component.len()..end;
                    self.followed = Some((target, component));
                    return Ok(());
                }
                nested = self.step(Last::of(component))?;
            }
            under_way[depth].1 = path.len() - rest.len();
            match nested {
                Some(symlink) => {
                    self.count_symlink()?;
                    depth += 1;
                    under_way[depth] = (symlink, 0);
                }
                None if depth > 0 => depth -= 1,
                None => {
                    if part == Part::End {
                        self.followed = Some((target, 0..0));
                    }
                    return Ok(());
                }
            }
        }
    }

    fn count_symlink(&mut self) -> Result<(), Errno> {
        self.symlinks += 1;
        if self.symlinks > MAX_SYMLINKS { Err(Errno::ELOOP) } else { Ok(()) }
    }

    /// What the path leads to.
    #[inline]
    pub(crate) fn resolve(&mut self, follow: Follow) -> Result<Resolved<'v, V>, Errno> {
        let objects = self.objects;
        let mut last = self.last;
        loop {
            let name = match last {
                Last::Dot | Last::Root => return Ok(Resolved { node: self.directory, found: None }),
                Last::DotDot => return Ok(Resolved { node: objects.parent(self.directory)?, found: None }),
                Last::Name(name) => name,
            };
            let key = key_in(objects, self.directory, name)?;
            let found = objects.look_up(self.directory, &key)?.ok_or(Errno::ENOENT)?;
            let node = objects.node(&found);
            let kind = objects.kind(node);
            if kind == Kind::Symlink && (follow == Follow::Symlinks || self.has_slash) {
                self.follow_last(node)?;
                last = self.followed_last();
            } else if self.has_slash && kind != Kind::Directory && !planted("calls: a slash may follow a file") {
                return Err(Errno::ENOTDIR);
            } else {
                return Ok(Resolved { node, found: Some(found) });
            }
        }
    }
}

/// What a path leads to.
pub(crate) fn resolve<'v, V: ObjectOperations>(
    objects: &'v V,
    start: Start<V::Node<'v>>,
    path: &[u8],
    follow: Follow,
) -> Result<Resolved<'v, V>, Errno> {
    let mut walk = Walk::new(objects);
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
