//! What lies first in the memory: sizes, the directory at which the tree is seen, and who is there.

use core::ptr::NonNull;

use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use percpu::{Arena, Layout, OwnerId};
use scalefs::ScaleFs;

use crate::code::Code;
use crate::mappings::Mappings;
use crate::seats::Seats;

/// Where the memory lies in every process. Programs that are mapped by the kernel's rules, heaps of Go and of sanitizers lie
/// elsewhere.
pub const BASE: usize = 0x6200_0000_0000;
/// Where the arena begins.
pub const ARENA: usize = BASE + (size_of::<Control>().next_multiple_of(HUGE_PAGE_BYTES));
const HUGE_PAGE_BYTES: usize = 2 << 20;
const MAGIC: u64 = 0x5ca1_ef5e_0000_0001;
/// Longest path of the directory, in bytes.
const MAX_PATH_BYTES: usize = 4095;
/// Room for the name of a fault.
const FAULT_WORDS: usize = 16;
/// Room for the path of the directory of stand-ins: with a number behind it, it is the address of a socket.
const STAND_INS_WORDS: usize = 10;

/// How large the parts are, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Sizes {
    /// Of the arena.
    pub arena_bytes: usize,
    /// Of the pages.
    pub pages_bytes: usize,
}

impl Sizes {
    /// Of all that is mapped.
    pub fn total_bytes(self) -> usize {
        ARENA - BASE + self.arena_bytes + self.pages_bytes
    }

    /// Where the pages begin.
    pub fn pages(self) -> usize {
        ARENA + self.arena_bytes
    }
}

/// The numbers under which every process of the tree has these open. They are hidden from programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Descriptors {
    /// The memory.
    pub memory: u32,
    /// The loader's program.
    pub loader: u32,
    /// What stands in the kernel for a descriptor of ScaleFS: a file that can neither be read nor written.
    pub placeholder: u32,
    /// The directory of stand-ins for pipes and sockets, locked: where no one has it any more, it can go.
    pub stand_ins: u32,
}

impl Descriptors {
    /// All.
    #[inline]
    pub fn all(self) -> [u32; 4] {
        [self.memory, self.loader, self.placeholder, self.stand_ins]
    }

    /// Whether a number is one of them.
    #[inline]
    pub fn contains(self, number: u32) -> bool {
        self.all().contains(&number)
    }
}

/// Why the memory is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachError {
    /// There is something else.
    NoInstance,
    /// It was made by another build.
    OtherBuild,
}

/// The first part of the memory. Immutable once the first process runs, but for what guards itself.
#[repr(C)]
pub struct Control {
    magic: u64,
    build: u64,
    /// How large the parts are.
    pub sizes: Sizes,
    /// Hidden numbers.
    pub descriptors: Descriptors,
    /// Atomic: the number of the first process of the tree; zero until it is known.
    first: AtomicI32,
    /// Atomic: the owner of cores for whom calls wait; zero if none do.
    closed_by: AtomicU64,
    mount_point_bytes: u32,
    mount_point: [u8; MAX_PATH_BYTES + 1],
    /// Whether some symbolic link may lead out of the tree. Atomic, set once.
    links_lead_out: AtomicU32,
    /// Whether some program of the tree was ever run. Atomic, set once.
    has_run_programs: AtomicU32,
    /// For tests: the name of a fault that builds for them make. Atomic words, written before the first process runs.
    fault: [AtomicU64; FAULT_WORDS],
    /// Where the kernel has what stands in it for pipes and sockets of the tree. Atomic words, as above.
    stand_ins: [AtomicU64; STAND_INS_WORDS],
    /// Who is there.
    pub seats: Seats,
    /// Where code in files has calls.
    pub code: Code,
    /// What of files is mapped for all to see.
    pub mappings: Mappings,
}

/// Bytes in words, as many as there is room for, and zeros.
fn words_of<const WORDS: usize>(given: &[u8]) -> [u64; WORDS] {
    core::array::from_fn(|word| {
        let byte = |index: usize| given.get(8 * word + index).copied().unwrap_or(0);
        u64::from_le_bytes(core::array::from_fn(byte))
    })
}

/// Grows by one where a part of the memory is laid out, or its bits are meant, in another way without a change of its size.
const REVISION: u64 = 3;
/// What differs between builds that lay the memory out in other ways.
const BUILD: Layout =
    Layout::BUILD.and(REVISION).and_type::<Control>().and_type::<Seats>().and_type::<Code>().and_type::<Mappings>();

