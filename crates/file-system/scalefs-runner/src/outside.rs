//! Set-up and observation: calls that are never recorded. They make what the calls under test find, and read back all that
//! a caller could tell.
//!
//! Files and pipes under construction are held by a process of their own, at descriptors that follow from the numbers
//! that the test gives them. A file has a name in a directory of their own until the set-up lets go of it.

use posix_calls::data::{self, DescriptorOptions, Whence};
use posix_calls::{
    DataOperations, Errno, Fields, Follow, Kind, NumberChoice, ObjectOperations, OnExec, OpenFlags, Start, StatusFlags,
};
use posix_calls::{attributes, directories};
use wire::value::Value;

use crate::calls;
use crate::subject::Subject;
use crate::surroundings::{SETUP_PROCESS, Surroundings};
use crate::tree_arguments;
use crate::values::{PAGE_BYTES, number, page, pages_of, status};

/// Where files are under construction.
pub const CONSTRUCTION: &str = "/construction";
/// Descriptors of tests are below this one.
const TEST_DESCRIPTORS: u32 = 512;
const FILES: u32 = TEST_DESCRIPTORS;
const PIPES: u32 = 2 * TEST_DESCRIPTORS;
/// Where a descriptor stands until it gets its number.
pub const PASSING: NumberChoice = NumberChoice::LowestFrom(4 * TEST_DESCRIPTORS);
const MOST_PIPE_BYTES: usize = 17 * PAGE_BYTES;

/// What a set-up step or an observation gives.
pub type Outcome = Result<Value<'static>, Errno>;

fn offset(pages: i64) -> Result<i64, Errno> {
    pages.checked_mul(PAGE_BYTES as i64).ok_or(Errno::EFBIG)
}

/// Gives what `from` leads to the number `to` instead.
fn renumber<S: Subject>(actor: &S, process: usize, from: u32, to: u32) -> Result<(), Errno> {
    let verbs = actor.enter(process);
    data::duplicate_to(&verbs, from, to, OnExec::Keep)?;
    data::close(&verbs, from)
}

/// The two descriptors of a pipe under construction.
fn ends(pipe: u32) -> [u32; 2] {
    [PIPES + 2 * pipe, PIPES + 2 * pipe + 1]
}

/// A file under construction, at `path`, of so many pages, all of them holes.
pub fn make_file<S: Subject>(actor: &S, path: &[u8], file: u32, pages: i64) -> Outcome {
    let flags = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
    let options = DescriptorOptions { number: PASSING, ..DescriptorOptions::PLAIN };
    let fd = calls::open(&actor.enter(SETUP_PROCESS), path, flags, options)?;
    renumber(actor, SETUP_PROCESS, fd, FILES + file)?;
    let verbs = actor.enter(SETUP_PROCESS);
    // Files of tests have held data before, as most have: then the first node of their array is there. A file that never
    // had any makes it with its first page, and shares the array's root.
    data::truncate(&verbs, FILES + file, offset(pages.max(1))?)?;
    data::truncate(&verbs, FILES + file, offset(pages)?)?;
    Ok(number(data::stat(&verbs, FILES + file, Fields::IDENTITY)?))
}

/// Makes calls as if the core had long been at work, on a file that no other core knows: it is made, written, closed and
/// removed in each round, which takes and gives back an object of each kind, and leaves work for maintenance.
///
/// # Errors
/// A call fails, as for want of memory.
pub fn warm<S: Subject>(actor: &S, rounds: usize) -> Result<(), Errno> {
    let path = format!("{CONSTRUCTION}/warm{}", actor.core());
    let flags = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
    let options = DescriptorOptions { number: PASSING, ..DescriptorOptions::PLAIN };
    for _ in 0..rounds {
        let fd = calls::open(&actor.enter(SETUP_PROCESS), path.as_bytes(), flags, options)?;
        calls::pwrite(&actor.enter(SETUP_PROCESS), fd, &[1; PAGE_BYTES], 0)?;
        calls::close(&actor.enter(SETUP_PROCESS), fd)?;
        calls::unlink(actor.enter(SETUP_PROCESS).objects(), path.as_bytes())?;
    }
    Ok(())
}

