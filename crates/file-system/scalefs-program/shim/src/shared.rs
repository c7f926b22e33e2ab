//! Files of the tree that are mapped for all to see: pages of the pool at addresses of the program.
//!
//! ```text
//! mmap    addresses behind the end of the instance's memory, where an access raises SIGBUS │ a mapping in the instance, which keeps
//!         the file │ an entry of the table that all processes share │ what pages there are, put at their addresses
//! SIGBUS  the file has the page by now: it is put there, and the instruction is made again. Else the signal is the program's
//! a cut   of this process: its addresses lead behind the end again. Of another: a signal (SIGSYS), whose handler does that
//! ```
//! A cut waits for that with the pages' locks held, before others can have the pages. So who puts pages there looks whether there
//! was one since it found them. Who changes what lies at addresses has a lock, with all signals blocked, and makes no call of the
//! instance meanwhile.

use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use percpu::OwnerId;
use scalefs::memory::{self, Address, Destination, MappedObject};
use scalefs::{DataOperations, Errno, Fields, FileId, Kind, ObjectOperations, Protection, Sharing, data};
use shared_instance::{BASE, Mapped, Mapping, Mappings, Seat};
use sync::{Wait, WaitReason};

use crate::dispatch::{After, Answer};
use crate::instance::{self, Here, planted};
use crate::mapped;
use crate::signals;
use crate::system::{self, number};
use crate::threads::{self, Thread};

const PAGE_BYTES: u64 = 4096;
const PROT_WRITE: u64 = 2;
const MAP_SHARED: u64 = 1;
const MAP_FIXED: u64 = 0x10;
const MAP_LOCKED: u64 = 0x2000;
const MAP_POPULATE: u64 = 0x8000;
const MAP_FIXED_NOREPLACE: u64 = 0x10_0000;
const MREMAP_MAYMOVE: u64 = 1;
const MREMAP_FIXED: u64 = 2;
/// No address space has more.
const MAX_BYTES: u64 = 1 << 47;
/// So many pages are put in their places when a file is mapped; the others, and those of holes, when they are asked for.
const PAGES_AT_ONCE: u64 = 16 << 10;
/// Pages that follow each other are put in their places by one call of the kernel.
const RUN_PAGES: u64 = 256;
/// So long a cut waits for a process: for one that is stopped, which finds the signal before it goes on, it need not.
const PATIENCE_NS: u64 = 250_000_000;
const ROUNDS_PER_SIGNAL: u32 = 256;

/// A fault that tests plant.
const PUT_FOR_ANOTHER: &str = "shim: pages are put for what was mapped before";

/// Whether the process has ever mapped a file so. Atomic.
static ANY: AtomicBool = AtomicBool::new(false);
/// Atomic: who changes what lies at addresses of mappings.
static LOCK: AtomicU32 = AtomicU32::new(0);

/// The right to change what lies at addresses.
struct Held {
    mask: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        LOCK.store(0, Ordering::Release);
        signals::set_mask(self.mask);
    }
}

fn lock() -> Held {
    let mask = signals::block_all();
    let mut round = 0;
    while LOCK.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
        Here.wait(WaitReason::Operation, round);
        round = round.saturating_add(1);
    }
    Held { mask }
}

/// In a child: another thread of the parent may have had the lock.
pub(crate) fn begin_in_child() {
    LOCK.store(0, Ordering::Release);
}

/// Hears of cuts, from the first call on. Nothing is mapped yet.
pub(crate) fn begin(owner: OwnerId) {
    table().release(owner);
    scalefs::hear_of_cuts(cut);
}

fn table() -> &'static Mappings {
    &instance::control().mappings
}

fn end(mapped: &Mapped) -> u64 {
    mapped.address + mapped.pages * PAGE_BYTES
}

/// What the process has mapped; and what its parent has, in whose memory it may run, which keeps the files.
fn of_process(thread: &Thread) -> impl Iterator<Item = (&'static Mapping, Mapped)> {
    entries_of(thread).filter_map(|mapping| Some((mapping, mapping.mapped()?)))
}

