//! Calls that only observations make: they tell all that callers could find out about a directory, a process's descriptors
//! or its memory, each in one go. What an actor finds is written to its operation's report, number by number, and read
//! from there in the same order.

use std::ops::Range;

use wire::results::ResultsWriter;

use super::super::access;
use super::super::held;
use super::super::leftovers::Leftovers;
use super::super::operation::{NAME_LIMIT_BYTES, Operation, PAGE_BYTES, Path, Report, check_name, uniform};
use super::super::reserved;
use super::super::system_call::system_call;
use super::{CWD, LinuxCall, PAGE, Status, byte, content};
use crate::arguments::Arguments;
use crate::target::Marks;

pub(super) const CALLS: &[LinuxCall] = &[
    LinuxCall::new("peek_directory", &["directory", "times"], peek_directory, |operation, _, results| {
        write_directory(operation, operation.arguments[0] != 0, results);
    }),
    LinuxCall::new("peek_descriptors", &["times"], peek_descriptors, |operation, _, results| {
        let times = operation.arguments[0] != 0;
        write(operation, results, |numbers, results| descriptor(numbers, times, results));
    }),
    LinuxCall::new("peek_memory", &[], peek_memory, |operation, _, results| {
        write(operation, results, |numbers, results| mapped_page(numbers, operation.process, results));
    })
    .of_memory(),
    LinuxCall::new("probe_memory", &["first"], probe_memory, |operation, _, results| {
        write(operation, results, |numbers, results| signal(next(numbers), results));
    })
    .of_memory(),
];

pub(super) type Numbers<'a> = std::slice::Iter<'a, i64>;

