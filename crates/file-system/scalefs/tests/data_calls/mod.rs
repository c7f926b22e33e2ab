//! The calls on descriptors, data and pipes as values, to be drawn and made.

use pages::PAGE_BYTES;
use proptest::prelude::*;
use scalefs::data::{self, DescriptorOptions, Whence};
use scalefs::{DataOperations, Errno, Fields, NumberChoice, OnExec, OpenFlags, Start, StatusFlags, names};

/// A quarter page, in which offsets and sizes are counted.
pub const UNIT: usize = 1024;
pub const UNITS_PER_PAGE: usize = PAGE_BYTES / UNIT;
pub const NAMES: [&str; 2] = ["a", "b"];

#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// Of one of [`NAMES`], for reading and writing; O_APPEND if the last says so.
    Open(usize, OpenFlags, bool),
    Unlink(usize),
    Close(u32),
    SetOnExec(u32),
    Duplicate(u32),
    DuplicateTo(u32, u32),
    /// So many units; more than one only of a pipe.
    Read(u32, usize),
    Write(u32, usize, u8),
    /// From a unit on, so many.
    ReadAt(u32, usize, usize),
    WriteAt(u32, usize, usize, u8),
    Seek(u32, i64, Whence),
    Resize(u32, usize),
    Size(u32),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Done,
    Number(u64),
    Units(Vec<u8>),
}

pub type Outcome = Result<Answer, Errno>;

/// A call; what is O_APPEND is written unit by unit, since its pages are not known before.
pub fn any_call(append: bool) -> impl Strategy<Value = Call> {
    call_of(append, || prop_oneof![4 => Just(0_u32), 3 => Just(1), 3 => Just(2), 3 => Just(3), 2 => 4..7_u32].boxed())
}

/// A call on one of these descriptors.
pub fn call_of(append: bool, fd: impl Fn() -> BoxedStrategy<u32>) -> impl Strategy<Value = Call> {
    let name = || 0..NAMES.len();
    let flags = prop_oneof![
        Just(OpenFlags::CREATE),
        Just(OpenFlags::NONE),
        Just(OpenFlags::CREATE | OpenFlags::EXCLUSIVE),
        Just(OpenFlags::CREATE | OpenFlags::TRUNCATE),
    ];
    let whence = prop_oneof![Just(Whence::Start), Just(Whence::Current), Just(Whence::End)];
    // Most near the beginning, some in other leaves of the array.
    let at = || prop_oneof![6 => 0..10_usize, 1 => 10..90_usize];
    let longest = if append { 1 } else { 2 * UNITS_PER_PAGE };
    let value = || prop_oneof![5 => 1..200_u8, 1 => Just(0)];
    prop_oneof![
        3 => (name(), flags).prop_map(move |(name, flags)| Call::Open(name, flags, append)),
        1 => name().prop_map(Call::Unlink),
        3 => fd().prop_map(Call::Close),
        1 => fd().prop_map(Call::SetOnExec),
        2 => fd().prop_map(Call::Duplicate),
        1 => (fd(), fd()).prop_map(|(fd, target)| Call::DuplicateTo(fd, target)),
        4 => fd().prop_map(|fd| Call::Read(fd, 1)),
        4 => (fd(), value()).prop_map(|(fd, fill)| Call::Write(fd, 1, fill)),
        5 => (fd(), at(), 1..9_usize).prop_map(|(fd, start, length)| Call::ReadAt(fd, start, length)),
        5 => (fd(), at(), 1..=longest, value())
            .prop_map(|(fd, start, length, fill)| Call::WriteAt(fd, start, length, fill)),
        2 => (fd(), prop_oneof![4 => -3..8_i64, 1 => -12..-3_i64], whence).prop_map(|(fd, offset, whence)| Call::Seek(fd, offset, whence)),
        2 => (fd(), at()).prop_map(|(fd, size)| Call::Resize(fd, size)),
        2 => fd().prop_map(Call::Size),
    ]
}

/// Every call on the bytes of the file, near its end and the borders of its pages; what is O_APPEND is written unit by unit.
pub fn calls_near_the_end(append: bool) -> Vec<Call> {
    let of = |fd: u32| {
        let value = 7 + fd as u8;
        let lengths = if append { &[1_usize][..] } else { &[1, 4] };
        let at = move |start: usize| {
            let of_length = move |length: &usize| {
                let write = |fill| Call::WriteAt(fd, start, *length, fill);
                [Call::ReadAt(fd, start, *length), write(value), write(0)]
            };
            lengths.iter().flat_map(of_length)
        };
        let sizes = [0, 3, 4, 5, 8, 9].map(|size| Call::Resize(fd, size));
        let seeks = [-2, 2].map(|offset| Call::Seek(fd, offset, Whence::Current));
        let others = [Call::Read(fd, 1), Call::Write(fd, 1, value), Call::Size(fd)];
        [0, 4, 5, 8].into_iter().flat_map(at).chain(sizes).chain(seeks).chain(others)
    };
    [0, 1].into_iter().flat_map(of).collect()
}

