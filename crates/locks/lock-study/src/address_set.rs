//! What a critical section read and wrote, byte by byte, and what two sections have in common.

/// Bytes per word of a set.
const WORD_BYTES: u64 = 8;
/// Words per cache line.
const LINE_WORDS: u64 = 8;
/// Words that are looked at one by one before the rest is searched.
const NEAR_WORDS: usize = 12;

/// Eight bytes that a section touched: bit *i* of a mask stands for byte *i*.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    /// Address divided by eight.
    pub number: u64,
    /// Bytes that were read.
    pub read: u8,
    /// Bytes that were written.
    pub written: u8,
    /// Whether it was reached as data of the executing processor.
    pub per_cpu: bool,
    /// Where one of the reads was made: the recorder's number.
    pub read_site: u32,
    /// Where one of the writes was made.
    pub write_site: u32,
}

impl Word {
    /// The words that an access touches.
    pub fn of_access(
        address: u64,
        size_bytes: u8,
        write: bool,
        per_cpu: bool,
        site: u32,
    ) -> impl Iterator<Item = Word> {
        let end = address.saturating_add(u64::from(size_bytes));
        let last = end.saturating_sub(1).max(address) / WORD_BYTES;
        (address / WORD_BYTES..=last).map(move |number| {
            let first_byte = address.max(number * WORD_BYTES) - number * WORD_BYTES;
            let behind = (end - number * WORD_BYTES).min(WORD_BYTES);
            let mask = (((1_u16 << behind) - 1) & !((1_u16 << first_byte) - 1)) as u8;
            let (read, written) = if write { (0, mask) } else { (mask, 0) };
            Word { number, read, written, per_cpu, read_site: site, write_site: site }
        })
    }

    /// Which of two accesses to one word wrote, this one and the other, in a pair that conflicts: this one, and the other if
    /// it wrote the same bytes; else the other alone.
    #[must_use]
    pub fn conflicting_writes(&self, other: &Word) -> (bool, bool) {
        if self.written & other.touched() != 0 { (true, self.written & other.written != 0) } else { (false, true) }
    }

    /// The address of the first byte on which two accesses to one word conflict; the word's if they do not. What lies in
    /// the word before may be something else, such as a lock.
    #[must_use]
    pub fn conflicting_address(&self, other: &Word) -> u64 {
        let bytes = self.written & other.touched() | self.touched() & other.written;
        self.number * 8 + u64::from(bytes.trailing_zeros() % 8)
    }

    fn touched(self) -> u8 {
        self.read | self.written
    }

    /// Adds a later access to the same word.
    fn add(&mut self, later: Word) {
        if self.read == 0 {
            self.read_site = later.read_site;
        }
        if self.written == 0 {
            self.write_site = later.write_site;
        }
        self.read |= later.read;
        self.written |= later.written;
        self.per_cpu |= later.per_cpu;
    }
}

/// A section's address set.
#[derive(Debug, Clone, Default)]
pub struct AddressSet {
    /// In ascending order, one per number.
    words: Vec<Word>,
    /// Sets without a common bit have no common line.
    touched_signature: Signature,
    written_signature: Signature,
}

/// One bit per line, by hash.
#[derive(Debug, Clone, Copy, Default)]
struct Signature([u64; 4]);

impl Signature {
    /// Adds a word's line.
    fn add(&mut self, number: u64) {
        let bit = (number / LINE_WORDS).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
        self.0[bit as usize / 64] |= 1 << (bit % 64);
    }

    fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(other.0).any(|(one, other)| one & other != 0)
    }
}

/// What two sets have in common, counted at three granularities.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shared {
    /// Bytes that one wrote and the other touched.
    pub bytes: u32,
    /// Aligned words of eight bytes that one wrote in and the other touched.
    pub words: u32,
    /// Lines of 64 bytes that one wrote in and the other touched.
    pub lines: u32,
}

/// The conflict of two sets, with data of the executing processor and without.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Overlap {
    /// All data.
    pub all: Shared,
    /// Without words that both reached as data of their processor: a section that ran elsewhere would have met others.
    pub without_per_cpu: Shared,
}

impl AddressSet {
    /// The set of recorded words, which are left in any order; words of locks are filtered by `keeps`.
    pub fn collect(recorded: &[Word], mut keeps: impl FnMut(&mut Word) -> bool) -> Self {
        let mut words = recorded.to_vec();
        words.sort_by_key(|word| word.number); // stable: the first read and the first write are the witnesses
        words.dedup_by(|later, first| {
            let same = later.number == first.number;
            if same {
                first.add(*later);
            }
            same
        });
        words.retain_mut(|word| keeps(word) && word.touched() != 0);
        words.shrink_to_fit();
        let (mut touched_signature, mut written_signature) = (Signature::default(), Signature::default());
        for word in &words {
            touched_signature.add(word.number);
            if word.written != 0 {
                written_signature.add(word.number);
            }
        }
        Self { words, touched_signature, written_signature }
    }