fn entries_of(thread: &Thread) -> impl Iterator<Item = &'static Mapping> {
    let home = thread.home();
    table().of(home.owner()).chain(home.lender().into_iter().flat_map(|lender| table().of(lender)))
}

/// Whether files are mapped somewhere in a range.
fn overlaps(thread: &Thread, range: &Range<u64>) -> bool {
    ANY.load(Ordering::Relaxed)
        && of_process(thread).any(|(_, mapped)| mapped.address < range.end && range.start < end(&mapped))
}

/// The range of an argument and a length, if the kernel takes it for one.
fn range(at: u64, length: u64) -> Option<Range<u64>> {
    let is_one = at.is_multiple_of(PAGE_BYTES) && length > 0 && length <= MAX_BYTES && at <= MAX_BYTES;
    is_one.then(|| at..at + length.next_multiple_of(PAGE_BYTES))
}

fn map_memory(at: u64, pages: u64, rights: u64, flags: u64, offset: u64) -> Result<u64, i32> {
    let memory = u64::from(instance::control().descriptors.memory);
    system::try_call(number::MMAP, [at, pages * PAGE_BYTES, rights, flags, memory, offset])
}

/// Where the memory of the instance has ended.
fn behind_end() -> u64 {
    (instance::control().sizes.total_bytes() as u64).next_multiple_of(PAGE_BYTES)
}

/// Puts pages of the pool that follow each other in a place that is ours.
fn put_pages(at: u64, (page, pages): (u32, u64), rights: u32) -> Result<u64, i32> {
    let offset = (instance::control().sizes.pages() - BASE) as u64 + u64::from(page) * PAGE_BYTES;
    map_memory(at, pages, rights.into(), MAP_SHARED | MAP_FIXED, offset)
}

/// Puts no pages there: an access raises SIGBUS.
fn put_nothing(at: u64, pages: u64, rights: u32) {
    // Without room for a further area in the kernel nothing may be done there at all.
    if map_memory(at, pages, rights.into(), MAP_SHARED | MAP_FIXED, behind_end()).is_err() {
        system::call(number::MPROTECT, [at, pages * PAGE_BYTES, 0, 0, 0, 0]);
    }
}

/// mmap of a file of the tree, for all to see.
pub(crate) fn map(thread: &Thread, [at, length, rights, flags, file, offset]: [u64; 6]) -> Result<u64, i32> {
    let number = file as u32;
    let seen = instance::call(thread, |call| {
        let mode = mapped::mode_of(call, number)?;
        let node = data::node(call, number)?;
        let size = if call.objects().kind(node) == Kind::Regular {
            data::stat(call, number, Fields::SIZE)?.size_bytes
        } else {
            0
        };
        Ok((mode, call.mapped_file(node), size))
    });
    let (mode, file, size) = seen.map_err(Errno::number)?;
    if !mode.read || rights & PROT_WRITE != 0 && !mode.write {
        return Err(Errno::EACCES.number());
    }
    let file = file.ok_or(Errno::ENODEV.number())?;
    // What a child of `vfork` maps stays in its parent's memory when it has gone, where no one would take away what is cut off.
    if length > MAX_BYTES || thread.home().lender().is_some() {
        return Err(Errno::ENOMEM.number());
    }
    let pages = length.div_ceil(PAGE_BYTES);
    if flags & MAP_FIXED != 0
        && let Some(range) = range(at, length)
    {
        give_up(thread, range, Left::Reserved)?;
    }
    let address = map_memory(at, pages, rights, flags & !(MAP_POPULATE | MAP_LOCKED), behind_end())?;
    let protection = if mode.write { Protection::ReadWrite } else { Protection::Read };
    let object = MappedObject::File { fd: number, offset, sharing: Sharing::Shared };
    let kept = instance::call(thread, |call| memory::map(call, Address::Fixed(address), length, protection, object));
    if let Err(errno) = kept {
        system::call(number::MUNMAP, [address, length, 0, 0, 0, 0]);
        return Err(errno.number());
    }
    ANY.store(true, Ordering::Relaxed);
    let mapped = Mapped {
        file: file.0,
        first: offset / PAGE_BYTES,
        address,
        pages,
        rights: rights as u32,
        may_write: mode.write,
    };
    let there = size.saturating_sub(offset).div_ceil(PAGE_BYTES).min(pages).min(PAGES_AT_ONCE);
    let made = make(thread, mapped).ok_or(Errno::ENOMEM.number());
    match made.and_then(|mapping| put(thread, mapping, 0..there, Holes::Stay)) {
        Ok(_) => Ok(address),
        Err(errno) => {
            give_up(thread, address..address + pages * PAGE_BYTES, Left::Nothing)?;
            Err(errno)
        }
    }
}

