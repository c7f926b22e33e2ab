//! Which cores may have something of an object in their caches, so that whoever reads exactly looks at no others.

use sync::atomic::{AtomicU32, Ordering};

use crate::MAX_CORES;
use crate::core_handle::Core;
use crate::core_index::CoreIndex;

/// Cores that stand for each other: where one is noted, all of them are looked at.
const CORES_PER_BIT: usize = MAX_CORES / BITS;
const BITS: usize = u32::BITS as usize;
/// Whether these are neighbours: not in tests, whose few cores are not to be noted as one.
const ARE_NEIGHBOURS: bool = cfg!(not(any(loom, shuttle)));

/// A word of an object: a bit for each eight cores, set before one of them first caches something of the object, and never cleared.
///
/// An object that few cores have changed is read at their lines alone, however many cores there are.
#[derive(Debug)]
pub struct Holders(AtomicU32);

/// What [`Holders::now`] saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held(pub(crate) u32);

impl Holders {
    /// Of an object of which no core has cached anything.
    pub fn new() -> Holders {
        Holders(AtomicU32::new(0))
    }

    /// Of an object that is made by a core, which will be the first to cache something of it.
    pub fn made_by(index: CoreIndex) -> Holders {
        Holders(AtomicU32::new(bit_of(index)))
    }

    /// Notes a core that is about to cache something of the object. Writes only if it was not noted before.
    #[inline]
    pub fn note(&self, core: &Core<'_>) {
        let bit = bit_of(core.index());
        if self.0.load(Ordering::Relaxed) & bit == 0 && !sync::mutant::planted("percpu: who caches is not noted") {
            // Whoever sees what the core caches then, or what others have built on that, sees the bit: its release orders that.
            self.0.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Who is noted. Whoever has looked at their caches looks here once more: if nobody came, nothing was missed that what was
    /// seen there rests on.
    #[inline]
    pub fn now(&self) -> Held {
        Held(self.0.load(Ordering::Relaxed))
    }
}

impl Default for Holders {
    fn default() -> Holders {
        Holders::new()
    }
}

impl Held {
    /// The numbers of these cores.
    #[inline]
    pub(crate) fn numbers(self) -> impl Iterator<Item = usize> {
        let mut bits = self.0;
        let noted = core::iter::from_fn(move || {
            let bit = bits.trailing_zeros() as usize;
            bits &= bits.wrapping_sub(1);
            (bit < BITS).then_some(bit)
        });
        let number = |bit, place| if ARE_NEIGHBOURS { bit * CORES_PER_BIT + place } else { bit + place * BITS };
        noted.flat_map(move |bit| (0..CORES_PER_BIT).map(move |place| number(bit, place)))
    }
}

fn bit_of(index: CoreIndex) -> u32 {
    1 << if ARE_NEIGHBOURS { index.get() / CORES_PER_BIT } else { index.get() % BITS }
}
