//! Numbers of descriptors: which are ours, and which the kernel has.
//!
//! ```text
//!                  ours   kernel's   free
//! placeholder in    yes      no      yes or no: it stays when ours is closed, so that open and close ask the kernel nothing
//! the kernel
//! ```
//! A number that the kernel gives while a lower one with a placeholder is free moves down to it. Where the kernel has none left, it
//! gets those that are free back, and is asked again ([`give_back`]). What the kernel has that we have not seen (received in a message,
//! for instance) is found when its number is asked for.
//!
//! A number that is ours is open in the instance, but where a thread is about to open it ([`reserve`], [`take_over`]), or has just
//! closed it and is about to free it. That thread alone may: who wants the number until then waits.
//!
//! A placeholder of a number that is free, and what is hidden, are files for the kernel: calls on such numbers are answered here, with
//! EBADF, by which arguments they have ([`Numbers::is_closed`]).

use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use scalefs::Errno;
use sync::{Wait, WaitReason};

use crate::constants::EMFILE;
use crate::entry::TRACKED;
use crate::home::Home;
use crate::instance::{self, Here};
use crate::system::{self, number};

const OURS: u8 = 1;
const LISTS: u8 = 2;
const CLOSED: u8 = 3;
const KERNEL: u8 = 1;
const PLACED: u8 = 2;
const F_GETFD: u64 = 1;
const F_DUPFD_CLOEXEC: u64 = 1030;
const FD_CLOEXEC: i64 = 1;
const O_CLOEXEC: u64 = 0o2_000_000;

/// Faults that tests plant.
pub(crate) const TAKEN_LATER: &str = "shim: a number is given back while dup2 takes it";
pub(crate) const UNSEEN: &str = "shim: what others give back is not seen";
const ON_ITS_WAY: &str = "shim: dup2 does not wait for who opens or closes";
pub(crate) const SLOWLY: [&str; 2] = ["shim: files are opened and closed slowly", ON_ITS_WAY];

/// See the module's head.
pub(crate) struct Numbers {
    /// Atomic, a byte a number: 1 if it is ours, 2 if it lists numbers of the process, and is the kernel's, 3 if nothing is open
    /// there for the program though the kernel has something, and 0 else.
    ours: [AtomicU8; TRACKED],
    /// Atomic: bits of who has it in the kernel.
    state: [AtomicU8; TRACKED],
    /// Atomic: no number from here on was ever touched.
    end: AtomicU32,
    /// Atomic: no number from here on may be given, as far as we know.
    limit: AtomicU32,
    /// Atomic: how often the kernel got placeholders back.
    given_back: AtomicU32,
}

impl Numbers {
    /// None.
    pub(crate) const fn empty() -> Numbers {
        Numbers {
            ours: [const { AtomicU8::new(0) }; TRACKED],
            state: [const { AtomicU8::new(0) }; TRACKED],
            end: AtomicU32::new(0),
            limit: AtomicU32::new(0),
            given_back: AtomicU32::new(0),
        }
    }

    pub(crate) fn ours(&self) -> *const u8 {
        self.ours.as_ptr().cast()
    }

    /// Whether a descriptor is ours. Of the argument the kernel would look at the lower half alone.
    #[inline]
    pub(crate) fn is_ours(&self, argument: u64) -> bool {
        let number = argument as u32 as usize;
        number < TRACKED && self.ours[number].load(Ordering::Relaxed) == OURS
    }

    fn touch(&self, number: u32) {
        if self.end.load(Ordering::Relaxed) <= number {
            self.end.fetch_max(number + 1, Ordering::Relaxed);
        }
    }

    fn set(&self, number: u32, bit: u8) {
        self.touch(number);
        self.state[number as usize].fetch_or(bit, Ordering::Relaxed);
    }

    fn clear(&self, number: u32, bit: u8) {
        self.state[number as usize].fetch_and(!bit, Ordering::Relaxed);
    }

    fn has(&self, number: u32, bit: u8) -> bool {
        self.state[number as usize].load(Ordering::Relaxed) & bit != 0
    }

    pub(crate) fn set_ours(&self, number: u32) {
        self.touch(number);
        self.ours[number as usize].store(OURS, Ordering::Relaxed);
    }

    /// A number is ours no more; its placeholder stays.
    pub(crate) fn free(&self, number: u32) {
        let is_there = self.has(number, PLACED) || instance::control().descriptors.contains(number);
        let state = if is_there && !instance::planted("shim: a placeholder is an open file") { CLOSED } else { 0 };
        self.ours[number as usize].store(state, Ordering::Relaxed);
    }