/// A new entry of the table.
fn make(thread: &Thread, mapped: Mapped) -> Option<&'static Mapping> {
    let home = thread.home();
    // What a child of `vfork` divides stays its parent's.
    table().make(home.lender().unwrap_or(home.owner())).inspect(|mapping| mapping.set(mapped))
}

/// What becomes of holes in a file whose pages are put in their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holes {
    /// They stay holes, and nothing is put there.
    Stay,
    /// A program wants what is there.
    GetPages,
}

/// Puts what pages the file has in their places, of those with these numbers in the mapping; returns how many.
fn put(thread: &Thread, mapping: &Mapping, wanted: Range<u64>, holes: Holes) -> Result<u64, i32> {
    let Some(mapped) = mapping.mapped() else { return Ok(0) };
    let (mut next, mut done) = (wanted.start, 0);
    while next < wanted.end {
        let cuts = mapping.cuts();
        let (mut first, mut count) = (0, 0);
        let mut has_ended = false;
        while next + count < wanted.end && count < RUN_PAGES {
            let found = instance::call(thread, |call| {
                // As long as there is the entry, the process has the mapping, which keeps the file in this call.
                if mapping.mapped() != Some(mapped) {
                    return Ok(None);
                }
                let (file, index) = (FileId(mapped.file), mapped.first + next + count);
                // SAFETY: as was seen just now.
                unsafe {
                    match holes {
                        Holes::GetPages => Ok(call.page_of(file, index)?.map(|page| (index, page))),
                        Holes::Stay => call.next_page_of(file, index, mapped.first + wanted.end),
                    }
                }
            });
            match found {
                Ok(Some((index, page))) if count == 0 => (next, first, count) = (index - mapped.first, page, 1),
                Ok(Some((index, page)))
                    if index == mapped.first + next + count && u64::from(page) == u64::from(first) + count =>
                {
                    count += 1;
                }
                Ok(Some(_)) => break,
                Ok(None) | Err(_) => {
                    has_ended = true;
                    break;
                }
            }
        }
        if count > 0 {
            if holes == Holes::GetPages {
                instance::pause_if_planted(&["shim: pages are put slowly", PUT_FOR_ANOTHER]);
            }
            let _held = lock();
            if mapping.mapped() != Some(mapped) {
                return Ok(done);
            }
            if mapping.cuts() != cuts && !planted(PUT_FOR_ANOTHER) || mapping.asked().is_some() {
                continue;
            }
            put_pages(mapped.address + next * PAGE_BYTES, (first, count), mapped.rights)?;
        }
        next += count;
        done += count;
        if has_ended {
            // The file ends here, only holes follow, or there is no room for what is in one.
            break;
        }
    }
    Ok(done)
}

/// What is left at addresses of which a mapping is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// Nothing: others may be given them.
    Nothing,
    /// A place for what the caller puts there.
    Reserved,
}

/// Takes a range out of an entry. The caller has the lock.
fn take_out(thread: &Thread, (mapping, mapped): (&Mapping, Mapped), range: &Range<u64>) -> Result<(), i32> {
    let pages = |bytes: u64| bytes / PAGE_BYTES;
    let behind = |from: u64| Mapped {
        address: from,
        first: mapped.first + pages(from - mapped.address),
        pages: pages(end(&mapped) - from),
        ..mapped
    };
    match (mapped.address < range.start, range.end < end(&mapped)) {
        (false, false) => mapping.clear(),
        (true, false) => mapping.set(Mapped { pages: pages(range.start - mapped.address), ..mapped }),
        (false, true) => mapping.set(behind(range.end)),
        (true, true) => {
            let rest = make(thread, behind(range.end)).ok_or(Errno::ENOMEM.number())?;
            if let Some(first) = mapping.asked() {
                rest.ask_to_take_away(first);
            }
            mapping.set(Mapped { pages: pages(range.start - mapped.address), ..mapped });
        }
    }
    Ok(())
}