/// Writes the report, a sequence of items.
pub(super) fn write(
    operation: &Operation,
    results: &mut ResultsWriter,
    item: impl Fn(&mut Numbers<'_>, &mut ResultsWriter),
) {
    let Some(numbers) = operation.report.numbers() else { return write_too_long(results) };
    let (mut numbers, mut items) = (numbers.iter(), results.sequence());
    while !numbers.as_slice().is_empty() {
        items.next();
        item(&mut numbers, results);
    }
    results.end_sequence(items);
}

/// A report that was too long reads like an observation of nothing but a text.
fn write_too_long(results: &mut ResultsWriter) {
    let mut items = results.sequence();
    items.next();
    results.text("more than the runner can report");
    results.end_sequence(items);
}

/// Writes the report of a directory, by the names of its entries.
fn write_directory(operation: &Operation, times: bool, results: &mut ResultsWriter) {
    let Some(numbers) = operation.report.numbers() else { return write_too_long(results) };
    let mut entries: Vec<(&[i64], Numbers<'_>)> = Vec::new();
    let mut rest = numbers.iter();
    while !rest.as_slice().is_empty() {
        let name = name(&mut rest);
        entries.push((name, rest.clone()));
        read_status(&mut rest);
        for _ in 0..next(&mut rest) {
            next(&mut rest);
        }
    }
    entries.sort_unstable_by_key(|(name, _)| *name);
    let mut items = results.sequence();
    for (name, mut others) in entries {
        items.next();
        entry(name, &mut others, times, results);
    }
    results.end_sequence(items);
}

pub(super) fn next(numbers: &mut Numbers<'_>) -> i64 {
    numbers.next().copied().unwrap_or_default()
}

/// Contents, written as their count and their pages.
pub(super) fn contents(numbers: &mut Numbers<'_>, results: &mut ResultsWriter) {
    let mut items = results.sequence();
    for _ in 0..next(numbers) {
        items.next();
        results.number(next(numbers));
    }
    results.end_sequence(items);
}

/// Starts to write contents: `end_contents` is given the place that comes back.
fn begin_contents(report: &mut Report) -> usize {
    report.push(0)
}

fn end_contents(report: &mut Report, place: usize, count: i64) {
    report.set(place, count);
}

fn push_status(report: &mut Report, status: Status) {
    let pipe = i64::from(status.pipe);
    for number in [status.inode, pipe, status.link_count, status.size_bytes, status.mtime_ns, status.ctime_ns] {
        report.push(number);
    }
}

fn read_status(numbers: &mut Numbers<'_>) -> Status {
    Status {
        inode: next(numbers),
        pipe: next(numbers) != 0,
        link_count: next(numbers),
        size_bytes: next(numbers),
        mtime_ns: next(numbers),
        ctime_ns: next(numbers),
    }
}

/// Writes that there is nothing in a file or a pipe.
fn push_no_contents(operation: &mut Operation) -> i64 {
    operation.report.push(0);
    0
}

/// Writes the pages of a file that is open for reading.
pub(super) fn push_file(operation: &mut Operation, descriptor: u64, size_bytes: i64) -> i64 {
    let place = begin_contents(&mut operation.report);
    let count = (size_bytes + PAGE - 1) / PAGE;
    for page in 0..count {
        let [buffer, start] = [operation.page.address(), (page * PAGE).cast_unsigned()];
        let size = step!(system_call(libc::SYS_pread64, [descriptor, buffer, PAGE_BYTES as u64, start]));
        let found = if size == PAGE { content(operation.page.uniform()) } else { content(None) };
        operation.report.push(found);
    }
    end_contents(&mut operation.report, place, count);
    0
}

/// Where the name of the directory entry at a place stands, and where the next entry is, in a list as `getdents64` writes
/// it. The name is zero-terminated, after inode number (8 bytes), offset (8), length of the record (2) and type (1).
fn record(list: &[u8], start: usize) -> Option<(Range<usize>, usize)> {
    const NAME_AT: usize = 19;
    let rest = list.get(start..)?;
    let length = usize::from(u16::from_le_bytes([*rest.get(16)?, *rest.get(17)?]));
    let name = rest.get(NAME_AT..length)?;
    let end = name.iter().position(|byte| *byte == 0)?;
    Some((start + NAME_AT..start + NAME_AT + end, start + length))
}

fn peek_directory(
    operation: &mut Operation,
    arguments: &Arguments<'_>,
    leftovers: &mut Leftovers,
) -> Result<(), String> {
    let directory = arguments.text(0)?;
    check_name(directory)?;
    operation.paths[0].set(&[leftovers.prefix(), directory])?;
    operation.steps(list_directory, [arguments.flag(1)?.into()]);
    Ok(())
}

fn list_directory(operation: &mut Operation) -> i64 {
    operation.report.clear();
    let flags = (libc::O_RDONLY | libc::O_DIRECTORY) as u64;
    let directory = system_call(libc::SYS_openat, [CWD, operation.paths[0].address(), flags]);
    if directory == -i64::from(libc::ENOENT) {
        return 0;
    }
    let directory = step!(directory).cast_unsigned();
    let result = list_open_directory(operation, directory);
    system_call(libc::SYS_close, [directory]);
    result
}

fn list_open_directory(operation: &mut Operation, directory: u64) -> i64 {
    loop {
        let list = operation.list.address();
        let size = step!(system_call(libc::SYS_getdents64, [directory, list, PAGE_BYTES as u64]));
        let size = usize::try_from(size).unwrap_or_default();
        if size == 0 {
            return 0;
        }
        let mut start = 0;
        while let Some((name, next)) = record(&operation.list.bytes()[..size], start) {
            if !matches!(&operation.list.bytes()[name.clone()], b"." | b"..") {
                step!(push_entry(operation, directory, name));
            }
            start = next;
        }
    }
}

/// Writes the directory's entry whose name stands at that place of the list.
fn push_entry(operation: &mut Operation, directory: u64, name: Range<usize>) -> i64 {
    let address = operation.list.address() + name.start as u64;
    operation.report.push(name.len() as i64);
    for place in name {
        operation.report.push(operation.list.bytes()[place].into());
    }
    step!(system_call(libc::SYS_newfstatat, [directory, address, operation.stat_address(), 0]));
    let status = Status::of(operation.stat());
    push_status(&mut operation.report, status);
    if status.size_bytes == 0 {
        return push_no_contents(operation);
    }
    let flags = libc::O_RDONLY as u64;
    let file = step!(system_call(libc::SYS_openat, [directory, address, flags])).cast_unsigned();
    let result = push_file(operation, file, status.size_bytes);
    system_call(libc::SYS_close, [file]);
    result
}

/// A name, written as its length and its bytes.
fn name<'a>(numbers: &mut Numbers<'a>) -> &'a [i64] {
    let length = usize::try_from(next(numbers)).unwrap_or_default();
    let (name, rest) = numbers.as_slice().split_at_checked(length).unwrap_or_default();
    *numbers = rest.iter();
    name
}