    /// The words, in ascending order.
    #[must_use]
    pub fn words(&self) -> &[Word] {
        &self.words
    }

    /// Number of bytes that were touched.
    #[must_use]
    pub fn byte_count(&self) -> u32 {
        self.words.iter().map(|word| word.touched().count_ones()).sum()
    }

    /// Number of bytes that were written.
    #[must_use]
    pub fn written_byte_count(&self) -> u32 {
        self.words.iter().map(|word| word.written.count_ones()).sum()
    }

    /// Whether a common line is possible in which one of the two wrote.
    fn may_conflict(&self, other: &Self) -> bool {
        self.written_signature.meets(&other.touched_signature) || self.touched_signature.meets(&other.written_signature)
    }

    /// What the two have in common; `conflict` is called with each word with conflicting bytes, as each of them touched
    /// it.
    pub fn overlap(&self, other: &Self, mut conflict: impl FnMut(&Word, &Word)) -> Overlap {
        let mut overlap = Overlap::default();
        if !self.may_conflict(other) {
            return overlap;
        }
        let (mut ours, mut theirs) = (self.words.as_slice(), other.words.as_slice());
        while let (Some(line), true) = (next_line(ours, theirs), !theirs.is_empty()) {
            let (our_words, our_rest) = take_line(ours, line);
            let (their_words, their_rest) = take_line(theirs, line);
            (ours, theirs) = (our_rest, their_rest);
            count_line(our_words, their_words, |_| true, &mut overlap.all, &mut conflict);
            let shared_data = |pair: PerCpu| !(pair.0 && pair.1);
            count_line(our_words, their_words, shared_data, &mut overlap.without_per_cpu, &mut |_, _| ());
        }
        overlap
    }
}

/// Whether either side reached a word as data of its processor.
struct PerCpu(bool, bool);

/// The first line that both sides can have.
fn next_line(ours: &[Word], theirs: &[Word]) -> Option<u64> {
    let (one, other) = (ours.first()?, theirs.first()?);
    Some((one.number / LINE_WORDS).max(other.number / LINE_WORDS))
}

/// The words of a line, and those after it; those before it are skipped.
fn take_line(words: &[Word], line: u64) -> (&[Word], &[Word]) {
    // The line is mostly near: a few steps are quicker than a search.
    let before = |word: &Word| word.number / LINE_WORDS < line;
    let near = words.iter().take(NEAR_WORDS).take_while(|word| before(word)).count();
    let start = if near < NEAR_WORDS { near } else { near + words[near..].partition_point(before) };
    let length = words[start..].iter().take_while(|word| word.number / LINE_WORDS == line).count();
    (&words[start..start + length], &words[start + length..])
}