    /// Nothing is open for the program under the numbers that are hidden.
    fn hide(&self) {
        for number in instance::control().descriptors.all() {
            if (number as usize) < TRACKED {
                self.free(number);
            }
        }
    }

    /// Whether nothing is open for the program under a number at which the kernel has something.
    #[inline]
    pub(crate) fn is_closed(&self, argument: u64) -> bool {
        let number = argument as u32 as usize;
        number < TRACKED && self.ours[number].load(Ordering::Relaxed) == CLOSED
    }

    /// Whether that may be so of any number below one. What is hidden may lie behind all that was touched.
    pub(crate) fn any_closed(&self, below: u32) -> bool {
        (0..below.min(TRACKED as u32)).any(|number| self.is_closed(number.into()))
    }

    /// The kernel has a number.
    pub(crate) fn note_kernel(&self, number: u64) {
        if let Ok(number) = u32::try_from(number)
            && (number as usize) < TRACKED
        {
            self.set(number, KERNEL);
        }
    }

    /// A number of the kernel's leads to a list of numbers of the process.
    pub(crate) fn note_list(&self, number: u64) {
        if (number as usize) < TRACKED {
            self.touch(number as u32);
            self.ours[number as usize].store(LISTS, Ordering::Relaxed);
        }
    }

    /// It has it no more.
    pub(crate) fn note_closed(&self, number: u64) {
        if (number as usize) < TRACKED {
            self.clear(number as u32, KERNEL | PLACED);
            self.free(number as u32);
        }
    }

    /// The kernel has none of these any more.
    pub(crate) fn note_all_closed(&self, first: u32, last: u32) {
        self.given_back.fetch_add(1, Ordering::Relaxed);
        for number in first..self.end.load(Ordering::Relaxed).min(last.saturating_add(1)) {
            self.clear(number, KERNEL | PLACED);
            if !self.is_ours(u64::from(number)) {
                self.free(number);
            }
        }
    }

    /// What the kernel gives no number from on, which others may have changed.
    pub(crate) fn look_at_limit(&self) {
        const OPEN_FILES: u64 = 7;
        let mut limits = [0_u64; 2];
        system::call(number::GETRLIMIT, [OPEN_FILES, limits.as_mut_ptr() as u64, 0, 0, 0, 0]);
        self.limit.store(limits[0].min(TRACKED as u64) as u32, Ordering::Relaxed);
    }

    /// Takes the placeholder of a number away that is free. The caller has the lock.
    fn take_away(&self, number: u32) {
        system::call(number::CLOSE, [u64::from(number), 0, 0, 0, 0, 0]);
        self.note_closed(u64::from(number));
    }

    /// Numbers that are free, with placeholders.
    fn kept(&self, first: u32) -> impl Iterator<Item = u32> {
        let end = self.end.load(Ordering::Relaxed);
        (first..end).filter(|number| self.has(*number, PLACED) && self.is_free(*number))
    }

    fn is_free(&self, number: u32) -> bool {
        self.ours[number as usize].load(Ordering::Relaxed) != OURS
            && !self.has(number, KERNEL)
            && !instance::control().descriptors.contains(number)
    }

    /// All numbers that are ours, from one on.
    pub(crate) fn all_ours(&self, first: u32, last: u32) -> impl Iterator<Item = u32> {
        let end = self.end.load(Ordering::Relaxed).min(last.saturating_add(1));
        (first..end).filter(|number| self.is_ours(u64::from(*number)))
    }

    pub(crate) fn copy_from(&self, other: &Numbers) {
        let end = other.end.load(Ordering::Relaxed);
        self.end.store(end, Ordering::Relaxed);
        self.limit.store(other.limit.load(Ordering::Relaxed), Ordering::Relaxed);
        for number in 0..end as usize {
            self.ours[number].store(other.ours[number].load(Ordering::Relaxed), Ordering::Relaxed);
            self.state[number].store(other.state[number].load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.hide();
    }
}

/// A number that is to be ours: free again when this is dropped without having been kept.
pub(crate) struct Reserved<'h> {
    home: &'h Home,
    /// The number.
    pub(crate) number: u32,
}

impl Reserved<'_> {
    /// It is ours from now on.
    pub(crate) fn keep(self) -> u32 {
        let number = self.number;
        core::mem::forget(self);
        number
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.home.numbers.free(self.number);
    }
}