/// Every call that changes what one of these numbers leads to, or shows it.
pub fn calls_on_numbers() -> Vec<Call> {
    let of = |fd: u32| {
        let to = (0..5).map(move |target| Call::DuplicateTo(fd, target));
        let shows = [Call::Read(fd, 1), Call::Write(fd, 1, 7 + fd as u8), Call::Size(fd)];
        [Call::Close(fd), Call::SetOnExec(fd), Call::Duplicate(fd)].into_iter().chain(to).chain(shows)
    };
    let opens = [OpenFlags::NONE, OpenFlags::CREATE, OpenFlags::CREATE | OpenFlags::TRUNCATE];
    let opens = (0..NAMES.len()).flat_map(move |name| opens.map(|flags| Call::Open(name, flags, false)));
    let unlinks = (0..NAMES.len()).map(Call::Unlink);
    (0..5).flat_map(of).chain(opens).chain(unlinks).collect()
}

/// Every call on a pipe, to which there is another pair of numbers by copies, of a unit, a part of a page, or a page.
pub fn calls_on_pipes() -> Vec<Call> {
    let lengths = [1, 2, UNITS_PER_PAGE];
    let reads = lengths.map(|length| Call::Read(2, length));
    let writes = lengths.map(|length| Call::Write(3, length, 7));
    let ends = [2, 3].into_iter().flat_map(|fd| {
        [
            Call::Close(fd),
            Call::Duplicate(fd),
            Call::SetOnExec(fd),
            Call::DuplicateTo(fd, 4),
            Call::DuplicateTo(0, fd),
            Call::DuplicateTo(5 - fd, fd),
        ]
    });
    let copies = [Call::Close(4), Call::Read(4, 1), Call::Write(4, 1, 8), Call::Write(3, 1, 8)];
    reads.into_iter().chain(writes).chain(ends).chain(copies).collect()
}

/// A call on a pipe's descriptors, of up to a page; it closes one as often as this says, among twelve that read or write.
pub fn any_call_on_pipes(closes: u32) -> impl Strategy<Value = Call> {
    let fd = || prop_oneof![8 => Just(2_u32), 8 => Just(3), 1 => Just(4)];
    let length = || prop_oneof![1..=UNITS_PER_PAGE, Just(UNITS_PER_PAGE)];
    prop_oneof![
        6 => (fd(), length()).prop_map(|(fd, length)| Call::Read(fd, length)),
        6 => (fd(), length(), 1..200_u8).prop_map(|(fd, length, fill)| Call::Write(fd, length, fill)),
        closes => fd().prop_map(Call::Close),
        1 => (2..4_u32).prop_map(Call::Duplicate),
    ]
}

/// The units that bytes stand for.
fn units(bytes: &[u8]) -> Vec<u8> {
    assert!(bytes.len().is_multiple_of(UNIT), "{} bytes are no units", bytes.len());
    bytes
        .chunks(UNIT)
        .inspect(|unit| assert!(unit.iter().all(|byte| *byte == unit[0]), "a torn unit"))
        .map(|unit| unit[0])
        .collect()
}

/// A call on ScaleFS.
pub fn make<D: DataOperations>(verbs: &D, call: &Call) -> Outcome {
    let at = Start::WorkingDirectory;
    let number = |number: u32| Answer::Number(number.into());
    let written = |bytes: usize| Answer::Number((bytes / UNIT) as u64);
    match call {
        Call::Open(name, flags, append) => {
            let status = if *append { StatusFlags::APPEND } else { StatusFlags::NONE };
            let flags = *flags | OpenFlags::READ | OpenFlags::WRITE;
            let options = DescriptorOptions { status, ..DescriptorOptions::PLAIN };
            data::open(verbs, at, NAMES[*name].as_bytes(), flags, 0o600, options).map(number)
        }
        Call::Unlink(name) => names::unlink(verbs.objects(), at, NAMES[*name].as_bytes()).map(|()| Answer::Done),
        Call::Close(fd) => data::close(verbs, *fd).map(|()| Answer::Done),
        Call::SetOnExec(fd) => data::set_on_exec(verbs, *fd, OnExec::Close).map(|()| Answer::Done),
        Call::Duplicate(fd) => data::duplicate(verbs, *fd, NumberChoice::LowestFrom(0), OnExec::Keep).map(number),
        Call::DuplicateTo(fd, target) => data::duplicate_to(verbs, *fd, *target, OnExec::Keep).map(number),
        Call::Read(fd, length) => {
            let mut bytes = vec![0; length * UNIT];
            data::read(verbs, *fd, &mut bytes).map(|length| Answer::Units(units(&bytes[..length])))
        }
        Call::Write(fd, length, fill) => data::write(verbs, *fd, &vec![*fill; length * UNIT]).map(written),
        Call::ReadAt(fd, start, length) => {
            let mut bytes = vec![0; length * UNIT];
            data::read_at(verbs, *fd, &mut bytes, (start * UNIT) as i64)
                .map(|length| Answer::Units(units(&bytes[..length])))
        }
        Call::WriteAt(fd, start, length, fill) => {
            data::write_at(verbs, *fd, &vec![*fill; length * UNIT], (start * UNIT) as i64).map(written)
        }
        Call::Seek(fd, offset, whence) => {
            data::seek(verbs, *fd, offset * UNIT as i64, *whence).map(|offset| written(offset as usize))
        }
        Call::Resize(fd, size) => data::truncate(verbs, *fd, (size * UNIT) as i64).map(|()| Answer::Done),
        Call::Size(fd) => data::stat(verbs, *fd, Fields::SIZE).map(|status| written(status.size_bytes as usize)),
    }
}
