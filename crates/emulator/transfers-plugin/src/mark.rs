//! What the program says by marks: stores of one kind of instruction ([`crate::instruction`]), to three words.
//!
//! ```text
//! word 0, which the instruction stores     words 1 and 2
//! 1   code, from and up to, is not measured: the program's own, such as what chooses turns
//! 2   memory, from and up to, is not measured
//! 3   this many cores; what they touch is followed from now on
//! 4   it is the turn of this core, in this kind of work
//! 5   it is no core's turn
//! 6   from now on transfers count
//! 7   the end
//! 8   the stack of the core whose turn comes next, from and up to: no other core touches it
//! 9   by this seed, after this many of 1,024 accesses of a core its thread gets a signal
//! 10  but not after accesses of code from and up to
//! ```

use std::ops::Range;

use transfers::coherence::MOST_CORES;

/// What a mark says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// This code is not measured.
    OwnCode(Range<u64>),
    /// This memory is not measured.
    OwnMemory(Range<u64>),
    /// This many cores.
    Cores(usize),
    /// The turn of a core in a kind of work.
    Turn {
        /// The core.
        core: u8,
        /// The kind of work, see [`WORKS`].
        work: u8,
    },
    /// No core's turn.
    Nobody,
    /// Transfers count.
    Count,
    /// Nothing follows.
    End,
    /// The next core's stack.
    Stack(Range<u64>),
    /// Signals after random accesses.
    Interrupt {
        /// What is drawn is drawn from this.
        seed: u64,
        /// After this many of [`RATE_OF`].
        rate: u64,
    },
    /// No signals after accesses of this code.
    NeverInterrupted(Range<u64>),
}

/// Of this many accesses, as many as are asked for are followed by a signal, on average.
pub const RATE_OF: u64 = 1024;

/// How many kinds of work there are: 0 is operations, 1 maintenance between them.
pub const WORKS: usize = 2;

impl Mark {
    /// What the three words say; `None` if nothing.
    pub fn from_words([what, first, second]: [u64; 3]) -> Option<Mark> {
        Some(match what {
            1 if first <= second => Mark::OwnCode(first..second),
            2 if first <= second => Mark::OwnMemory(first..second),
            3 if (1..=MOST_CORES as u64).contains(&first) => Mark::Cores(first as usize),
            4 if first < MOST_CORES as u64 && second < WORKS as u64 => {
                Mark::Turn { core: first as u8, work: second as u8 }
            }
            5 => Mark::Nobody,
            6 => Mark::Count,
            7 => Mark::End,
            8 if first <= second => Mark::Stack(first..second),
            9 if second <= RATE_OF => Mark::Interrupt { seed: first, rate: second },
            10 if first <= second => Mark::NeverInterrupted(first..second),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_program_says_is_no_mark() {
        assert_eq!(Mark::from_words([3, 256, 0]), Some(Mark::Cores(256)));
        assert_eq!(Mark::from_words([4, 255, 1]), Some(Mark::Turn { core: 255, work: 1 }));
        for words in
            [[0, 0, 0], [11, 0, 0], [3, 0, 0], [3, 257, 0], [4, 256, 0], [4, 0, 2], [1, 2, 1], [2, 2, 1], [8, 2, 1]]
        {
            assert_eq!(Mark::from_words(words), None, "{words:?}");
        }
        assert_eq!(Mark::from_words([9, 0, RATE_OF + 1]), None);
        assert_eq!(Mark::from_words([10, 2, 1]), None);
    }
}