/// Counts what two sections share in one line.
fn count_line(
    ours: &[Word],
    theirs: &[Word],
    counts: impl Fn(PerCpu) -> bool,
    shared: &mut Shared,
    conflict: &mut impl FnMut(&Word, &Word),
) {
    let mut line_conflicts = false;
    for one in ours {
        for other in theirs {
            if !counts(PerCpu(one.per_cpu, other.per_cpu)) {
                continue;
            }
            line_conflicts |= (one.written != 0 || other.written != 0) && one.touched() != 0 && other.touched() != 0;
            if one.number != other.number || (one.written == 0 && other.written == 0) {
                continue;
            }
            shared.words += 1;
            let bytes = (one.written & other.touched()) | (other.written & one.touched());
            shared.bytes += bytes.count_ones();
            if bytes != 0 {
                conflict(one, other);
            }
        }
    }
    shared.lines += u32::from(line_conflicts);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    type Accesses = Vec<(u64, u8, bool)>;

    fn set(accesses: &[(u64, u8, bool)]) -> AddressSet {
        let words: Vec<Word> = accesses
            .iter()
            .flat_map(|&(address, size_bytes, write)| Word::of_access(address, size_bytes, write, false, 0))
            .collect();
        AddressSet::collect(&words, |_| true)
    }

    /// The definition, on plain sets of bytes, words or lines.
    fn conflicting(one: &Accesses, other: &Accesses, unit_bytes: u64) -> u32 {
        let units = |accesses: &Accesses, writes_only: bool| -> BTreeSet<u64> {
            accesses
                .iter()
                .filter(|access| access.2 || !writes_only)
                .flat_map(|&(address, size_bytes, _)| address..address + u64::from(size_bytes))
                .map(|byte| byte / unit_bytes)
                .collect()
        };
        let (one_written, other_written) = (units(one, true), units(other, true));
        let (one_touched, other_touched) = (units(one, false), units(other, false));
        let both: BTreeSet<u64> =
            one_written.intersection(&other_touched).chain(other_written.intersection(&one_touched)).copied().collect();
        both.len() as u32
    }

    proptest! {
        #[test]
        fn overlap_is_as_defined(
            one in proptest::collection::vec((0_u64..300, 1_u8..17, any::<bool>()), 0..20),
            other in proptest::collection::vec((0_u64..300, 1_u8..17, any::<bool>()), 0..20),
        ) {
            let overlap = set(&one).overlap(&set(&other), |_, _| ());
            let expected =
                [1, 8, 64].map(|unit_bytes| conflicting(&one, &other, unit_bytes));
            prop_assert_eq!([overlap.all.bytes, overlap.all.words, overlap.all.lines], expected);
            prop_assert_eq!(overlap.all, overlap.without_per_cpu);
            let back = set(&other).overlap(&set(&one), |_, _| ());
            prop_assert_eq!(overlap, back);
        }

        #[test]
        fn every_byte_of_an_access_is_in_the_set(address in 0_u64..1000, size_bytes in 1_u8..65, write: bool) {
            let set = set(&[(address, size_bytes, write)]);
            prop_assert_eq!(set.byte_count(), u32::from(size_bytes));
            prop_assert_eq!(set.written_byte_count(), if write { u32::from(size_bytes) } else { 0 });
        }
    }

    #[test]
    fn a_conflict_has_the_address_of_its_first_byte() {
        let word = |read, written| Word { number: 2, read, written, per_cpu: false, read_site: 0, write_site: 0 };
        assert_eq!(word(0xff, 0xf0).conflicting_address(&word(0xf0, 0)), 20);
        assert_eq!(word(0x0c, 0).conflicting_address(&word(0, 0x08)), 19);
        assert_eq!(word(0xff, 0).conflicting_address(&word(0xff, 0)), 16);
    }

    #[test]
    fn data_of_the_processor_counts_apart() {
        let words = |per_cpu| -> Vec<Word> { Word::of_access(64, 8, true, per_cpu, 0).collect() };
        let (own, plain) = (AddressSet::collect(&words(true), |_| true), AddressSet::collect(&words(false), |_| true));
        let shared = Shared { bytes: 8, words: 1, lines: 1 };
        assert_eq!(own.overlap(&own, |_, _| ()), Overlap { all: shared, without_per_cpu: Shared::default() });
        assert_eq!(own.overlap(&plain, |_, _| ()), Overlap { all: shared, without_per_cpu: shared });
    }

    #[test]
    fn the_first_read_and_the_first_write_are_the_witnesses() {
        let mut words: Vec<Word> = Word::of_access(8, 4, false, false, 1).collect();
        words.extend(Word::of_access(8, 4, true, false, 2));
        words.extend(Word::of_access(12, 4, true, false, 3));
        let set = AddressSet::collect(&words, |_| true);
        let [word] = set.words() else { panic!("one word: {set:?}") };
        assert_eq!((word.read_site, word.write_site, word.read, word.written), (1, 2, 0x0f, 0xff));
    }

    #[test]
    fn who_wrote_in_a_conflict_is_told_from_who_read() {
        let word = |read, written| Word { number: 2, read, written, per_cpu: false, read_site: 0, write_site: 0 };
        assert_eq!(word(0, 0x0f).conflicting_writes(&word(0x01, 0)), (true, false));
        assert_eq!(word(0, 0x0f).conflicting_writes(&word(0, 0x18)), (true, true));
        assert_eq!(word(0, 0x0f).conflicting_writes(&word(0x08, 0xf0)), (true, false), "it wrote other bytes");
        assert_eq!(word(0x0f, 0xf0).conflicting_writes(&word(0x0f, 0x01)), (false, true));
    }

    #[test]
    fn a_set_keeps_what_is_asked_for_and_says_who_touched_it_first() {
        let mut words: Vec<Word> = Word::of_access(16, 8, true, false, 1).collect();
        words.extend(Word::of_access(8, 8, false, true, 2));
        words.extend(Word::of_access(16, 8, false, true, 3));
        let set = AddressSet::collect(&words, |_| true);
        let told = |word: &Word| (word.number, word.read_site, word.write_site, word.per_cpu);
        assert_eq!(set.words().iter().map(told).collect::<Vec<_>>(), [(1, 2, 2, true), (2, 3, 1, true)]);
        let kept = AddressSet::collect(&words, |word| word.number == 1);
        assert_eq!((kept.byte_count(), kept.written_byte_count()), (8, 0));
        let emptied = AddressSet::collect(&words, |word| {
            (word.read, word.written) = (0, 0);
            true
        });
        assert_eq!(emptied.words().len(), 0);
    }
}