fn entry(name: &[i64], numbers: &mut Numbers<'_>, times: bool, results: &mut ResultsWriter) {
    let mut bytes = [0; NAME_LIMIT_BYTES];
    for (byte, number) in bytes.iter_mut().zip(name) {
        *byte = u8::try_from(*number).unwrap_or_default();
    }
    results.structure(3);
    results.field("name");
    results.text(&String::from_utf8_lossy(&bytes[..name.len().min(NAME_LIMIT_BYTES)]));
    results.field("stat");
    read_status(numbers).write(times, results);
    results.field("contents");
    contents(numbers, results);
}

/// Asks `poll` about all descriptors that may be open at once: it tells which are closed, and whose other end is.
fn peek_descriptors(
    operation: &mut Operation,
    arguments: &Arguments<'_>,
    leftovers: &mut Leftovers,
) -> Result<(), String> {
    operation.steps(list_descriptors, [arguments.flag(0)?.into(), leftovers.descriptor_limit()]);
    Ok(())
}

fn list_descriptors(operation: &mut Operation) -> i64 {
    operation.report.clear();
    let limit = operation.arguments[1];
    if limit == 0 {
        return 0;
    }
    for (descriptor, polled) in (0..limit).zip(operation.list.words_mut()) {
        *polled = descriptor; // and no events: those that are looked for are always reported
    }
    step!(system_call(libc::SYS_poll, [operation.list.address(), limit, 0]));
    for descriptor in 0..limit {
        let told = (operation.list.words_mut()[descriptor as usize] >> 48) as i16;
        if told & libc::POLLNVAL == 0 {
            step!(push_descriptor(operation, descriptor, told & (libc::POLLHUP | libc::POLLERR) == 0));
        }
    }
    0
}

fn push_descriptor(operation: &mut Operation, descriptor: u64, peer_open: bool) -> i64 {
    step!(system_call(libc::SYS_fstat, [descriptor, operation.stat_address()]));
    let status = Status::of(operation.stat());
    let mode = step!(system_call(libc::SYS_fcntl, [descriptor, libc::F_GETFL as u64])) & i64::from(libc::O_ACCMODE);
    let readable = mode == i64::from(libc::O_RDONLY) || mode == i64::from(libc::O_RDWR);
    let writable = mode == i64::from(libc::O_WRONLY) || mode == i64::from(libc::O_RDWR);
    let offset = match status.pipe {
        true => 0,
        false => step!(system_call(libc::SYS_lseek, [descriptor, 0, libc::SEEK_CUR as u64])),
    };
    operation.report.push(descriptor.cast_signed());
    push_status(&mut operation.report, status);
    for flag in [status.pipe && writable, status.pipe && peer_open] {
        operation.report.push(flag.into());
    }
    operation.report.push(offset);
    for flag in [readable, writable] {
        operation.report.push(flag.into());
    }
    if readable {
        return push_open(operation, descriptor, status);
    }
    // Opening again takes longer than all else, so only if there is something to read.
    if step!(bytes_to_read(operation, descriptor, status)) == 0 {
        return push_no_contents(operation);
    }
    let mut path = Path::default();
    path.set_number(descriptor);
    let flags = (libc::O_RDONLY | libc::O_NONBLOCK) as u64;
    let again = step!(system_call(libc::SYS_openat, [held::OWN, path.address(), flags])).cast_unsigned();
    let result = push_open(operation, again, status);
    system_call(libc::SYS_close, [again]);
    result
}

