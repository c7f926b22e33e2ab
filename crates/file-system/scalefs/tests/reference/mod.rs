//! A plain reference of the calls on names and directories for one superuser: maps, one call at a time. And the calls as
//! values, to be drawn, made on ScaleFS, and compared.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hash::Hash;
use std::rc::Rc;

use percpu::Core;
use proptest::prelude::*;
use scalefs::attributes::{self, Access};
use scalefs::directories;
use scalefs::names::{self, RenameMode};
use scalefs::{Context, Errno, Fields, Follow, Kind, ObjectOperations, OpenFlags, OpenNode, ScaleFs, Start};
use sync::Spin;

/// One call with its arguments; paths are relative to the caller's working directory, at first the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Opens and closes.
    Open(String, OpenFlags),
    MakeDirectory(String),
    RemoveDirectory(String),
    Symlink(String, String),
    ReadLink(String),
    Link(String, String, Follow),
    Unlink(String),
    Rename(String, String, RenameMode),
    Stat(String, Follow),
    Access(String),
    /// By calls that tell so many names each, `.` and `..` among them.
    List(String, usize),
    ChangeDirectory(String),
    WorkingDirectory,
    /// Opens a directory, and holds it in place of the one before; at first that is the root.
    Hold(String),
    /// A call whose first path starts at the directory that the caller holds (`openat` and its like).
    At(Box<Call>),
}

pub fn create_new() -> OpenFlags {
    OpenFlags::CREATE | OpenFlags::EXCLUSIVE
}

/// What a call returns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    Done,
    Status { file: u64, kind: u8, links: u32 },
    Text(String),
    Names(Vec<(String, u8)>),
}

pub type Outcome = Result<Answer, Errno>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Object {
    File { links: u32 },
    Directory { names: BTreeMap<String, u64>, parent: u64, links: u32 },
    Symlink { target: String, links: u32 },
}

/// Objects by numbers from 1, which is the root. A removed directory stays, without a link: a walk may be in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reference {
    pub objects: BTreeMap<u64, Object>,
    pub made: u64,
    /// Working directories of callers that have left the root.
    pub working: BTreeMap<usize, u64>,
    /// What callers hold, if not the root.
    pub held: BTreeMap<usize, u64>,
}

pub const ROOT: u64 = 1;

impl Default for Reference {
    fn default() -> Reference {
        let root = Object::Directory { names: BTreeMap::new(), parent: ROOT, links: 1 };
        let objects = BTreeMap::from([(ROOT, root)]);
        Reference { objects, made: ROOT, working: BTreeMap::new(), held: BTreeMap::new() }
    }
}

/// How far the walk along a path has come: in a directory, what is left of the path, and how many symbolic links may
/// still be followed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Route {
    pub directory: u64,
    pub rest: String,
    pub symlinks_left: u32,
}

impl Route {
    fn new(directory: u64, path: &str) -> Route {
        Route { directory, rest: path.to_string(), symlinks_left: 40 }
    }
}

impl Call {
    /// What is called, whatever its first path starts at.
    pub fn inner(&self) -> &Call {
        if let Call::At(inner) = self { inner } else { self }
    }

    /// The walks along its paths, which have not begun, from a working directory and one that is held.
    fn routes(&self, working: u64, held: u64) -> Vec<Route> {
        let route = |path: &String| Route::new(working, path);
        match self {
            Call::At(inner) => {
                let mut routes = inner.routes(working, held);
                routes[0].directory = held;
                routes
            }
            Call::Link(old, new, _) | Call::Rename(old, new, _) => vec![route(old), route(new)],
            Call::WorkingDirectory => Vec::new(),
            Call::Open(path, _)
            | Call::MakeDirectory(path)
            | Call::RemoveDirectory(path)
            | Call::Symlink(_, path)
            | Call::ReadLink(path)
            | Call::Unlink(path)
            | Call::Stat(path, _)
            | Call::Access(path)
            | Call::ChangeDirectory(path)
            | Call::Hold(path)
            | Call::List(path, _) => vec![route(path)],
        }
    }
}

/// The end of a path: in a directory, a name (or dots), and whether a slash follows.
struct Place {
    directory: u64,
    name: String,
    has_slash: bool,
}