/// Writes a page of a file under construction.
pub fn fill_page<S: Subject>(actor: &S, file: u32, page: i64, byte: u8) -> Outcome {
    let at = offset(page)?;
    calls::pwrite(&actor.enter(SETUP_PROCESS), FILES + file, &[byte; PAGE_BYTES], at).map(|_| Value::Null)
}

/// Opens the file at `path` under exactly this number.
pub fn open_file<S: Subject>(actor: &S, process: usize, path: &[u8], flags: OpenFlags, fd: u32, page: i64) -> Outcome {
    let options = DescriptorOptions { number: PASSING, ..DescriptorOptions::PLAIN };
    let passing = calls::open(&actor.enter(process), path, flags, options)?;
    renumber(actor, process, passing, fd)?;
    calls::lseek(&actor.enter(process), fd, offset(page)?, Whence::Start).map(|_| Value::Null)
}

/// Removes the name of a file under construction and closes it.
pub fn forget_file<S: Subject>(actor: &S, path: &[u8], file: u32) -> Outcome {
    calls::close(&actor.enter(SETUP_PROCESS), FILES + file)?;
    calls::unlink(actor.enter(SETUP_PROCESS).objects(), path).map(|()| Value::Null)
}

/// An empty pipe, both of whose ends the set-up holds.
pub fn make_pipe<S: Subject>(actor: &S, pipe: u32) -> Outcome {
    let options = DescriptorOptions { number: PASSING, ..DescriptorOptions::PLAIN };
    let (read, write) = calls::pipe(&actor.enter(SETUP_PROCESS), options)?;
    let [read_end, write_end] = ends(pipe);
    renumber(actor, SETUP_PROCESS, read, read_end)?;
    renumber(actor, SETUP_PROCESS, write, write_end)?;
    Ok(number(data::stat(&actor.enter(SETUP_PROCESS), read_end, Fields::IDENTITY)?))
}

/// Writes a page into a pipe under construction.
pub fn fill_pipe<S: Subject>(actor: &S, pipe: u32, byte: u8) -> Outcome {
    calls::write(&actor.enter(SETUP_PROCESS), ends(pipe)[1], &[byte; PAGE_BYTES]).map(|_| Value::Null)
}

/// Opens an end of a pipe under construction under exactly this number.
pub fn open_pipe<S: Subject>(actor: &S, process: usize, fd: u32, pipe: u32, write_end: bool) -> Outcome {
    let options = DescriptorOptions { status: StatusFlags::NONBLOCK, number: PASSING, ..DescriptorOptions::PLAIN };
    let passing = {
        let (verbs, owner) = (actor.enter(process), actor.enter(SETUP_PROCESS));
        data::reopen(&verbs, (&owner, ends(pipe)[usize::from(write_end)]), options)?
    };
    renumber(actor, process, passing, fd)?;
    Ok(Value::Null)
}

/// Closes the ends of a pipe that the set-up need not hold.
pub fn forget_pipe<S: Subject>(actor: &S, pipe: u32, kept: [bool; 2]) -> Outcome {
    for (fd, is_kept) in ends(pipe).into_iter().zip(kept) {
        if !is_kept {
            calls::close(&actor.enter(SETUP_PROCESS), fd)?;
        }
    }
    Ok(Value::Null)
}

/// Makes a directory unless it exists.
pub fn make_directory<S: Subject>(actor: &S, path: &[u8]) -> Outcome {
    match directories::make_directory(actor.enter(SETUP_PROCESS).objects(), Start::WorkingDirectory, path, 0o777) {
        Ok(()) | Err(Errno::EEXIST) => Ok(Value::Null),
        Err(error) => Err(error),
    }
}

/// Lets everybody make names in a directory.
pub fn share_directory<S: Subject>(actor: &S, path: &[u8]) -> Outcome {
    let verbs = actor.enter(SETUP_PROCESS);
    attributes::change_mode(verbs.objects(), Start::WorkingDirectory, path, 0o777).map(|()| Value::Null)
}

