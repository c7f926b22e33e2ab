//! Memory of a test's processes: its addresses as tests know them, and set-up and observation of it.
//!
//! Page *i* of a test lies at 4096·*i* behind [`BASE`], in the address space of its process. Addresses that the implementation
//! chose lie elsewhere, and are opaque values.

use posix_calls::data::{self, DescriptorOptions};
use posix_calls::memory::{self, Address, MappedObject};
use posix_calls::{AccessError, Errno, MemoryOperations, OpenFlags, Protection, Sharing};
use runner::arguments::{Arguments, Number};
use wire::value::Value;

use crate::calls::{self, Map};
use crate::outside::{Outcome, PASSING};
use crate::subject::Subject;
use crate::values::{PAGE_BYTES, page};

/// Address of page 0 of every test.
const BASE: u64 = 1 << 30;
/// Pages that tests can name.
const NAMED_PAGES: u64 = 256;
/// Pages whose nodes are there from the beginning.
const TOUCHED_PAGES: u64 = 32;
const PAGE: u64 = PAGE_BYTES as u64;
/// Where the number of the process stands in what tells a chosen address from all others.
const PROCESS_SHIFT: u32 = 56;

/// The address that an argument names: a test's page, or one that the implementation chose in this process.
///
/// # Errors
/// It is out of range, or was chosen in another process.
pub fn address(process: usize, arguments: &Arguments<'_>, parameter: usize) -> Result<u64, String> {
    match arguments.given_or_chosen(parameter)? {
        Number::Given(page) => match u64::try_from(page) {
            Ok(page) if page < NAMED_PAGES => Ok(BASE + page * PAGE),
            _ => Err(format!("address {page}: expected a page from 0 to {}", NAMED_PAGES - 1)),
        },
        Number::Chosen(identity) if identity >> PROCESS_SHIFT == process as u64 => {
            Ok(identity & ((1 << PROCESS_SHIFT) - 1))
        }
        Number::Chosen(identity) => {
            Err(format!("an address of process {}, used in process {process}", identity >> PROCESS_SHIFT))
        }
    }
}

/// The page that lies at an address, if tests can name it.
pub fn page_of(address: u64) -> Option<i64> {
    let page = address.checked_sub(BASE)? / PAGE;
    i64::try_from(page).ok().filter(|_| page < NAMED_PAGES)
}

/// The value for an address that the implementation chose.
pub fn chosen(process: usize, address: u64) -> Value<'static> {
    Value::Opaque { sort: "Address".into(), id: address | (process as u64) << PROCESS_SHIFT }
}

/// Protection of memory that can be read, and perhaps written.
pub fn protection(writable: bool) -> Protection {
    if writable { Protection::ReadWrite } else { Protection::Read }
}

/// MAP_SHARED or MAP_PRIVATE.
pub fn sharing(shared: bool) -> Sharing {
    if shared { Sharing::Shared } else { Sharing::Private }
}

/// The signal that a fault is on Linux.
pub fn signal<F>(fault: AccessError<F>) -> u8 {
    match fault {
        AccessError::Segment => libc::SIGSEGV as u8,
        AccessError::Bus | AccessError::Fault(_) => libc::SIGBUS as u8,
        AccessError::OutOfMemory => libc::SIGKILL as u8,
    }
}

/// Maps a page of the file at `path`, which has no descriptor in the process afterwards.
pub fn map_file<S: Subject>(actor: &S, process: usize, path: &[u8], map: Map, may_write: bool) -> Outcome {
    let flags = if may_write { OpenFlags::READ | OpenFlags::WRITE } else { OpenFlags::READ };
    let options = DescriptorOptions { number: PASSING, ..DescriptorOptions::PLAIN };
    let fd = calls::open(&actor.enter(process), path, flags, options)?;
    let MappedObject::File { offset, sharing, .. } = map.object else { return Err(Errno::EINVAL) };
    let verbs = actor.enter(process);
    memory::map(&verbs, map.address, PAGE, map.protection, MappedObject::File { fd, offset, sharing })?;
    data::close(&verbs, fd).map(|()| Value::Null)
}

/// All pages that are mapped: those that tests can name by address, then those that were chosen by the order of the calls.
fn pages<S: Subject>(actor: &S, process: usize, chosen: &[u64]) -> Vec<u64> {
    let mut addresses: Vec<u64> = actor.mapped_pages(process).into_iter().map(|page| page * PAGE).collect();
    // An address may have been chosen, given back, and chosen again.
    let place = |address: &u64| chosen.iter().rposition(|other| other == address).map_or(0, |place| place + 1);
    addresses.sort_by_key(place);
    addresses
}

/// A load of each page that is mapped.
pub fn peek<S: Subject>(actor: &S, process: usize, chosen_in_order: &[u64]) -> Outcome {
    let verbs = actor.enter(process);
    let mut bytes = [0; PAGE_BYTES];
    let views = pages(actor, process, chosen_in_order).into_iter().map(|address| {
        let content = match verbs.load(address, &mut bytes) {
            Ok(()) => page(&bytes),
            Err(fault) => Value::Signal(signal(fault)),
        };
        let address = page_of(address).map_or_else(|| chosen(process, address), Value::Int);
        Value::Struct(vec![("address".into(), address), ("content".into(), content)])
    });
    Ok(Value::Seq(views.collect()))
}

/// A store to each page that is mapped, of `first` and the bytes that follow it.
pub fn probe<S: Subject>(actor: &S, process: usize, chosen_in_order: &[u64], first: u8) -> Outcome {
    let verbs = actor.enter(process);
    let stored = pages(actor, process, chosen_in_order).into_iter().zip(0_u8..).map(|(address, number)| {
        let stored = verbs.store(address, &[first.wrapping_add(number); PAGE_BYTES]);
        stored.map_or_else(|fault| Value::Signal(signal(fault)), |()| Value::Null)
    });
    Ok(Value::Seq(stored.collect()))
}

/// Unmaps everything of a process, page by page: what stands for the pages stays.
pub fn unmap_all<S: Subject>(actor: &S, process: usize) -> Outcome {
    for address in pages(actor, process, &[]) {
        calls::munmap(actor, process, address)?;
    }
    Ok(Value::Null)
}

/// Touches pages of a process on this core, and one that is chosen, so that the nodes that stand for them are there, as they
/// are where a program has mapped other pages nearby.
pub fn touch_all<S: Subject>(actor: &S, process: usize) -> Outcome {
    let fixed = (0..TOUCHED_PAGES).map(|page| Address::Fixed(BASE + page * PAGE));
    for address in fixed.chain([Address::Any]) {
        let map = Map { address, protection: Protection::ReadWrite, object: MappedObject::Anonymous };
        let address = calls::mmap(actor, process, map)?;
        let touched =
            calls::memread(actor, process, address).and_then(|byte| calls::memwrite(actor, process, address, &[byte]));
        touched.map_err(|_| Errno::ENOMEM)?;
        calls::munmap(actor, process, address)?;
    }
    Ok(Value::Null)
}
