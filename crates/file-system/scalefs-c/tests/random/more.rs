//! Calls that the language of calls does not have: by descriptor, and on what a process is. On `plain` by the call layer.

use call_language::{Answer, MODES, Random};
use plain::{Plain, Process};
use posix_calls::attributes::{self, NewTime};
use posix_calls::data::{self, DescriptorOptions, Whence};
use posix_calls::{
    DataOperations, Errno, Fields, Follow, Kind, OnExec, OpenFlags, Start, StatusFlags, allocation, directories,
    extended, handles, names,
};

/// Such a call. Descriptors are few.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum More {
    /// Sets the mask, and tells that of before.
    Mask(u32),
    /// Makes what a descriptor leads to the working directory.
    EnterDescriptor(u32),
    /// The owner to be of what a descriptor leads to.
    ChangeOwnerOf(u32, u32),
    /// Both times of what a descriptor leads to, a nanosecond apart.
    SetTimes(u32, i64),
    /// Tells them, if they were set: what the clock says differs.
    Times(u32),
    /// Whether exec closes a descriptor.
    SetCloses(u32, bool),
    /// Tells that.
    Closes(u32),
    /// Names from the start, to the end: numbers of places in between are each system's own.
    ListDescriptor(u32),
    /// Makes what a mode says: a file, or a name for something outside.
    MakeNode(String, u32, u64),
    /// The number of a device that a path leads to.
    Device(String),
    /// A descriptor that only stands for what a path leads to, and whether a symbolic link at its end is followed.
    OpenHandle(String, bool),
    /// A file without a name, open for both, in a directory.
    OpenTemporary(String, u32),
    /// A name of what a descriptor leads to.
    LinkObject(u32, String),
    /// Closes the descriptors that exec closes.
    Exec,
    /// An extended attribute of what a path leads to, which of [`ATTRIBUTES`], and so many bytes of value; flags.
    SetAttribute(Target, usize, usize, u32),
    /// Its value, with room for so many bytes.
    Attribute(Target, usize, usize),
    /// The names of all, with room for so many bytes.
    Attributes(Target, usize),
    /// Removes one.
    RemoveAttribute(Target, usize),
    /// Takes room for bytes of a file, or gives it back: mode, offset, length.
    Allocate(u32, u32, i64, i64),
}

/// What an attribute is of: a path, and whether a symbolic link is followed; or a descriptor.
pub type Target = Result<(String, bool), u32>;

/// Names of attributes.
pub const ATTRIBUTES: [&str; 7] = ["user.a", "user.b", "trusted.a", "security.a", "user.", "other.a", ""];

/// What was read into room: its bytes, or without room how many there are.
pub fn told(mut room: Vec<u8>, read: usize) -> Answer {
    if room.is_empty() {
        return Answer::Number(read as i64);
    }
    room.truncate(read);
    Answer::Text(room)
}

fn found<'c>(call: &'c plain::Call<'_>, target: &Target) -> Result<plain::Node<'c>, Errno> {
    match target {
        Err(fd) => extended::of(call, *fd),
        Ok((path, follows)) => {
            let follow = if *follows { Follow::Symlinks } else { Follow::Nothing };
            extended::at(call, Start::WorkingDirectory, path.as_bytes(), follow)
        }
    }
}

impl More {
    /// One of them.
    pub fn any(random: &mut Random) -> More {
        let fd = random.below(5) as u32;
        if random.below(4) == 0 {
            return More::of_attributes_and_room(random, fd);
        }
        match random.below(34) {
            24..=26 => More::OpenHandle(random.path(true), random.below(2) == 0),
            27..=29 => More::OpenTemporary(random.path(true), random.pick(&MODES)),
            30..=33 => More::LinkObject(fd, random.path_to_make(true)),
            18..=20 => {
                let kind = random.pick(&[0, 0o100_000, 0o010_000, 0o140_000, 0o020_000, 0o060_000]);
                let path = random.path_to_make(true);
                More::MakeNode(path, kind | random.pick(&MODES), random.below(3) as u64)
            }
            21..=23 => More::Device(random.path(true)),
            0 => More::Mask(random.pick(&[0, 0o22, 0o77, 0o777])),
            1 | 2 => More::EnterDescriptor(fd),
            3 | 4 => More::ChangeOwnerOf(fd, random.pick(&[0, 1001, 1002])),
            5 | 6 => More::SetTimes(fd, random.pick(&[0, -1, 1 << 40])),
            7 | 8 => More::Times(fd),
            9 | 10 => More::SetCloses(fd, random.below(4) > 0),
            11..=13 => More::Closes(fd),
            17 => More::Exec,
            _ => More::ListDescriptor(fd),
        }
    }

    fn of_attributes_and_room(random: &mut Random, fd: u32) -> More {
        let is_path = random.below(3) > 0;
        let target = if is_path { Ok((random.path(true), random.below(2) == 0)) } else { Err(fd) };
        let name = if random.below(2) == 0 { 0 } else { random.below(ATTRIBUTES.len()) };
        let offset = random.pick(&[0, 1, 4095, 4096, 10_000, -1]);
        match random.below(10) {
            0..=2 => More::SetAttribute(target, name, random.pick(&[0, 1, 300, 9000]), random.pick(&[0, 0, 1, 2, 4])),
            3 | 4 => More::Attribute(target, name, random.pick(&[0, 1, 9000])),
            5 => More::Attributes(target, random.pick(&[0, 1, 300])),
            6 => More::RemoveAttribute(target, name),
            _ => More::Allocate(fd, random.pick(&[0, 0, 1, 3, 3, 16]), offset, random.pick(&[1, 4096, 9000, 0])),
        }
    }