/// Lets a process work in a directory.
pub fn enter_directory<S: Subject>(actor: &S, process: usize, path: &[u8]) -> Outcome {
    directories::change_directory(actor.enter(process).objects(), Start::WorkingDirectory, path).map(|()| Value::Null)
}

/// Closes all descriptors of a process.
pub fn close_all<S: Subject>(actor: &S, process: usize) -> Outcome {
    for fd in actor.descriptors(process) {
        calls::close(&actor.enter(process), fd)?;
    }
    Ok(Value::Null)
}

/// How a directory is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// With the times of what its names lead to.
    pub times: bool,
    /// Its names are padded.
    pub long_names: bool,
}

/// All names of a directory that end with `suffix`, which is left out as padding is, with what they lead to.
pub fn peek_directory<S: Subject>(actor: &S, path: &[u8], suffix: &[u8], look: Look) -> Outcome {
    let verbs = actor.enter(SETUP_PROCESS);
    let mut names = Vec::new();
    let opened = posix_calls::names::open(
        verbs.objects(),
        Start::WorkingDirectory,
        path,
        OpenFlags::READ | OpenFlags::DIRECTORY,
        0,
    );
    let node = match opened {
        Err(Errno::ENOENT) => return Ok(Value::Seq(Vec::new())),
        opened => opened?.handle,
    };
    let mut from = 0;
    while let Some(next) = verbs.objects().list(verbs.objects().held(&node), from, &mut |item| {
        names.push(item.name.to_vec());
        true
    })? {
        from = next;
    }
    names.sort();
    let mut views = Vec::new();
    for name in names {
        let file = [path, b"/", &name].concat();
        let attributes =
            attributes::stat(verbs.objects(), Start::WorkingDirectory, &file, Follow::Nothing, Fields::ALL)?;
        let opened =
            posix_calls::names::open(verbs.objects(), Start::WorkingDirectory, &file, OpenFlags::READ, 0)?.handle;
        let pages = contents(&verbs, verbs.objects().held(&opened), attributes.size_bytes)?;
        posix_calls::names::close(verbs.objects(), opened);
        let shown = Surroundings::text_of(name.strip_suffix(suffix).unwrap_or(&name), look.long_names);
        views.push(Value::Struct(vec![
            ("name".into(), Value::Text(String::from_utf8_lossy(shown).into_owned().into())),
            ("stat".into(), status(attributes, Fields::ALL, look.times)),
            ("contents".into(), pages),
        ]));
    }
    posix_calls::names::close(verbs.objects(), node);
    Ok(Value::Seq(views))
}

/// Gives what a path leads to away, with these rights; a link is not followed.
pub fn own<S: Subject>(actor: &S, path: &[u8], user: u32, mode: u32) -> Outcome {
    let verbs = actor.enter(SETUP_PROCESS);
    let (objects, start) = (verbs.objects(), Start::WorkingDirectory);
    attributes::change_owner(objects, start, path, Follow::Nothing, (Some(user), None))?;
    attributes::change_mode(objects, start, path, mode).map(|()| Value::Null)
}

/// What a path leads to, links not being followed: its status, where a link leads (with the window's end), and what a file
/// holds.
pub fn peek_path<S: Subject>(actor: &S, path: &[u8], times: bool) -> Outcome {
    let verbs = actor.enter(SETUP_PROCESS);
    let (objects, start) = (verbs.objects(), Start::WorkingDirectory);
    let attributes = attributes::stat(objects, start, path, Follow::Nothing, Fields::ALL)?;
    let (mut target, mut held) = (Value::Null, Value::Null);
    match attributes.kind {
        Kind::Symlink => {
            let leads = posix_calls::names::read_link(objects, start, path)?;
            target = Value::Text(String::from_utf8_lossy(leads.as_ref()).into_owned().into());
        }
        Kind::Directory => {}
        _ => {
            let opened = posix_calls::names::open(objects, start, path, OpenFlags::READ, 0)?.handle;
            held = contents(&verbs, objects.held(&opened), attributes.size_bytes)?;
            posix_calls::names::close(objects, opened);
        }
    }
    let stat = tree_arguments::status(attributes, Fields::ALL, times);
    Ok(Value::Struct(vec![("stat".into(), stat), ("target".into(), target), ("contents".into(), held)]))
}

