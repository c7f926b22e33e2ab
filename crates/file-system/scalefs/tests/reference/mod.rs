//! The calls on names and directories as values, to be drawn, made on ScaleFS and on crate `plain`, and compared.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hash::Hash;
use std::rc::Rc;

use percpu::Core;
use plain::{Plain, Process};
use proptest::prelude::*;
use scalefs::attributes::{self, Access};
use scalefs::directories;
use scalefs::names::{self, RenameMode};
use scalefs::{Context, Credentials, Errno, Fields, Follow, ObjectOperations, OpenFlags, OpenNode, ScaleFs, Start};
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

pub const ROOT: u64 = 1;

/// Callers that a test has at most.
const CALLERS: usize = 4;

/// Crate `plain`, with a process for each caller. Its directories are kept for ever: a walk may be in a removed one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reference {
    state: Plain,
    callers: Vec<Process>,
    /// By number.
    pub directories: BTreeMap<u64, plain::OpenNode>,
    /// What callers hold, if not the root.
    held: BTreeMap<usize, u64>,
}

impl Default for Reference {
    fn default() -> Reference {
        let state = Plain::default();
        let callers: Vec<Process> = (0..CALLERS).map(|_| Process::new(&state, Credentials::SUPERUSER)).collect();
        let root = {
            let call = state.begin(&callers[0]);
            call.retain(call.root()).unwrap()
        };
        Reference { state, callers, directories: BTreeMap::from([(ROOT, root)]), held: BTreeMap::new() }
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

impl Call {
    /// What is called, whatever its first path starts at.
    pub fn inner(&self) -> &Call {
        if let Call::At(inner) = self { inner } else { self }
    }

    /// Its paths.
    pub fn paths(&self) -> Vec<&str> {
        match self {
            Call::At(inner) => inner.paths(),
            Call::Link(old, new, _) | Call::Rename(old, new, _) => vec![old, new],
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
            | Call::List(path, _) => vec![path],
        }
    }
}

pub fn number_of<'v, V: ObjectOperations>(objects: &'v V, node: V::Node<'v>) -> u64 {
    objects.attributes(node, Fields::IDENTITY).map_err(Into::<Errno>::into).unwrap().number.0
}

impl Reference {
    /// A call for looking at what there is.
    pub fn looking(&self) -> plain::Call<'_> {
        self.state.begin(&self.callers[0])
    }

    pub fn call(&mut self, call: &Call) -> Outcome {
        self.call_from(0, call, &self.routes(0, call))
    }

    /// The walks of a caller's call, which have not begun.
    pub fn routes(&self, caller: usize, call: &Call) -> Vec<Route> {
        let working = self.state.begin(&self.callers[caller]);
        let working = number_of(&working, working.working_directory());
        let held = self.held.get(&caller).copied().unwrap_or(ROOT);
        let from = |place| if place == 0 && matches!(call, Call::At(_)) { held } else { working };
        let route =
            |(place, path): (usize, &str)| Route { directory: from(place), rest: path.into(), symlinks_left: 40 };
        call.paths().into_iter().enumerate().map(route).collect()
    }

    /// What is left of a call whose walks have come so far, at one moment.
    pub fn call_from(&mut self, caller: usize, call: &Call, routes: &[Route]) -> Outcome {
        if let Call::Hold(_) = call.inner() {
            let directory = self.directory(&routes[0])?;
            self.held.insert(caller, directory);
            return Ok(Answer::Done);
        }
        let made = self.state.begin(&self.callers[caller]);
        let path = |place: usize| match routes.get(place) {
            Some(Route { directory, rest, .. }) => {
                (Start::Handle(made.held(&self.directories[directory])), rest.as_str())
            }
            None => (Start::WorkingDirectory, ""),
        };
        let outcome = make(&made, call.inner(), path(0), path(1));
        if let (Call::MakeDirectory(_), Ok(_)) = (call.inner(), &outcome) {
            let (start, path) = path(0);
            let kept = open_directory(&made, start, path).expect("made just now");
            let number = number_of(&made, made.held(&kept));
            self.directories.insert(number, kept);
        }
        outcome
    }

