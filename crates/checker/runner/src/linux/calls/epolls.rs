//! Calls on epoll instances of a process, which the runner holds out of the way of a test's descriptors.

use wire::results::ResultsWriter;

use super::super::held::{self, test_descriptor};
use super::super::leftovers::Leftovers;
use super::super::operation::{Operation, PAGE_BYTES};
use super::super::system_call::system_call;
use super::observation::{next, write};
use super::slots::write_ready;
use super::{LinuxCall, success};
use crate::arguments::Arguments;

pub(super) const CALLS: &[LinuxCall] = &[
    LinuxCall::new("epoll_add", &["epoll", "fd"], epoll_add, success).with_epolls(),
    LinuxCall::new("epoll_del", &["epoll", "fd"], epoll_del, success).with_epolls(),
    LinuxCall::new("epoll_wait", &["epoll", "fd"], epoll_wait, write_events).with_epolls(),
    LinuxCall::new("peek_watches", &["epoll"], peek_watches, |operation, _, results| {
        write(operation, results, |numbers, results| results.number(next(numbers)));
    }),
];

/// What is watched for; the kernel adds hang-ups and errors.
const WATCHED: u32 = (libc::EPOLLIN | libc::EPOLLOUT) as u32;

/// Most events that are asked for at once: more than a test can name descriptors.
const MOST_EVENTS: usize = PAGE_BYTES / size_of::<libc::epoll_event>();

fn epoll(arguments: &Arguments<'_>) -> Result<u64, String> {
    held::epoll(arguments.number(0)?)
}

/// The event as the kernel reads it, in two numbers of the operation: what to look for, and the descriptor.
fn event(operation: &mut Operation, descriptor: u64) -> u64 {
    // `struct epoll_event` is packed: the descriptor's number stands right after the four bytes of the events.
    operation.vectors = [u64::from(WATCHED) | descriptor << 32, 0, 0, 0];
    operation.vectors.as_ptr() as u64
}

fn epoll_add(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    let descriptor = test_descriptor(arguments.number(1)?)?;
    let event = event(operation, descriptor);
    operation.call(libc::SYS_epoll_ctl, [epoll(arguments)?, libc::EPOLL_CTL_ADD as u64, descriptor, event]);
    Ok(())
}

fn epoll_del(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    let descriptor = test_descriptor(arguments.number(1)?)?;
    operation.call(libc::SYS_epoll_ctl, [epoll(arguments)?, libc::EPOLL_CTL_DEL as u64, descriptor]);
    Ok(())
}

/// All events come into the page; the descriptor that the test asks for is kept after what the kernel needs.
fn epoll_wait(operation: &mut Operation, arguments: &Arguments<'_>, _: &mut Leftovers) -> Result<(), String> {
    operation.vectors = [test_descriptor(arguments.number(1)?)?, 0, 0, 0];
    let (events, most) = (operation.page.address(), MOST_EVENTS as u64);
    operation.call(libc::SYS_epoll_wait, [epoll(arguments)?, events, most, 0]);
    Ok(())
}

/// What was reported for the descriptor that is asked for.
fn write_events(operation: &Operation, count: i64, results: &mut ResultsWriter) {
    let count = usize::try_from(count).unwrap_or_default();
    let (told, _) = operation.page.bytes().as_chunks::<{ size_of::<libc::epoll_event>() }>();
    let of = |event: &[u8; 12]| {
        let [a, b, c, d, number @ ..] = *event;
        (u32::from_ne_bytes([a, b, c, d]), u64::from_ne_bytes(number))
    };
    let events = told.iter().take(count).map(of).find(|(_, descriptor)| *descriptor == operation.vectors[0]);
    write_ready(events.map_or(0, |(events, _)| events as libc::c_short), results);
}

/// Gives the process its instances.
pub(in super::super) fn make_epolls(_: &mut Operation) -> i64 {
    for wanted in held::EPOLLS {
        let opened = step!(system_call(libc::SYS_epoll_create1, [0]));
        step!(held::move_to(opened.cast_unsigned(), wanted));
    }
    0
}

fn peek_watches(operation: &mut Operation, arguments: &Arguments<'_>, leftovers: &mut Leftovers) -> Result<(), String> {
    operation.steps(list_watches, [epoll(arguments)?, leftovers.descriptor_limit()]);
    Ok(())
}

/// Who is watched already can be asked to be watched for the same.
fn list_watches(operation: &mut Operation) -> i64 {
    operation.report.clear();
    let [epoll, limit, ..] = operation.arguments;
    for descriptor in 0..limit {
        let event = event(operation, descriptor);
        let changed = system_call(libc::SYS_epoll_ctl, [epoll, libc::EPOLL_CTL_MOD as u64, descriptor, event]);
        if changed == 0 {
            operation.report.push(descriptor.cast_signed());
        }
    }
    0
}