/// Takes the lowest free number from one on, with a placeholder in the kernel.
///
/// # Errors
/// EMFILE if the limit is reached.
pub(crate) fn reserve(home: &Home, lowest: u32) -> Result<Reserved<'_>, Errno> {
    let numbers = &home.numbers;
    let _lock = home.lock();
    let mut from = lowest;
    loop {
        let end = numbers.limit.load(Ordering::Relaxed);
        let number = (from..end).find(|number| numbers.is_free(*number)).ok_or(Errno::EMFILE)?;
        if numbers.has(number, PLACED) {
            numbers.set_ours(number);
            return Ok(Reserved { home, number });
        }
        let given = place(number)?;
        numbers.set(given, PLACED);
        if given == number {
            numbers.set_ours(number);
            return Ok(Reserved { home, number });
        }
        numbers.free(given);
        // The kernel has the lower one, without our having seen that.
        numbers.set(number, KERNEL);
        from = lowest;
    }
}

/// The kernel has refused a number, or is to give many by itself: it gets back all that are free, and its limit is looked at again.
/// Whether there are more numbers now.
pub(crate) fn give_back(home: &Home) -> bool {
    if instance::planted("shim: placeholders are never given back") {
        return false;
    }
    let numbers = &home.numbers;
    let _lock = home.lock();
    let limit = numbers.limit.load(Ordering::Relaxed);
    numbers.look_at_limit();
    let has_risen = numbers.limit.load(Ordering::Relaxed) > limit;
    let are_more = numbers.kept(0).inspect(|number| numbers.take_away(*number)).count() > 0 || has_risen;
    numbers.given_back.fetch_add(are_more.into(), Ordering::Relaxed);
    are_more
}

/// Whether the kernel got some from elsewhere since a thread last asked: another thread, or a handler of signals, may have given them
/// back when the kernel had refused the thread's call already.
pub(crate) fn were_given_back(home: &Home, seen: &mut u32) -> bool {
    let times = home.numbers.given_back.load(Ordering::Relaxed);
    core::mem::replace(seen, times) != times && !instance::planted(UNSEEN)
}

/// Whether a number is below the limit.
pub(crate) fn is_allowed(home: &Home, number: u32) -> bool {
    let is_below = || number < home.numbers.limit.load(Ordering::Relaxed);
    is_below() || {
        home.numbers.look_at_limit();
        is_below()
    }
}

/// Puts a placeholder at the lowest number from one on that the kernel has free.
fn place(number: u32) -> Result<u32, Errno> {
    let placeholder = u64::from(instance::control().descriptors.placeholder);
    let arguments = [placeholder, F_DUPFD_CLOEXEC, u64::from(number), 0, 0, 0];
    match system::try_call(number::FCNTL, arguments) {
        Ok(given) if (given as usize) < TRACKED => Ok(given as u32),
        Ok(given) => {
            system::call(number::CLOSE, [given, 0, 0, 0, 0, 0]);
            Err(Errno::EMFILE)
        }
        Err(EMFILE) => Err(Errno::EMFILE),
        // F_DUPFD says so of a number above the limit.
        Err(_) => Err(Errno::EMFILE),
    }
}

/// Puts a placeholder at a number, whatever the kernel has there.
///
/// # Errors
/// EBADF above the limit.
fn place_over(home: &Home, number: u32) -> Result<(), Errno> {
    let placeholder = u64::from(instance::control().descriptors.placeholder);
    if home.numbers.has(number, PLACED) {
        return Ok(());
    }
    let arguments = [placeholder, u64::from(number), O_CLOEXEC, 0, 0, 0];
    system::try_call(number::DUP3, arguments).map_err(|_| Errno::EBADF)?;
    home.numbers.set(number, PLACED);
    home.numbers.clear(number, KERNEL);
    Ok(())
}

/// dup2 and dup3 of the kernel's to a number that has a placeholder: no one takes that away, or puts something there, in the middle
/// of it. None for another number.
pub(crate) fn replace(home: &Home, (call, arguments): (u64, [u64; 6])) -> Option<Result<u64, i32>> {
    let new = arguments[1] as u32;
    let numbers = &home.numbers;
    let _lock = home.lock();
    if new as usize >= TRACKED || !numbers.has(new, PLACED) {
        return None;
    }
    Some(system::try_call(call, arguments).inspect(|_| {
        numbers.clear(new, PLACED);
        numbers.set(new, KERNEL);
    }))
}