impl Reference {
    pub fn names(&self, directory: u64) -> Option<&BTreeMap<String, u64>> {
        match &self.objects[&directory] {
            Object::Directory { names, .. } => Some(names),
            _ => None,
        }
    }

    fn names_mut(&mut self, directory: u64) -> &mut BTreeMap<String, u64> {
        match self.objects.get_mut(&directory) {
            Some(Object::Directory { names, .. }) => names,
            _ => panic!("a directory"),
        }
    }

    fn parent(&self, directory: u64) -> u64 {
        match self.objects[&directory] {
            Object::Directory { parent, .. } => parent,
            _ => panic!("a directory"),
        }
    }

    pub fn is_directory(&self, object: u64) -> bool {
        matches!(self.objects[&object], Object::Directory { .. })
    }

    fn is_removed(&self, directory: u64) -> bool {
        matches!(self.objects[&directory], Object::Directory { links: 0, .. })
    }

    pub fn look_up(&self, directory: u64, name: &str) -> Result<u64, Errno> {
        match name {
            "" | "." => Ok(directory),
            ".." => Ok(self.parent(directory)),
            _ if name.len() > 255 && self.is_directory(directory) && self.is_removed(directory) => Err(Errno::ENOENT),
            _ if name.len() > 255 => Err(Errno::ENAMETOOLONG),
            _ => self.names(directory).ok_or(Errno::ENOTDIR)?.get(name).copied().ok_or(Errno::ENOENT),
        }
    }

    /// Where a path ends, starting in a directory, with `links` symbolic links left to follow.
    fn locate(&self, directory: u64, path: &str, links: &mut u32) -> Result<Place, Errno> {
        if path.is_empty() {
            return Err(Errno::ENOENT);
        }
        if path.len() > 4095 {
            return Err(Errno::ENAMETOOLONG);
        }
        let mut directory = if path.starts_with('/') { ROOT } else { directory };
        let has_slash = path.ends_with('/');
        let components: Vec<&str> = path.split('/').filter(|component| !component.is_empty()).collect();
        let Some((last, before)) = components.split_last() else {
            return Ok(Place { directory, name: String::new(), has_slash });
        };
        for component in before {
            let object = self.look_up(directory, component)?;
            directory = self.follow(directory, object, links)?;
            if !self.is_directory(directory) {
                return Err(Errno::ENOTDIR);
            }
        }
        Ok(Place { directory, name: (*last).to_string(), has_slash })
    }

    /// What an object in a directory stands for, symbolic links followed.
    fn follow(&self, directory: u64, object: u64, links: &mut u32) -> Result<u64, Errno> {
        let Object::Symlink { target, .. } = &self.objects[&object] else { return Ok(object) };
        *links = links.checked_sub(1).ok_or(Errno::ELOOP)?;
        let place = self.locate(directory, target, links)?;
        let object = self.look_up(place.directory, &place.name)?;
        let object = self.follow(place.directory, object, links)?;
        if place.has_slash && !self.is_directory(object) { Err(Errno::ENOTDIR) } else { Ok(object) }
    }

    fn resolve(&self, route: &Route, follow: Follow) -> Result<u64, Errno> {
        let mut links = route.symlinks_left;
        let place = self.locate(route.directory, &route.rest, &mut links)?;
        let mut object = self.look_up(place.directory, &place.name)?;
        if follow == Follow::Symlinks || place.has_slash {
            object = self.follow(place.directory, object, &mut links)?;
        }
        if place.has_slash && !self.is_directory(object) { Err(Errno::ENOTDIR) } else { Ok(object) }
    }

    fn place(&self, route: &Route) -> Result<Place, Errno> {
        self.locate(route.directory, &route.rest, &mut route.symlinks_left.clone())
    }

    fn links_mut(&mut self, object: u64) -> &mut u32 {
        match self.objects.get_mut(&object) {
            Some(Object::File { links } | Object::Directory { links, .. } | Object::Symlink { links, .. }) => links,
            None => panic!("an object"),
        }
    }

    fn make(&mut self, place: &Place, object: Object) {
        self.made += 1;
        self.objects.insert(self.made, object);
        let made = self.made;
        self.names_mut(place.directory).insert(place.name.clone(), made);
    }