/// Removes a name and all that is below it; nothing happens if there is none.
///
/// # Errors
/// Those of the calls.
pub fn remove_tree<S: Subject>(actor: &S, path: &[u8]) -> Result<(), Errno> {
    let verbs = actor.enter(SETUP_PROCESS);
    remove_below(verbs.objects(), path)
}

fn remove_below<V: ObjectOperations>(objects: &V, path: &[u8]) -> Result<(), Errno> {
    match posix_calls::names::unlink(objects, Start::WorkingDirectory, path) {
        Err(Errno::EISDIR) => {}
        Err(Errno::ENOENT) => return Ok(()),
        result => return result,
    }
    let flags = OpenFlags::READ | OpenFlags::DIRECTORY;
    let node = posix_calls::names::open(objects, Start::WorkingDirectory, path, flags, 0)?.handle;
    let (mut names, mut from) = (Vec::new(), 0);
    while let Some(next) = objects.list(objects.held(&node), from, &mut |item| {
        names.push(item.name.to_vec());
        true
    })? {
        from = next;
    }
    posix_calls::names::close(objects, node);
    for name in names {
        remove_below(objects, &[path, b"/", &name].concat())?;
    }
    posix_calls::directories::remove_directory(objects, Start::WorkingDirectory, path)
}

/// All descriptors of a process for which `shown` has a value.
pub fn peek_descriptors<S: Subject>(
    actor: &S,
    process: usize,
    times: bool,
    shown: impl Fn(u32) -> Option<Value<'static>>,
) -> Outcome {
    let open = actor.descriptors(process);
    let verbs = actor.enter(process);
    let mut views = Vec::new();
    for (fd, shown) in open.into_iter().filter_map(|fd| Some((fd, shown(fd)?))) {
        let attributes = data::stat(&verbs, fd, Fields::ALL)?;
        let (mode, _) = data::status(&verbs, fd)?;
        let is_pipe = attributes.kind == Kind::Pipe;
        let (offset, pages) = if is_pipe {
            let mut bytes = vec![0; MOST_PIPE_BYTES];
            let length = data::peek(&verbs, fd, &mut bytes)?;
            (0, bytes[..length].chunks(PAGE_BYTES).map(page).collect())
        } else {
            let node = data::node(&verbs, fd)?;
            let Value::Seq(pages) = contents(&verbs, node, attributes.size_bytes)? else { return Err(Errno::EINVAL) };
            (data::seek(&verbs, fd, 0, Whence::Current)?, pages)
        };
        let peer_open = is_pipe && !data::poll(&verbs, fd)?.other_end_gone;
        views.push(Value::Struct(vec![
            ("fd".into(), shown),
            ("stat".into(), status(attributes, Fields::ALL, times)),
            ("write_end".into(), Value::Bool(is_pipe && mode.write)),
            ("peer_open".into(), Value::Bool(peer_open)),
            ("offset".into(), pages_of(offset)),
            ("readable".into(), Value::Bool(mode.read)),
            ("writable".into(), Value::Bool(mode.write)),
            ("contents".into(), Value::Seq(pages)),
        ]));
    }
    Ok(Value::Seq(views))
}

/// Whether a descriptor's number is one that tests name.
pub fn is_numbered(fd: u32) -> bool {
    fd < TEST_DESCRIPTORS
}

fn contents<'v, D: DataOperations>(verbs: &'v D, node: posix_calls::NodeOf<'v, D>, size_bytes: u64) -> Outcome {
    let mut bytes = [0; PAGE_BYTES];
    let starts = (0..size_bytes).step_by(PAGE_BYTES);
    let pages = starts.map(|start| {
        let length = verbs.read_range(node, start, &mut bytes)?;
        Ok(page(&bytes[..length]))
    });
    Ok(Value::Seq(pages.collect::<Result<_, Errno>>()?))
}