/// Gives up what is mapped in a range.
fn give_up(thread: &Thread, range: Range<u64>, left: Left) -> Result<(), i32> {
    if !overlaps(thread, &range) {
        return Ok(());
    }
    let length = range.end - range.start;
    {
        let _held = lock();
        for (mapping, mapped) in of_process(thread) {
            if mapped.address < range.end && range.start < end(&mapped) {
                take_out(thread, (mapping, mapped), &range)?;
                let (from, to) = (mapped.address.max(range.start), end(&mapped).min(range.end));
                if left == Left::Reserved {
                    put_nothing(from, (to - from) / PAGE_BYTES, 0);
                }
            }
        }
        if left == Left::Nothing {
            system::try_call(number::MUNMAP, [range.start, length, 0, 0, 0, 0])?;
        }
    }
    // The file is given up, if this was the last of it.
    instance::call(thread, |call| memory::unmap(call, range.start, length)).map_err(Errno::number)
}

/// munmap.
pub(crate) fn unmap(thread: &mut Thread, call: (u64, [u64; 6])) -> Answer {
    match range(call.1[0], call.1[1]).filter(|range| overlaps(thread, range)) {
        Some(range) => answer(give_up(thread, range, Left::Nothing).map(|()| 0)),
        None => Answer::issue(thread, call.0, call.1, After::Nothing),
    }
}

fn answer(outcome: Result<u64, i32>) -> Answer {
    match outcome {
        Ok(result) => Answer::Done(result as i64),
        Err(errno) => Answer::number(errno),
    }
}

/// Something else is to be mapped at fixed addresses: what is mapped there is given up.
pub(crate) fn make_room(thread: &Thread, [at, length, _, flags, ..]: [u64; 6]) {
    if flags & MAP_FIXED != 0
        && flags & MAP_FIXED_NOREPLACE == 0
        && let Some(range) = range(at, length)
    {
        let _ = give_up(thread, range, Left::Reserved);
    }
}

/// mprotect: notes what may be done with mapped files; the kernel does the rest.
///
/// # Errors
/// EACCES for a file that was not open for writing.
pub(crate) fn protect(thread: &Thread, [at, length, rights, ..]: [u64; 6]) -> Result<(), i32> {
    let Some(range) = range(at, length).filter(|range| overlaps(thread, range)) else { return Ok(()) };
    let _held = lock();
    let concerned = |mapped: &Mapped| mapped.address < range.end && range.start < end(mapped);
    if rights & PROT_WRITE != 0 && of_process(thread).any(|(_, mapped)| concerned(&mapped) && !mapped.may_write) {
        return Err(Errno::EACCES.number());
    }
    for (mapping, mapped) in of_process(thread) {
        let rights = rights as u32 & 7;
        if !concerned(&mapped) || mapped.rights == rights {
            continue;
        }
        let inner = mapped.address.max(range.start)..end(&mapped).min(range.end);
        let changed = Mapped {
            first: mapped.first + (inner.start - mapped.address) / PAGE_BYTES,
            address: inner.start,
            pages: (inner.end - inner.start) / PAGE_BYTES,
            rights,
            ..mapped
        };
        if changed.pages == mapped.pages {
            mapping.set(changed);
            continue;
        }
        let made = make(thread, changed).ok_or(Errno::ENOMEM.number())?;
        if let Some(first) = mapping.asked() {
            made.ask_to_take_away(first);
        }
        take_out(thread, (mapping, mapped), &inner)?;
    }
    Ok(())
}

