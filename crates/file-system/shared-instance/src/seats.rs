//! A seat per process of the host, with what one program of it hands to the next one at `exec`.

use core::cell::UnsafeCell;

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use percpu::OwnerId;
use scalefs::{Credentials, HandedOver, MAX_GROUPS};

/// Most processes at a time.
const SEATS: usize = 4096;
/// Longest path of a program, in bytes.
const MAX_PATH_BYTES: usize = 4095;
/// Owners below are the supervisor's.
const FIRST_OWNER: u64 = 16;

/// The processes that are there.
#[repr(C)]
pub struct Seats {
    /// Atomic: names that were given out.
    owners: AtomicU64,
    /// Atomic: how often a seat was taken: who waits for deaths looks again.
    taken: AtomicU32,
    /// Atomic: no seat from here on was ever taken.
    end: AtomicU32,
    seats: [Seat; SEATS],
}

/// What a program finds that begins in a process.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The process of the instance.
    pub process: HandedOver,
    /// Whether it works in the tree, and not in a directory of the host's.
    pub works_inside: bool,
    /// As whom its first thread acts.
    pub credentials: Credentials,
}

/// A process of the host.
#[repr(C, align(64))]
pub struct Seat {
    /// Atomic: under which name it claims cores; zero if no one sits here.
    owner: AtomicU64,
    /// Atomic: who has taken it, for another: an owner, or zero.
    taker: AtomicU64,
    /// Atomic: the lower half of the owner's number, and below it that of the process; zero there until it is known.
    process: AtomicU64,
    works_inside: AtomicU32,
    /// Atomic: the owner of the process in whose memory this one runs; zero if it has its own.
    lender: AtomicU64,
    /// Atomic: the number of the file of the tree that the process runs; zero if its program is none of the tree's.
    program_inode: AtomicU64,
    /// Atomic: bits of a process of the instance on its way.
    handed_over: [AtomicU64; 2],
    /// Atomic words: user, group, how many further groups, and these.
    credentials: [AtomicU32; 3 + MAX_GROUPS],
    program_bytes: AtomicU32,
    program: UnsafeCell<[u8; MAX_PATH_BYTES + 1]>,
}

// SAFETY: the path is written by who has the seat, and read by who has it afterwards.
unsafe impl Sync for Seat {}

impl Seats {
    /// Takes a seat for a process that is to be; `None` if all are taken. `taker` says whose child it will be.
    pub fn take(&self, taker: Option<OwnerId>) -> Option<(usize, OwnerId)> {
        let owner = OwnerId::new(FIRST_OWNER + self.owners.fetch_add(1, Ordering::Relaxed))?;
        for (number, seat) in self.seats.iter().enumerate() {
            let is_free = seat.owner.load(Ordering::Relaxed) == 0;
            let take = || seat.owner.compare_exchange(0, owner.number(), Ordering::AcqRel, Ordering::Relaxed);
            if is_free && take().is_ok() {
                seat.taker.store(taker.map_or(0, OwnerId::number), Ordering::Release);
                seat.process.store(unknown_of(owner), Ordering::Release);
                self.end.fetch_max((number + 1) as u32, Ordering::Release);
                self.taken.fetch_add(1, Ordering::Release);
                return Some((number, owner));
            }
        }
        None
    }

    /// A seat by its number.
    #[inline]
    pub fn get(&self, number: usize) -> Option<&Seat> {
        self.seats.get(number)
    }

    /// How often a seat was taken so far.
    pub fn taken(&self) -> u32 {
        self.taken.load(Ordering::Acquire)
    }

    /// All seats that were ever taken.
    pub fn all(&self) -> &[Seat] {
        &self.seats[..(self.end.load(Ordering::Acquire) as usize).min(SEATS)]
    }
}

/// What a seat says of the process of an owner that is not known yet.
fn unknown_of(owner: OwnerId) -> u64 {
    owner.number() << 32
}

impl Seat {
    /// Under which name the process claims cores; `None` if no one sits here.
    pub fn owner(&self) -> Option<OwnerId> {
        OwnerId::new(self.owner.load(Ordering::Acquire))
    }