    /// For what must not exist: an error if it does, or if it cannot.
    fn check_new(&self, place: &Place, is_directory: bool) -> Result<(), Errno> {
        if is_dots(&place.name) {
            return Err(Errno::EEXIST);
        }
        match self.look_up(place.directory, &place.name) {
            Ok(_) => Err(Errno::EEXIST),
            Err(Errno::ENOENT) if !is_directory && place.has_slash => Err(Errno::ENOENT),
            Err(Errno::ENOENT) if self.is_removed(place.directory) => Err(Errno::ENOENT),
            Err(Errno::ENOENT) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    fn drop_name(&mut self, directory: u64, name: &str) {
        if let Some(object) = self.names_mut(directory).remove(name) {
            self.drop_link(object);
        }
    }

    fn drop_link(&mut self, object: u64) {
        let links = self.links_mut(object);
        *links -= 1;
        if *links == 0 && !self.is_directory(object) {
            self.objects.remove(&object);
        }
    }

    fn is_above(&self, object: u64, mut directory: u64) -> bool {
        while directory != object && directory != ROOT {
            directory = self.parent(directory);
        }
        directory == object
    }

    fn open(&mut self, route: &Route, flags: OpenFlags) -> Outcome {
        let create = flags.contains(OpenFlags::CREATE);
        let exclusive = create && flags.contains(OpenFlags::EXCLUSIVE);
        let writes = flags.contains(OpenFlags::WRITE);
        if create && flags.contains(OpenFlags::DIRECTORY) {
            return Err(Errno::EINVAL);
        }
        let follow = if flags.contains(OpenFlags::NO_FOLLOW) { Follow::Nothing } else { Follow::Symlinks };
        let object = if create {
            let mut links = route.symlinks_left;
            let mut place = self.locate(route.directory, &route.rest, &mut links)?;
            loop {
                if is_dots(&place.name) {
                    return Err(if exclusive { Errno::EEXIST } else { Errno::EISDIR });
                }
                if place.has_slash {
                    return Err(Errno::EISDIR);
                }
                match self.look_up(place.directory, &place.name) {
                    Ok(_) if exclusive => return Err(Errno::EEXIST),
                    Ok(object) => match &self.objects[&object] {
                        Object::Symlink { target, .. } if follow == Follow::Symlinks => {
                            links = u32::checked_sub(links, 1).ok_or(Errno::ELOOP)?;
                            place = self.locate(place.directory, target, &mut links)?;
                        }
                        _ => break object,
                    },
                    Err(Errno::ENOENT) if !self.is_removed(place.directory) => {
                        self.make(&place, Object::File { links: 1 });
                        return Ok(Answer::Done);
                    }
                    Err(errno) => return Err(errno),
                }
            }
        } else {
            self.resolve(route, follow)?
        };
        match self.objects[&object] {
            Object::Directory { .. } if create || writes => Err(Errno::EISDIR),
            Object::Directory { .. } => Ok(Answer::Done),
            _ if flags.contains(OpenFlags::DIRECTORY) => Err(Errno::ENOTDIR),
            Object::Symlink { .. } => Err(Errno::ELOOP),
            Object::File { .. } => Ok(Answer::Done),
        }
    }

    fn rename(&mut self, old: &Route, new: &Route, mode: RenameMode) -> Outcome {
        let (from, to) = (self.place(old)?, self.place(new)?);
        if is_dots(&from.name) {
            return Err(Errno::EBUSY);
        }
        if is_dots(&to.name) {
            return Err(if mode == RenameMode::NoReplace { Errno::EEXIST } else { Errno::EBUSY });
        }
        let moved = self.look_up(from.directory, &from.name)?;
        let replaced = match self.look_up(to.directory, &to.name) {
            Ok(object) => Some(object),
            Err(Errno::ENOENT) if !self.is_removed(to.directory) => None,
            Err(errno) => return Err(errno),
        };
        match (mode, replaced) {
            (RenameMode::NoReplace, Some(_)) => return Err(Errno::EEXIST),
            (RenameMode::Exchange, None) => return Err(Errno::ENOENT),
            (RenameMode::Exchange, Some(other)) if to.has_slash && !self.is_directory(other) => {
                return Err(Errno::ENOTDIR);
            }
            _ => {}
        }
        let slash = from.has_slash || (to.has_slash && mode != RenameMode::Exchange);
        if slash && !self.is_directory(moved) {
            return Err(Errno::ENOTDIR);
        }
        if from.directory != to.directory {
            if self.is_directory(moved) && self.is_above(moved, to.directory) {
                return Err(Errno::EINVAL);
            }
            if replaced.is_some_and(|other| self.is_above(other, from.directory)) {
                return Err(if mode == RenameMode::Exchange { Errno::EINVAL } else { Errno::ENOTEMPTY });
            }
        }
        if replaced == Some(moved) {
            return Ok(Answer::Done);
        }
        if let (Some(other), true) = (replaced, mode != RenameMode::Exchange) {
            match (self.is_directory(moved), self.is_directory(other)) {
                (true, false) => return Err(Errno::ENOTDIR),
                (false, true) => return Err(Errno::EISDIR),
                (true, true) if !self.names(other).unwrap().is_empty() => return Err(Errno::ENOTEMPTY),
                _ => {}
            }
        }
        self.names_mut(from.directory).remove(&from.name);
        self.names_mut(to.directory).insert(to.name.clone(), moved);
        self.set_parent(moved, to.directory);
        match (mode, replaced) {
            (RenameMode::Exchange, Some(other)) => {
                self.names_mut(from.directory).insert(from.name.clone(), other);
                self.set_parent(other, from.directory);
            }
            (_, Some(other)) => self.drop_link(other),
            (_, None) => {}
        }
        Ok(Answer::Done)
    }

    fn set_parent(&mut self, object: u64, directory: u64) {
        if let Some(Object::Directory { parent, .. }) = self.objects.get_mut(&object) {
            *parent = directory;
        }
    }

    pub fn kind(&self, object: u64) -> u8 {
        match self.objects[&object] {
            Object::File { .. } => Kind::Regular as u8,
            Object::Directory { .. } => Kind::Directory as u8,
            Object::Symlink { .. } => Kind::Symlink as u8,
        }
    }

    pub fn call(&mut self, call: &Call) -> Outcome {
        self.call_from(0, call, &self.routes(0, call))
    }

    /// The walks of a caller's call, which have not begun.
    pub fn routes(&self, caller: usize, call: &Call) -> Vec<Route> {
        call.routes(self.working_directory(caller), self.held.get(&caller).copied().unwrap_or(ROOT))
    }

    /// What is left of a call whose walks have come so far, at one moment.
    pub fn call_from(&mut self, caller: usize, call: &Call, routes: &[Route]) -> Outcome {
        let Some(route) = routes.first() else {
            return self.path_of(self.working_directory(caller)).map(Answer::Text);
        };
        match call {
            Call::WorkingDirectory => unreachable!("a call without a path"),
            Call::At(inner) => self.call_from(caller, inner, routes),
            Call::Hold(_) => {
                let directory = self.directory(route)?;
                self.held.insert(caller, directory);
                Ok(Answer::Done)
            }
            Call::ChangeDirectory(_) => {
                let directory = self.directory(route)?;
                self.working.insert(caller, directory);
                Ok(Answer::Done)
            }
            Call::Open(_, flags) => self.open(route, *flags),
            Call::MakeDirectory(_) => {
                let place = self.place(route)?;
                self.check_new(&place, true)?;
                let parent = place.directory;
                self.make(&place, Object::Directory { names: BTreeMap::new(), parent, links: 1 });
                Ok(Answer::Done)
            }
            Call::RemoveDirectory(_) => {
                let place = self.place(route)?;
                match place.name.as_str() {
                    "" => return Err(Errno::EBUSY),
                    "." => return Err(Errno::EINVAL),
                    ".." => return Err(Errno::ENOTEMPTY),
                    _ => {}
                }
                let object = self.look_up(place.directory, &place.name)?;
                if !self.names(object).ok_or(Errno::ENOTDIR)?.is_empty() {
                    return Err(Errno::ENOTEMPTY);
                }
                self.drop_name(place.directory, &place.name);
                Ok(Answer::Done)
            }
            Call::Symlink(target, _) => {
                if target.is_empty() {
                    return Err(Errno::ENOENT);
                }
                let place = self.place(route)?;
                self.check_new(&place, false)?;
                self.make(&place, Object::Symlink { target: target.clone(), links: 1 });
                Ok(Answer::Done)
            }
            Call::ReadLink(_) => match &self.objects[&self.resolve(route, Follow::Nothing)?] {
                Object::Symlink { target, .. } => Ok(Answer::Text(target.clone())),
                _ => Err(Errno::EINVAL),
            },
            Call::Link(_, _, follow) => {
                let object = self.resolve(route, *follow)?;
                let place = self.place(&routes[1])?;
                self.check_new(&place, false)?;
                if self.is_directory(object) {
                    return Err(Errno::EPERM);
                }
                self.names_mut(place.directory).insert(place.name, object);
                *self.links_mut(object) += 1;
                Ok(Answer::Done)
            }
            Call::Unlink(_) => {
                let place = self.place(route)?;
                if is_dots(&place.name) {
                    return Err(Errno::EISDIR);
                }
                let object = self.look_up(place.directory, &place.name)?;
                if self.is_directory(object) {
                    return Err(Errno::EISDIR);
                }
                if place.has_slash {
                    return Err(Errno::ENOTDIR);
                }
                self.drop_name(place.directory, &place.name);
                Ok(Answer::Done)
            }
            Call::Rename(_, _, mode) => self.rename(route, &routes[1], *mode),
            Call::Stat(_, follow) => {
                let file = self.resolve(route, *follow)?;
                let links = *self.clone().links_mut(file);
                Ok(Answer::Status { file, kind: self.kind(file), links })
            }
            Call::Access(_) => self.resolve(route, Follow::Symlinks).map(|_| Answer::Done),
            Call::List(..) => {
                let names = self.names(self.directory(route)?).expect("a directory");
                Ok(Answer::Names(names.iter().map(|(name, object)| (name.clone(), self.kind(*object))).collect()))
            }
        }
    }

    pub fn working_directory(&self, caller: usize) -> u64 {
        self.working.get(&caller).copied().unwrap_or(ROOT)
    }

    fn path_of(&self, directory: u64) -> Result<String, Errno> {
        if self.is_removed(directory) {
            return Err(Errno::ENOENT);
        }
        let (mut current, mut path) = (directory, String::new());
        while current != ROOT {
            let parent = self.parent(current);
            let mut names = self.names(parent).expect("a directory").iter();
            let (name, _) = names.find(|(_, object)| **object == current).expect("a name of its own");
            path = format!("/{name}{path}");
            current = parent;
        }
        Ok(if path.is_empty() { "/".to_string() } else { path })
    }

    /// The directory that a path leads to.
    pub fn directory(&self, route: &Route) -> Result<u64, Errno> {
        let object = self.resolve(route, Follow::Symlinks)?;
        if self.is_directory(object) { Ok(object) } else { Err(Errno::ENOTDIR) }
    }
}

fn is_dots(name: &str) -> bool {
    matches!(name, "" | "." | "..")
}

/// A process that calls ScaleFS, and the directory that it holds, if not the root.
pub struct Caller<'a> {
    pub context: &'a Context,
    held: RefCell<Option<Rc<OpenNode>>>,
}

impl<'a> Caller<'a> {
    pub fn new(context: &'a Context) -> Caller<'a> {
        Caller { context, held: RefCell::new(None) }
    }

    /// What it holds.
    pub fn held(&self) -> Option<Rc<OpenNode>> {
        self.held.borrow().clone()
    }

    fn hold<V: ObjectOperations<Handle = OpenNode>>(&self, verbs: &V, directory: Option<OpenNode>) {
        if let Some(before) = self.held.replace(directory.map(Rc::new)) {
            names::close(verbs, Rc::into_inner(before).expect("no call uses it"));
        }
    }

    /// Gives up what it holds.
    pub fn let_go(&self, fs: &ScaleFs, core: &Core) {
        self.hold(&fs.begin(core, self.context, &Spin), None);
    }
}

/// Where the first path of a call starts.
pub fn start<'v, V: ObjectOperations>(verbs: &'v V, held: Option<&'v V::Handle>, call: &Call) -> Start<V::Node<'v>> {
    let held = || held.map_or_else(|| verbs.root(), |held| verbs.held(held));
    if let Call::At(_) = call { Start::Handle(held()) } else { Start::WorkingDirectory }
}

/// The same call on ScaleFS; `stat` returns the inode's number.
pub fn call(fs: &ScaleFs, core: &Core, caller: &Caller, call: &Call) -> Outcome {
    let verbs = fs.begin(core, caller.context, &Spin);
    let held = caller.held();
    let (at, there) = (start(&verbs, held.as_deref(), call), Start::WorkingDirectory);
    let done = |()| Answer::Done;
    match call.inner() {
        Call::Open(path, flags) => names::open(&verbs, at, path.as_bytes(), *flags, 0o644)
            .map(|opened| names::close(&verbs, opened.handle))
            .map(done),
        Call::MakeDirectory(path) => directories::make_directory(&verbs, at, path.as_bytes(), 0o755).map(done),
        Call::RemoveDirectory(path) => directories::remove_directory(&verbs, at, path.as_bytes()).map(done),
        Call::Symlink(target, path) => names::symlink(&verbs, target.as_bytes(), at, path.as_bytes()).map(done),
        Call::ReadLink(path) => names::read_link(&verbs, at, path.as_bytes())
            .map(|target| Answer::Text(String::from_utf8(target.to_vec()).unwrap())),
        Call::Link(old, new, follow) => {
            names::link(&verbs, (at, old.as_bytes()), (there, new.as_bytes()), *follow).map(done)
        }
        Call::Unlink(path) => names::unlink(&verbs, at, path.as_bytes()).map(done),
        Call::Rename(old, new, mode) => {
            names::rename(&verbs, (at, old.as_bytes()), (there, new.as_bytes()), *mode).map(done)
        }
        Call::Stat(path, follow) => attributes::stat(&verbs, at, path.as_bytes(), *follow, Fields::LINK_COUNT)
            .map(|status| Answer::Status { file: status.number.0, kind: status.kind as u8, links: status.link_count }),
        Call::Access(path) => {
            attributes::access(&verbs, at, path.as_bytes(), Follow::Symlinks, Access::EXISTS).map(done)
        }
        Call::ChangeDirectory(path) => directories::change_directory(&verbs, at, path.as_bytes()).map(done),
        Call::WorkingDirectory => directories::working_directory_path(&verbs, &mut [0; 4096])
            .map(|path| Answer::Text(String::from_utf8(path.to_vec()).unwrap())),
        Call::Hold(path) => {
            let opened = open_directory(&verbs, at, path)?;
            drop(held);
            caller.hold(&verbs, Some(opened));
            Ok(Answer::Done)
        }
        Call::At(_) => unreachable!("a start within a start"),
        Call::List(path, most) => {
            let directory = open_directory(&verbs, at, path)?;
            let (mut listed, mut from) = (Vec::new(), Some(0));
            while let Some(cookie) = from {
                from = tell(&verbs, verbs.held(&directory), cookie, *most, |name, kind| listed.push((name, kind)));
            }
            names::close(&verbs, directory);
            listed.sort();
            Ok(Answer::Names(listed))
        }
    }
}

/// The first part of a listing on ScaleFS.
pub fn open_directory<'v, V: ObjectOperations>(
    verbs: &'v V,
    start: Start<V::Node<'v>>,
    path: &str,
) -> Result<V::Handle, Errno> {
    let flags = OpenFlags::READ | OpenFlags::DIRECTORY;
    Ok(names::open(verbs, start, path.as_bytes(), flags, 0)?.handle)
}

/// Another part: tells at most so many names, but for dots, of an open directory from a cookie on, and their kinds. Returns
/// the cookie of the next part, if there is one.
pub fn tell<'v, V: ObjectOperations>(
    verbs: &'v V,
    directory: V::Node<'v>,
    from: u64,
    most: usize,
    mut each: impl FnMut(String, u8),
) -> Option<u64> {
    let mut told = 0;
    let next = directories::read_directory(verbs, directory, from, |entry| {
        let name = String::from_utf8(entry.name.to_vec()).unwrap();
        if !is_dots(&name) {
            each(name, entry.kind as u8);
        }
        told += 1;
        told < most
    });
    next.expect("a directory")
}