/// mremap.
pub(crate) fn remap(thread: &mut Thread, call: (u64, [u64; 6])) -> Answer {
    let [at, old_length, new_length, flags, to, _] = call.1;
    // The same pages at further addresses: nothing would tell of those when the file is cut.
    if old_length == 0 && range(at, PAGE_BYTES).is_some_and(|page| overlaps(thread, &page)) {
        return Answer::error(Errno::EINVAL);
    }
    if flags & MREMAP_FIXED != 0
        && let Some(target) = range(to, new_length)
        && !range(at, old_length).is_some_and(|range| overlaps(thread, &range))
    {
        // Something else comes in the place of a mapped file.
        let _ = give_up(thread, target, Left::Reserved);
    }
    let Some(old) = range(at, old_length).filter(|range| overlaps(thread, range)) else {
        return Answer::issue(thread, call.0, call.1, After::Nothing);
    };
    let Some(new) = range(at, new_length) else { return Answer::error(Errno::EINVAL) };
    if flags & !(MREMAP_MAYMOVE | MREMAP_FIXED) != 0 || flags == MREMAP_FIXED {
        return Answer::error(Errno::EINVAL);
    }
    if flags & MREMAP_FIXED == 0 && new.end <= old.end {
        let gone = new.end..old.end;
        return answer(if gone.is_empty() { Ok(()) } else { give_up(thread, gone, Left::Nothing) }.map(|()| at));
    }
    answer(move_to(thread, old, new.end - new.start, if flags & MREMAP_FIXED != 0 { Some(to) } else { None }, flags))
}

/// Moves a mapping to where there is room for a longer one.
fn move_to(thread: &Thread, old: Range<u64>, length: u64, to: Option<u64>, flags: u64) -> Result<u64, i32> {
    let whole = of_process(thread).find(|(_, mapped)| mapped.address <= old.start && old.end <= end(mapped));
    let Some((_, mapped)) = whole else { return Err(Errno::EFAULT.number()) };
    let (pages, rights) = (length / PAGE_BYTES, u64::from(mapped.rights));
    let old_length = old.end - old.start;
    let first = mapped.first + (old.start - mapped.address) / PAGE_BYTES;
    let moved = |address| Mapped { first, address, pages, ..mapped };
    let more = length.saturating_sub(old_length) / PAGE_BYTES;
    // Where it is, if no one has what follows.
    if to.is_none() && old.end == end(&mapped) {
        let flags = MAP_SHARED | MAP_FIXED_NOREPLACE;
        if map_memory(old.end, more, rights, flags, behind_end()) == Ok(old.end) {
            let place = Destination::Same;
            return settle(thread, old.clone(), length, place, moved(old.start), old.start).inspect_err(|_| {
                system::call(number::MUNMAP, [old.end, more * PAGE_BYTES, 0, 0, 0, 0]);
            });
        }
    }
    if flags & MREMAP_MAYMOVE == 0 {
        return Err(Errno::ENOMEM.number());
    }
    let fixed = match to {
        Some(to) => {
            let target = range(to, length).ok_or(Errno::EINVAL.number())?;
            if target.start < old.end && old.start < target.end {
                return Err(Errno::EINVAL.number());
            }
            give_up(thread, target, Left::Reserved)?;
            MAP_FIXED
        }
        None => 0,
    };
    let address = map_memory(to.unwrap_or(0), pages, rights, MAP_SHARED | fixed, behind_end())?;
    settle(thread, old, length, Destination::Fixed(address), moved(address), address).inspect_err(|_| {
        system::call(number::MUNMAP, [address, length, 0, 0, 0, 0]);
    })
}

/// A mapping of the instance gets its new length and place, and its pages.
fn settle(
    thread: &Thread,
    old: Range<u64>,
    length: u64,
    place: Destination,
    moved: Mapped,
    address: u64,
) -> Result<u64, i32> {
    let old_length = old.end - old.start;
    instance::call(thread, |call| memory::remap(call, old.start, old_length, length, place)).map_err(Errno::number)?;
    let made = make(thread, moved).ok_or(Errno::ENOMEM.number())?;
    {
        let _held = lock();
        for (mapping, mapped) in of_process(thread) {
            if !core::ptr::eq(mapping, made) && mapped.address < old.end && old.start < end(&mapped) {
                if let Some(first) = mapping.asked() {
                    made.ask_to_take_away(first);
                }
                take_out(thread, (mapping, mapped), &old)?;
            }
        }
        if address != old.start {
            system::call(number::MUNMAP, [old.start, old_length, 0, 0, 0, 0]);
        }
    }
    put(thread, made, 0..moved.pages.min(PAGES_AT_ONCE), Holes::Stay)?;
    Ok(address)
}