    /// The call on `plain`.
    ///
    /// # Errors
    /// Those of the call.
    pub fn on_plain(&self, file_system: &Plain, process: &Process) -> Result<Answer, Errno> {
        let call = file_system.begin(process);
        let done = |()| Answer::Done;
        match *self {
            More::Mask(mask) => Ok(Answer::Number(process.set_umask(mask).into())),
            More::EnterDescriptor(fd) => directories::change_directory_to(&call, data::node(&call, fd)?).map(done),
            More::ChangeOwnerOf(fd, user) => {
                attributes::change_owner_of(&call, handles::node_to_change(&call, fd)?, (Some(user), None)).map(done)
            }
            More::SetTimes(fd, time_ns) => {
                let times = (NewTime::At(time_ns), NewTime::At(time_ns + 1));
                attributes::set_times_of(&call, handles::node_to_change(&call, fd)?, times).map(done)
            }
            More::Times(fd) => {
                let status = data::stat(&call, fd, Fields::ALL)?;
                Ok(Answer::Text(format!("{} {}", status.accessed_ns, status.modified_ns).into_bytes()))
            }
            More::SetCloses(fd, closes) => {
                let on_exec = if closes { OnExec::Close } else { OnExec::Keep };
                data::set_on_exec(&call, fd, on_exec).map(done)
            }
            More::Closes(fd) => {
                data::on_exec(&call, fd).map(|on_exec| Answer::Number((on_exec == OnExec::Close).into()))
            }
            More::ListDescriptor(fd) => {
                data::seek(&call, fd, 0, Whence::Start)?;
                let mut names = Vec::new();
                data::read_directory(&call, fd, |entry| {
                    names.push((String::from_utf8(entry.name.to_vec()).unwrap(), entry.kind as u8));
                    true
                })?;
                names.retain(|(name, _): &(String, u8)| name != "." && name != "..");
                names.sort();
                Ok(Answer::Names(names))
            }
            More::MakeNode(ref path, mode, device) => {
                let kind = match mode & 0o170_000 {
                    0o010_000 => Kind::NamedPipe,
                    0o140_000 => Kind::NamedSocket,
                    0o020_000 => Kind::CharacterDevice,
                    0o060_000 => Kind::BlockDevice,
                    _ => Kind::Regular,
                };
                let start = Start::WorkingDirectory;
                names::make_node(&call, start, path.as_bytes(), (kind, device), mode & 0o7777).map(done)
            }
            More::Device(ref path) => {
                let (start, follow) = (Start::WorkingDirectory, Follow::Symlinks);
                let found = attributes::stat_with_device(&call, start, path.as_bytes(), follow, Fields::IDENTITY)?;
                Ok(Answer::Number(found.1 as i64))
            }
            More::OpenHandle(ref path, follows) => {
                let flags = if follows { OpenFlags::NONE } else { OpenFlags::NO_FOLLOW };
                let opened = handles::open_handle(
                    &call,
                    Start::WorkingDirectory,
                    path.as_bytes(),
                    flags,
                    DescriptorOptions::PLAIN,
                );
                opened.map(|fd| Answer::Number(fd.into()))
            }
            More::OpenTemporary(ref path, mode) => {
                let (start, flags) = (Start::WorkingDirectory, OpenFlags::READ | OpenFlags::WRITE);
                let options = DescriptorOptions { status: StatusFlags::NONBLOCK, ..DescriptorOptions::PLAIN };
                let opened = handles::open_temporary(&call, start, path.as_bytes(), flags, mode, options);
                opened.map(|fd| Answer::Number(fd.into()))
            }
            More::LinkObject(fd, ref path) => {
                let new = (Start::WorkingDirectory, path.as_bytes());
                handles::link_object(&call, data::node(&call, fd)?, new).map(done)
            }
            More::SetAttribute(ref target, name, size, flags) => {
                let given = (ATTRIBUTES[name].as_bytes(), &vec![7; size][..]);
                extended::set(&call, || found(&call, target), given, flags).map(done)
            }
            More::Attribute(ref target, name, room) => {
                let mut value = vec![0; room];
                let read = extended::get(&call, || found(&call, target), ATTRIBUTES[name].as_bytes(), &mut value)?;
                Ok(told(value, read))
            }
            More::Attributes(ref target, room) => {
                let mut names = vec![0; room];
                let read = extended::list(&call, || found(&call, target), &mut names)?;
                Ok(told(names, read))
            }
            More::RemoveAttribute(ref target, name) => {
                extended::remove(&call, || found(&call, target), ATTRIBUTES[name].as_bytes()).map(done)
            }
            More::Allocate(fd, mode, offset, length) => allocation::change(&call, fd, mode, (offset, length)).map(done),
            More::Exec => {
                for number in process.descriptors() {
                    if call.on_exec(number)? == OnExec::Close {
                        data::close(&call, number)?;
                    }
                }
                Ok(Answer::Done)
            }
        }
    }

    /// Whether two answers that are not equal are times, of which one was not set: the clock's.
    pub fn is_of_the_clock(&self, ours: &Answer, theirs: &Answer) -> bool {
        let is_set = |answer: &Answer| match answer {
            Answer::Text(text) => {
                let text = String::from_utf8_lossy(text).into_owned();
                let times: Vec<i64> = text.split(' ').map(|time| time.parse().unwrap()).collect();
                times.iter().all(|time| (-1..2).contains(time) || *time == 1 << 40 || *time == (1 << 40) + 1)
            }
            _ => true,
        };
        matches!(self, More::Times(_)) && (!is_set(ours) || !is_set(theirs))
    }
}