    /// The directory that a path leads to.
    pub fn directory(&self, route: &Route) -> Result<u64, Errno> {
        let call = self.looking();
        let start = Start::Handle(call.held(&self.directories[&route.directory]));
        let opened = open_directory(&call, start, &route.rest)?;
        let number = number_of(&call, call.held(&opened));
        names::close(&call, opened);
        Ok(number)
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

/// The same call on ScaleFS.
pub fn call(fs: &ScaleFs, core: &Core, caller: &Caller, call: &Call) -> Outcome {
    let verbs = fs.begin(core, caller.context, &Spin);
    let held = caller.held();
    let at = start(&verbs, held.as_deref(), call);
    let paths = call.paths();
    let path = |place: usize| paths.get(place).copied().unwrap_or("");
    if let Call::Hold(_) = call.inner() {
        let opened = open_directory(&verbs, at, path(0))?;
        drop(held);
        caller.hold(&verbs, Some(opened));
        return Ok(Answer::Done);
    }
    make(&verbs, call.inner(), (at, path(0)), (Start::WorkingDirectory, path(1)))
}

/// Makes a call on any file system, from these starts along these paths; `stat` returns the inode's number.
pub fn make<'v, V: ObjectOperations>(
    objects: &'v V,
    call: &Call,
    (at, first): (Start<V::Node<'v>>, &str),
    (there, second): (Start<V::Node<'v>>, &str),
) -> Outcome {
    let (first, second) = (first.as_bytes(), second.as_bytes());
    let done = |()| Answer::Done;
    match call {
        Call::Open(_, flags) => {
            names::open(objects, at, first, *flags, 0o644).map(|opened| names::close(objects, opened.handle)).map(done)
        }
        Call::MakeDirectory(_) => directories::make_directory(objects, at, first, 0o755).map(done),
        Call::RemoveDirectory(_) => directories::remove_directory(objects, at, first).map(done),
        Call::Symlink(target, _) => names::symlink(objects, target.as_bytes(), at, first).map(done),
        Call::ReadLink(_) => names::read_link(objects, at, first)
            .map(|target| Answer::Text(String::from_utf8(target.as_ref().to_vec()).unwrap())),
        Call::Link(_, _, follow) => names::link(objects, (at, first), (there, second), *follow).map(done),
        Call::Unlink(_) => names::unlink(objects, at, first).map(done),
        Call::Rename(_, _, mode) => names::rename(objects, (at, first), (there, second), *mode).map(done),
        Call::Stat(_, follow) => attributes::stat(objects, at, first, *follow, Fields::LINK_COUNT)
            .map(|status| Answer::Status { file: status.number.0, kind: status.kind as u8, links: status.link_count }),
        Call::Access(_) => attributes::access(objects, at, first, Follow::Symlinks, Access::EXISTS).map(done),
        Call::ChangeDirectory(_) => directories::change_directory(objects, at, first).map(done),
        Call::WorkingDirectory => directories::working_directory_path(objects, &mut [0; 4096])
            .map(|path| Answer::Text(String::from_utf8(path.to_vec()).unwrap())),
        Call::List(_, most) => {
            let directory = open_directory(objects, at, std::str::from_utf8(first).unwrap())?;
            let (mut listed, mut from) = (Vec::new(), Some(0));
            while let Some(cookie) = from {
                from = tell(objects, objects.held(&directory), cookie, *most, |name, kind| listed.push((name, kind)));
            }
            names::close(objects, directory);
            listed.sort();
            Ok(Answer::Names(listed))
        }
        Call::Hold(_) | Call::At(_) => unreachable!("the caller's own"),
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
    let call = call_on(any_path);
    let call_at = call_on(any_path).prop_map(|call| Call::At(Box::new(call)));
    prop_oneof![
        24 => call,
        8 => call_at,
        2 => any_path().prop_map(Call::Hold),
        1 => Just(Call::WorkingDirectory),
    ]
}

/// A call on paths that are drawn so, from the working directory on.
fn call_on<P: Strategy<Value = String> + 'static>(any_path: impl Fn() -> P) -> impl Strategy<Value = Call> {
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
    prop_oneof![
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
    ]
}