/// An access to an address has raised SIGBUS: whether it may be made again.
pub(crate) fn fault(thread: &Thread, address: u64) -> bool {
    if !ANY.load(Ordering::Relaxed) || planted("shim: what a file has got since it was mapped is not there") {
        return false;
    }
    loop {
        let at = of_process(thread).find(|(_, mapped)| (mapped.address..end(mapped)).contains(&address));
        let Some((mapping, mapped)) = at else { return false };
        let index = (address - mapped.address) / PAGE_BYTES;
        match put(thread, mapping, index..index + 1, Holes::GetPages) {
            // Another thread has changed what is mapped around it.
            Ok(0) if mapping.mapped() != Some(mapped) => {}
            put => return put.is_ok_and(|done| done > 0),
        }
    }
}

/// Takes from this process what others have cut off.
pub(crate) fn take_away() {
    if !ANY.load(Ordering::Relaxed) {
        return;
    }
    let _held = lock();
    for mapping in entries_of(threads::this()) {
        while let Some(first) = mapping.asked() {
            let Some(mapped) = mapping.mapped() else { break };
            let skipped = first.saturating_sub(mapped.first);
            if skipped < mapped.pages {
                put_nothing(mapped.address + skipped * PAGE_BYTES, mapped.pages - skipped, mapped.rights);
            }
            mapping.answer(first);
        }
    }
}

/// Pages are no more a file's, from one on: no process has them when this returns. Called with their locks held.
fn cut(file: FileId, pages: &Range<u64>) {
    const SIGSYS: u64 = 31;
    let all = table().all();
    if all.is_empty() || planted("shim: what was cut off stays mapped") {
        return;
    }
    let concerned = |mapping: &Mapping| {
        mapping.mapped().is_some_and(|mapped| mapped.file == file.0 && mapped.first + mapped.pages > pages.start)
    };
    // Twice: an entry that was divided meanwhile is one of two then.
    for _ in 0..2 {
        for mapping in table().all().iter().filter(|mapping| concerned(mapping)) {
            mapping.ask_to_take_away(pages.start);
        }
    }
    take_away();
    if planted("shim: what others have mapped is not asked back") {
        return;
    }
    let ask = |seat: &Seat| {
        if let Some(process) = seat.process() {
            system::call(number::KILL, [process as u64, SIGSYS, 0, 0, 0, 0]);
        }
    };
    let (began, mut round) = (clock(), 0_u32);
    loop {
        let mut waits = false;
        for mapping in table().all().iter().filter(|mapping| concerned(mapping) && mapping.asked().is_some()) {
            let Some(owner) = mapping.owner() else { continue };
            let asks = round.is_multiple_of(ROUNDS_PER_SIGNAL);
            // Who runs in its memory (`vfork`) hears it where the process itself waits for that, or was killed.
            let mut is_there = false;
            for seat in instance::control().seats.all().iter().filter(|seat| has_memory_of(seat, owner)) {
                is_there = true;
                if asks {
                    ask(seat);
                }
            }
            if is_there {
                waits = true;
            } else {
                // It has ended.
                mapping.clear_of(owner);
            }
        }
        if !waits || clock().saturating_sub(began) > PATIENCE_NS {
            return;
        }
        Here.wait(WaitReason::Operation, round);
        round = round.saturating_add(1);
    }
}

/// Whether a process has what an owner has mapped: its own, or that of who has lent it the memory.
fn has_memory_of(seat: &Seat, owner: OwnerId) -> bool {
    seat.owner() == Some(owner) || seat.lender() == Some(owner) && !planted("shim: who borrows memory is not asked")
}

fn clock() -> u64 {
    use scalefs::Host;
    Here.now_ns()
}