impl Control {
    /// Lays out the first part, in memory of zeros; `None` if the path is too long.
    ///
    /// # Safety
    /// `place` leads to as many bytes of zeros, which no one else uses yet.
    pub unsafe fn create<'c>(
        place: NonNull<Control>,
        sizes: Sizes,
        descriptors: Descriptors,
        mount_point: &[u8],
    ) -> Option<&'c Control> {
        if mount_point.len() > MAX_PATH_BYTES {
            return None;
        }
        // SAFETY: the caller's promise; zeros are a value of every field.
        let control = unsafe { &mut *place.as_ptr() };
        control.sizes = sizes;
        control.descriptors = descriptors;
        control.mount_point[..mount_point.len()].copy_from_slice(mount_point);
        control.mount_point_bytes = mount_point.len() as u32;
        control.build = BUILD.to_bits();
        control.magic = MAGIC;
        Some(control)
    }

    /// The first part of memory that is mapped at [`BASE`].
    ///
    /// # Errors
    /// [`AttachError`]: it is not what this build makes.
    ///
    /// # Safety
    /// As many bytes as a [`Control`] has can be read and written there, for good.
    pub unsafe fn attach<'c>() -> Result<&'c Control, AttachError> {
        let place = core::ptr::with_exposed_provenance::<Control>(BASE);
        // SAFETY: the caller's promise; words of zeros are values, too.
        let control = unsafe { &*place };
        match (control.magic == MAGIC, control.build == BUILD.to_bits()) {
            (false, _) => Err(AttachError::NoInstance),
            (true, false) => Err(AttachError::OtherBuild),
            (true, true) => Ok(control),
        }
    }

    /// The arena and the instance in it; `None` if they were made by another build.
    ///
    /// # Safety
    /// All of the memory is mapped at [`BASE`], for good, and was made.
    pub unsafe fn instance<'c>(&self) -> Option<(&'c Arena, &'c ScaleFs)> {
        let base = NonNull::new(core::ptr::with_exposed_provenance_mut::<u8>(ARENA))?;
        // SAFETY: the caller's promise.
        let arena = unsafe { Arena::attach_at(base) }.ok()?;
        Some((arena, ScaleFs::attach(arena).ok()?))
    }

    /// The directory at which programs see the tree: absolute, without a slash at its end.
    #[inline]
    pub fn mount_point(&self) -> &[u8] {
        &self.mount_point[..self.mount_point_bytes as usize]
    }

    /// Whether some symbolic link may lead out of the tree.
    #[inline]
    pub fn links_lead_out(&self) -> bool {
        self.links_lead_out.load(Ordering::Relaxed) != 0
    }

    /// Notes that one may.
    pub fn note_link_out(&self) {
        if !self.links_lead_out() {
            self.links_lead_out.store(1, Ordering::Relaxed);
        }
    }

    /// Whether some program of the tree was ever run.
    #[inline]
    pub fn has_run_programs(&self) -> bool {
        self.has_run_programs.load(Ordering::Relaxed) != 0
    }

    /// Notes that one is.
    pub fn note_program(&self) {
        if !self.has_run_programs() {
            self.has_run_programs.store(1, Ordering::Relaxed);
        }
    }

    /// The number of the first process of the tree, once it is known.
    pub fn first(&self) -> Option<i32> {
        Some(self.first.load(Ordering::Acquire)).filter(|process| *process != 0)
    }

    /// Says which process is the first.
    pub fn set_first(&self, process: i32) {
        self.first.store(process, Ordering::Release);
    }

    /// Lets no one become a core that was never used, until [`Control::open`]: who has all others is alone then. False if somebody
    /// else has closed it.
    pub fn close(&self, by: OwnerId) -> bool {
        self.closed_by.compare_exchange(0, by.number(), Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Ends what [`Control::close`] began; nothing if another owner has.
    pub fn open(&self, by: OwnerId) {
        let _ = self.closed_by.compare_exchange(by.number(), 0, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Whether calls wait for somebody.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.closed_by.load(Ordering::Relaxed) != 0
    }

    fn fault_words(name: &str) -> [u64; FAULT_WORDS] {
        words_of(name.as_bytes())
    }

    /// Says in which directory of the host's the kernel has what stands in it for pipes and sockets of the tree; false if the path is
    /// too long.
    pub fn set_stand_ins(&self, directory: &[u8]) -> bool {
        let words = words_of::<STAND_INS_WORDS>(directory);
        self.stand_ins.iter().zip(words).for_each(|(place, word)| place.store(word, Ordering::Relaxed));
        directory.len() < 8 * STAND_INS_WORDS
    }

    /// That directory, in a buffer; empty if there is none.
    pub fn stand_ins<'b>(&self, buffer: &'b mut [u8; 8 * STAND_INS_WORDS]) -> &'b [u8] {
        for (place, word) in buffer.chunks_exact_mut(8).zip(&self.stand_ins) {
            place.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
        let length = buffer.iter().position(|byte| *byte == 0).unwrap_or(buffer.len());
        &buffer[..length]
    }

    /// Plants a fault, which builds for tests alone ask for.
    pub fn plant(&self, name: &str) {
        for (place, word) in self.fault.iter().zip(Control::fault_words(name)) {
            place.store(word, Ordering::Relaxed);
        }
    }

    /// Whether a fault was planted.
    pub fn is_planted(&self, name: &str) -> bool {
        let words = Control::fault_words(name);
        self.fault.iter().zip(words).all(|(place, word)| place.load(Ordering::Relaxed) == word)
    }
}