/// How much a file holds, or waits in the pipe of either end.
fn bytes_to_read(operation: &mut Operation, descriptor: u64, status: Status) -> i64 {
    if !status.pipe {
        return status.size_bytes;
    }
    let waiting = operation.numbers.as_mut_ptr() as u64;
    step!(system_call(libc::SYS_ioctl, [descriptor, libc::FIONREAD, waiting]));
    operation.numbers[0].into()
}

fn push_open(operation: &mut Operation, descriptor: u64, status: Status) -> i64 {
    if status.pipe { push_pipe(operation, descriptor) } else { push_file(operation, descriptor, status.size_bytes) }
}

/// Writes the pages that wait in a pipe, without taking them.
fn push_pipe(operation: &mut Operation, read_end: u64) -> i64 {
    const EVERYTHING: u64 = 16 * PAGE_BYTES as u64;
    let place = begin_contents(&mut operation.report);
    let [copies, copy_to] = held::SCRATCH_PIPE;
    let nothing_yet = -i64::from(libc::EAGAIN);
    let copied = system_call(libc::SYS_tee, [read_end, copy_to, EVERYTHING, u64::from(libc::SPLICE_F_NONBLOCK)]);
    if copied != nothing_yet {
        step!(copied);
    }
    let mut count = 0;
    loop {
        let size = system_call(libc::SYS_read, [copies, operation.page.address(), PAGE_BYTES as u64]);
        if size == nothing_yet {
            break;
        }
        let found = if step!(size) == PAGE { content(operation.page.uniform()) } else { content(None) };
        operation.report.push(found);
        count += 1;
    }
    end_contents(&mut operation.report, place, count);
    0
}

fn descriptor(numbers: &mut Numbers<'_>, times: bool, results: &mut ResultsWriter) {
    results.structure(8);
    results.field("fd");
    results.number(next(numbers));
    results.field("stat");
    read_status(numbers).write(times, results);
    for name in ["write_end", "peer_open"] {
        results.field(name);
        results.flag(next(numbers) != 0);
    }
    results.field("offset");
    super::pages(next(numbers), results);
    for name in ["readable", "writable"] {
        results.field(name);
        results.flag(next(numbers) != 0);
    }
    results.field("contents");
    contents(numbers, results);
}

/// Lists the pages that the process may have mapped: their number.
fn list_pages(operation: &mut Operation, leftovers: &Leftovers) -> Result<u64, String> {
    let mut count = 0;
    for page in leftovers.pages() {
        let room = operation.list.words_mut().get_mut(count);
        *room.ok_or_else(|| format!("{} mapped pages: more than the runner can list", count + 1))? = page;
        count += 1;
    }
    Ok(count as u64)
}

/// The addresses of the list that are mapped, each with its number among them.
fn for_each_mapped(operation: &mut Operation, mut visit: impl FnMut(&mut Report, u64, u64)) -> i64 {
    operation.report.clear();
    let mut count = 0;
    for place in 0..usize::try_from(operation.arguments[0]).unwrap_or_default() {
        let address = operation.list.words_mut()[place];
        // Starts nothing without a file to write back: the cheapest call that tells what is not mapped (ENOMEM).
        match system_call(libc::SYS_msync, [address, PAGE_BYTES as u64, libc::MS_ASYNC as u64]) {
            result if result == -i64::from(libc::ENOMEM) => {}
            result => {
                step!(result);
                visit(&mut operation.report, address, count);
                count += 1;
            }
        }
    }
    0
}