    /// The process's number, once it is known.
    pub fn process(&self) -> Option<i32> {
        Some(self.process.load(Ordering::Acquire) as u32 as i32).filter(|process| *process != 0)
    }

    /// Who has taken it for a child; `None` if no one has, or has died before he could say so.
    pub fn taker(&self) -> Option<OwnerId> {
        OwnerId::new(self.taker.load(Ordering::Acquire))
    }

    /// Says whose seat it is: by the process itself and by its parent, who comes first. Nothing if somebody else sits there by now.
    pub fn set_process(&self, owner: OwnerId, process: i32) {
        let (unknown, known) = (unknown_of(owner), unknown_of(owner) | u64::from(process.cast_unsigned()));
        let _ = self.process.compare_exchange(unknown, known, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Leaves what the next program of the process begins with.
    ///
    /// The caller has the seat. A path that is too long is cut: the caller has looked.
    pub fn set_entry(&self, entry: Entry, program: &[u8]) {
        let [place, number] = entry.process.to_bits();
        self.handed_over[0].store(place, Ordering::Relaxed);
        self.handed_over[1].store(number, Ordering::Relaxed);
        self.works_inside.store(entry.works_inside.into(), Ordering::Relaxed);
        let Credentials { user, group, .. } = entry.credentials;
        let groups = entry.credentials.supplementary();
        let words = [user, group, groups.len() as u32].into_iter().chain(groups.iter().copied());
        self.credentials.iter().zip(words).for_each(|(place, word)| place.store(word, Ordering::Relaxed));
        let length = program.len().min(MAX_PATH_BYTES);
        // SAFETY: only who has the seat writes there, and who has it next reads.
        unsafe { (&mut (*self.program.get()))[..length].copy_from_slice(&program[..length]) };
        self.program_bytes.store(length as u32, Ordering::Release);
    }

    /// What was left by [`Seat::set_entry`], and the path of the program.
    pub fn entry(&self) -> (Entry, &[u8]) {
        let length = (self.program_bytes.load(Ordering::Acquire) as usize).min(MAX_PATH_BYTES);
        let [place, number] = [0, 1].map(|index: usize| self.handed_over[index].load(Ordering::Relaxed));
        let words: [u32; 3 + MAX_GROUPS] =
            core::array::from_fn(|index| self.credentials[index].load(Ordering::Relaxed));
        let groups = &words[3..3 + (words[2] as usize).min(MAX_GROUPS)];
        let entry = Entry {
            credentials: Credentials::new(words[0], words[1], groups).expect("as many as there are"),
            process: HandedOver::from_bits([place, number]),
            works_inside: self.works_inside.load(Ordering::Relaxed) != 0,
        };
        // SAFETY: as above; who has the seat writes no more until this borrow has ended.
        (entry, unsafe { &(&(*self.program.get()))[..length] })
    }

    /// The owner of the process in whose memory this one runs (`vfork`).
    pub fn lender(&self) -> Option<OwnerId> {
        OwnerId::new(self.lender.load(Ordering::Acquire))
    }

    /// Says in whose memory the process runs, if not in its own. The caller has the seat, or has taken it for another.
    pub fn set_lender(&self, lender: Option<OwnerId>) {
        self.lender.store(lender.map_or(0, OwnerId::number), Ordering::Release);
    }

    /// The number of the file of the tree that the process runs; zero if its program is none of the tree's.
    #[inline]
    pub fn program_inode(&self) -> u64 {
        self.program_inode.load(Ordering::Relaxed)
    }

    /// Says which file that is. The caller has the seat, or has taken it for another.
    pub fn set_program_inode(&self, inode: u64) {
        self.program_inode.store(inode, Ordering::Relaxed);
    }

    /// Gives the seat up: what its process had has been ended.
    pub fn leave(&self) {
        self.program_inode.store(0, Ordering::Relaxed);
        self.lender.store(0, Ordering::Relaxed);
        self.process.store(0, Ordering::Relaxed);
        self.taker.store(0, Ordering::Relaxed);
        self.owner.store(0, Ordering::Release);
    }
}