/// Numbers of two systems, which must correspond one to one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bijection {
    there: BTreeMap<u64, u64>,
    back: BTreeMap<u64, u64>,
}

impl Bijection {
    /// Whether both outcomes are the same up to the numbers of files.
    pub fn same(&mut self, ours: &Outcome, theirs: &Outcome) -> bool {
        match (ours, theirs) {
            (
                Ok(Answer::Status { file: our_file, kind: our_kind, links: our_links }),
                Ok(Answer::Status { file: their_file, kind: their_kind, links: their_links }),
            ) => {
                *self.there.entry(*our_file).or_insert(*their_file) == *their_file
                    && *self.back.entry(*their_file).or_insert(*our_file) == *our_file
                    && (our_kind, our_links) == (their_kind, their_links)
            }
            (ours, theirs) => ours == theirs,
        }
    }
}

/// A path of so many names, and some bad ones.
pub fn any_path(name_count: u8) -> impl Strategy<Value = String> {
    let name = move || {
        prop_oneof![
            30 => (0..name_count).prop_map(|number| format!("n{number}")),
            1 => Just(".".to_string()),
            2 => Just("..".to_string()),
            1 => Just("x".repeat(255)),
            1 => Just("x".repeat(256)),
        ]
    };
    let components =
        prop_oneof![4 => proptest::collection::vec(name(), 1..2), 3 => proptest::collection::vec(name(), 2..4)];
    (components, 0..24_u8).prop_map(|(components, extra)| match extra {
        0 => String::new(),
        1 => "/".to_string(),
        2 => format!("/{}", components.join("/")),
        3 | 4 => format!("{}/", components.join("/")),
        5 => components.join("//"),
        _ => components.join("/"),
    })
}