/// The kernel has given a number: moves it down to the lowest free one with a placeholder.
pub(crate) fn settle(home: &Home, given: u64) -> u64 {
    let numbers = &home.numbers;
    let Ok(number) = u32::try_from(given) else { return given };
    if number as usize >= TRACKED || instance::planted("shim: what the kernel opens stays where it is") {
        return given;
    }
    let _lock = home.lock();
    // Where a placeholder was when another thread closed what the kernel had.
    numbers.clear(number, PLACED);
    if !numbers.is_ours(given) {
        numbers.free(number);
    }
    let Some(lower) = numbers.kept(0).next().filter(|lower| *lower < number) else {
        numbers.set(number, KERNEL);
        return given;
    };
    let closes_on_exec = system::call(number::FCNTL, [given, F_GETFD, 0, 0, 0, 0]) & FD_CLOEXEC != 0;
    let flags = if closes_on_exec { O_CLOEXEC } else { 0 };
    match system::try_call(number::DUP3, [given, u64::from(lower), flags, 0, 0, 0]) {
        Ok(_) => {
            system::call(number::CLOSE, [given, 0, 0, 0, 0, 0]);
            // Another thread may have found it there.
            numbers.clear(number, KERNEL);
            numbers.note_closed(u64::from(lower));
            numbers.set(lower, KERNEL);
            u64::from(lower)
        }
        Err(_) => {
            numbers.set(number, KERNEL);
            given
        }
    }
}

/// The kernel is to give some of the lowest free numbers from one on by itself, so that nothing is moved: closing what it gave would give
/// up the locks that the process has of that file, and of two numbers the second may be what the first was moved from. The placeholders
/// of these numbers are taken away.
pub(crate) fn make_room(home: &Home, (lowest, count): (u64, usize)) {
    if instance::planted("shim: what the kernel opens stays where it is") {
        return;
    }
    let numbers = &home.numbers;
    let _lock = home.lock();
    if let Ok(lowest) = u32::try_from(lowest) {
        numbers.kept(lowest).take(count).for_each(|number| numbers.take_away(number));
    }
}

/// The kernel has given a number, which stays.
pub(crate) fn stay(home: &Home, given: u64) {
    let _lock = home.lock();
    // Where a placeholder was when another thread closed what the kernel had.
    if !home.numbers.is_ours(given) {
        home.numbers.note_closed(given);
    }
    home.numbers.note_kernel(given);
}

/// What a new program finds that the kernel has, among the lowest numbers.
pub(crate) fn begin(home: &Home) {
    home.numbers.hide();
    home.numbers.look_at_limit();
    const LOOKED_AT: usize = 64;
    const POLLNVAL: u64 = 0x20;
    let mut looked_at: [u64; LOOKED_AT] = core::array::from_fn(|number| number as u64);
    // Asked for more than may be open, the kernel looks at none. What is not looked at is found when its number is asked for.
    let count = (LOOKED_AT as u64).min(home.numbers.limit.load(Ordering::Relaxed).into());
    if system::call(number::POLL, [looked_at.as_mut_ptr() as u64, count, 0, 0, 0, 0]) < 0 {
        return;
    }
    for (number, place) in looked_at[..count as usize].iter().enumerate() {
        if (place >> 48) & POLLNVAL == 0 {
            home.numbers.set(number as u32, KERNEL);
        }
    }
}

/// In a child: the numbers that the process of the instance has are ours, and no others. Other threads of the parent may have
/// opened and closed some between the copy of that process and that of the numbers: what was closed is in the one alone, and what
/// was about to be opened in the other.
pub(crate) fn agree(home: &Home, has: impl Fn(u32) -> bool, close: impl Fn(u32)) {
    let end = home.numbers.end.load(Ordering::Relaxed);
    for number in 0..end {
        match (home.numbers.is_ours(number.into()), has(number)) {
            (true, false) => home.numbers.free(number),
            (false, true) => close(number),
            _ => {}
        }
    }
}

/// A number is to be ours, whatever the kernel has there, and so no one gives its placeholder back. Whether it was not: then it is the
/// caller's to open or to free.
///
/// # Errors
/// EBADF above the limit.
pub(crate) fn take_over(home: &Home, number: u32) -> Result<bool, Errno> {
    let _lock = home.lock();
    if home.numbers.is_ours(number.into()) && !instance::planted(ON_ITS_WAY) {
        return Ok(false);
    }
    place_over(home, number)?;
    if !instance::planted(TAKEN_LATER) {
        home.numbers.set_ours(number);
    }
    Ok(true)
}

/// Another thread is about to open a number, or to free it: waits until it may have.
pub(crate) fn wait(round: &mut u32) {
    Here.wait(WaitReason::Operation, *round);
    *round = round.saturating_add(1);
}

/// A number is ours at the beginning of a program.
pub(crate) fn begin_ours(home: &Home, number: u32) {
    if (number as usize) < TRACKED && place_over(home, number).is_ok() {
        home.numbers.set_ours(number);
    }
}