fn peek_memory(operation: &mut Operation, _: &Arguments<'_>, leftovers: &mut Leftovers) -> Result<(), String> {
    let count = list_pages(operation, leftovers)?;
    operation.steps(
        |operation| {
            for_each_mapped(operation, |report, address, _| {
                let (signal, found) = match access::load(address, Marks::None) {
                    // SAFETY: a page of the test that can be read, as the load has just shown; no one writes to it now.
                    Ok(_) => (0, content(uniform(unsafe { &*(address as *const [u8; PAGE_BYTES]) }))),
                    Err(fault) => (i64::from(fault.0), 0),
                };
                for number in [address.cast_signed(), signal, found] {
                    report.push(number);
                }
            })
        },
        [count],
    );
    Ok(())
}

fn mapped_page(numbers: &mut Numbers<'_>, process: usize, results: &mut ResultsWriter) {
    results.structure(2);
    results.field("address");
    reserved::write(process, next(numbers).cast_unsigned(), results);
    results.field("content");
    let (raised, found) = (next(numbers), next(numbers));
    if raised == 0 { results.number(found) } else { signal(raised, results) }
}

/// A signal; nothing for 0.
fn signal(number: i64, results: &mut ResultsWriter) {
    match u8::try_from(number) {
        Ok(0) => results.null(),
        number => results.signal(number.unwrap_or_default()),
    }
}

fn probe_memory(operation: &mut Operation, arguments: &Arguments<'_>, leftovers: &mut Leftovers) -> Result<(), String> {
    let (first, count) = (byte(arguments, 0)?, list_pages(operation, leftovers)?);
    operation.steps(
        |operation| {
            let first = operation.arguments[1];
            for_each_mapped(operation, |report, address, number| {
                let stored = access::store(address, ((first + number) & 0xff) as u8, Marks::None);
                report.push(stored.map_or_else(|fault| i64::from(fault.0), |()| 0));
            })
        },
        [count, first.into()],
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_records_give_their_names() {
        let mut list = Vec::new();
        for name in ["a", "..", "longer"] {
            let length = (19 + name.len() + 1).next_multiple_of(8);
            let start = list.len();
            list.resize(start + length, 0);
            list[start + 16..start + 18].copy_from_slice(&(length as u16).to_le_bytes());
            list[start + 19..start + 19 + name.len()].copy_from_slice(name.as_bytes());
        }
        let mut start = 0;
        let names = std::iter::from_fn(|| {
            let (name, next) = record(&list, start)?;
            start = next;
            Some(&list[name])
        });
        assert_eq!(names.collect::<Vec<_>>(), [&b"a"[..], b"..", b"longer"]);
        assert_eq!(record(&list[..10], 0), None);
    }

    /// What a function writes, as people read it.
    fn written(write: impl FnOnce(&mut ResultsWriter)) -> String {
        let mut results = ResultsWriter::start(Vec::new(), 0);
        let place = results.place();
        write(&mut results);
        results.value_at(place).unwrap().to_string()
    }

    #[test]
    fn entries_stand_by_their_names() {
        let mut operation = Operation::default();
        for name in ["n1", "m", "n", "n10"] {
            operation.report.push(name.len() as i64);
            for number in name.bytes().map(i64::from).chain([4096; 6]).chain([2, 5, 6]) {
                operation.report.push(number);
            }
        }
        let text = written(|results| write_directory(&operation, false, results));
        let names: Vec<&str> = text.split("name: ").skip(1).map(|rest| rest.split(',').next().unwrap()).collect();
        assert_eq!(names, ["\"m\"", "\"n\"", "\"n1\"", "\"n10\""]);
        assert_eq!(text.matches("contents: [5, 6]").count(), 4);
    }

    #[test]
    fn a_report_that_is_too_long_equals_nothing() {
        let mut operation = Operation::default();
        while operation.report.numbers().is_some() {
            operation.report.push(0);
        }
        let listed = written(|results| write(&operation, results, |numbers, results| results.number(next(numbers))));
        assert_eq!(listed, "[\"more than the runner can report\"]");
        assert_eq!(written(|results| write_directory(&operation, false, results)), listed);
    }
}