/// A call on paths of so many names.
pub fn any_call(name_count: u8) -> impl Strategy<Value = Call> {
    let any_path = move || any_path(name_count);
    let flags = prop_oneof![
        2 => Just(OpenFlags::READ),
        4 => Just(OpenFlags::CREATE | OpenFlags::WRITE),
        3 => Just(OpenFlags::CREATE | OpenFlags::EXCLUSIVE),
        1 => Just(OpenFlags::READ | OpenFlags::DIRECTORY),
        1 => Just(OpenFlags::CREATE | OpenFlags::NO_FOLLOW),
        1 => Just(OpenFlags::WRITE | OpenFlags::NO_FOLLOW),
        1 => Just(OpenFlags::CREATE | OpenFlags::DIRECTORY),
    ];
    let mode =
        prop_oneof![4 => Just(RenameMode::Replace), 1 => Just(RenameMode::NoReplace), 2 => Just(RenameMode::Exchange)];
    let follow = || prop_oneof![Just(Follow::Symlinks), Just(Follow::Nothing)];
    let call = prop_oneof![
        4 => (any_path(), flags).prop_map(|(path, flags)| Call::Open(path, flags)),
        4 => any_path().prop_map(Call::MakeDirectory),
        2 => any_path().prop_map(Call::RemoveDirectory),
        2 => (any_path(), any_path()).prop_map(|(target, path)| Call::Symlink(target, path)),
        1 => any_path().prop_map(Call::ReadLink),
        2 => (any_path(), any_path(), follow()).prop_map(|(old, new, follow)| Call::Link(old, new, follow)),
        2 => any_path().prop_map(Call::Unlink),
        5 => (any_path(), any_path(), mode).prop_map(|(old, new, mode)| Call::Rename(old, new, mode)),
        2 => (any_path(), follow()).prop_map(|(path, follow)| Call::Stat(path, follow)),
        1 => any_path().prop_map(Call::Access),
        1 => (any_path(), 1..6_usize).prop_map(|(path, most)| Call::List(path, most)),
        1 => any_path().prop_map(Call::ChangeDirectory),
    ];
    prop_oneof![
        24 => call.clone(),
        8 => call.prop_map(|call| Call::At(Box::new(call))),
        2 => any_path().prop_map(Call::Hold),
        1 => Just(Call::WorkingDirectory),
    ]
}
