//! From the accesses to one line to what is shared there: which bytes, truly or falsely, and one pair of accesses that
//! shows it.
//!
//! **True sharing**: a byte that one core wrote was touched by another. All such bytes are sorted by the field that they
//! belong to, and each field gives one [`Conflict`]. **False sharing**: no byte is common, only the line; then the whole
//! line gives one. **Neighbours**: not even the line is common, but two lines lie in one aligned pair of 128 bytes, which
//! processors fetch together; looked for only in pairs that share neither line, and only if the tracer was asked for them.
//!
//! Many pairs of accesses would do as a witness. The choice must not depend on addresses or on the order of events, or the
//! same conflict would look like another one after a rebuild: pairs of two writes come first, then the names of the two
//! functions decide (alphabetically), then bytes and direction, and only what is equal in all that is distinguished by
//! the order of the record.

use crate::record::{Access, AccessKind, SharedLine};

/// What the analysis must know of names. Numbers stand for names, so that equal names are equal numbers.
pub trait Places {
    /// The field that `size_bytes` bytes from `offset` of the line lie in.
    fn place(&mut self, line: &SharedLine, offset: u8, size_bytes: u8) -> u32;
    /// The function that an instruction lies in.
    fn function(&mut self, instruction: u64) -> u32;
    /// The name of a function that [`Places::function`] gave.
    fn function_name(&self, function: u32) -> &str;
}

/// Whether two cores touched common bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// A byte that one wrote was touched by the other.
    True,
    /// They have only the line in common.
    False,
    /// They have only the pair of lines in common.
    Neighbour,
}

/// One finding of a line: two accesses of different cores, the first of the lower core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conflict {
    /// Whether the accesses have bytes in common.
    pub sharing: Sharing,
    /// The field of the common bytes; with false sharing that of the first access.
    pub place: u32,
    /// With false sharing the field of the second access; else as `place`.
    pub other_place: u32,
    /// Index into the line's accesses; of neighbours into those of its own line.
    pub first: usize,
    /// The same of the second access.
    pub second: usize,
}

/// Accesses that differ only in stack and instruction are one witness; more than this many kinds are not looked at. A
/// line that is cleared or copied byte by byte has some hundred.
const MAX_KINDS: usize = 512;

/// An access as the choice of a witness sees it.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    index: usize,
    access: Access,
    function: u32,
}

/// All conflicts of a line; none if no core wrote what it shares a line with.
pub fn conflicts(line: &SharedLine, places: &mut impl Places) -> Vec<Conflict> {
    let candidates = candidates(line, places);
    let common = truly_shared_bytes(&line.accesses);
    // The best pair so far, per field.
    let mut best: Vec<(Conflict, [Candidate; 2])> = Vec::new();
    for (position, &one) in candidates.iter().enumerate() {
        for &other in &candidates[position + 1..] {
            if one.access.core == other.access.core || !(one.access.kind.takes_line() || other.access.kind.takes_line())
            {
                continue;
            }
            let bytes = one.access.byte_mask() & other.access.byte_mask();
            if (bytes == 0) != (common == 0) {
                continue;
            }
            let (first, second) = if one.access.core < other.access.core { (one, other) } else { (other, one) };
            let conflict = if common == 0 {
                let mut place = |access: Access| places.place(line, access.offset, access.size_bytes);
                let (place, other_place) = (place(first.access), place(second.access));
                Conflict { sharing: Sharing::False, place, other_place, first: first.index, second: second.index }
            } else {
                let place = places.place(line, bytes.trailing_zeros() as u8, bytes.count_ones() as u8);
                let sharing = Sharing::True;
                Conflict { sharing, place, other_place: place, first: first.index, second: second.index }
            };
            let pair = [first, second];
            match best.iter_mut().find(|(known, _)| common == 0 || known.place == conflict.place) {
                Some(known) => {
                    if is_better(pair, known.1, places) {
                        *known = (conflict, pair);
                    }
                }
                None => best.push((conflict, pair)),
            }
        }
    }
    best.into_iter().map(|(conflict, _)| conflict).collect()
}

/// The conflict of two neighbouring lines that share nothing by themselves, and which of the two each access is made to;
/// none if no core wrote next to another one's line.
pub fn neighbours(lines: [&SharedLine; 2], places: &mut impl Places) -> Option<(Conflict, [usize; 2])> {
    let [lower, upper] = lines.map(|line| candidates(line, places));
    let mut best: Option<([Candidate; 2], [usize; 2])> = None;
    for &one in &lower {
        for &other in &upper {
            if one.access.core == other.access.core || !(one.access.kind.takes_line() || other.access.kind.takes_line())
            {
                continue;
            }
            let is_lower_first = one.access.core < other.access.core;
            let (pair, at) = if is_lower_first { ([one, other], [0, 1]) } else { ([other, one], [1, 0]) };
            if best.is_none_or(|(known, _)| is_better(pair, known, places)) {
                best = Some((pair, at));
            }
        }
    }
    let ([first, second], at) = best?;
    let mut place =
        |side: Candidate, line: usize| places.place(lines[line], side.access.offset, side.access.size_bytes);
    let (place, other_place) = (place(first, at[0]), place(second, at[1]));
    let conflict =
        Conflict { sharing: Sharing::Neighbour, place, other_place, first: first.index, second: second.index };
    Some((conflict, at))
}

/// The bytes that one core wrote and another touched.
pub fn truly_shared_bytes(accesses: &[Access]) -> u64 {
    let (mut touched_once, mut touched_by_two) = ([0u64; crate::record::MAX_CORES], 0);
    let mut written = 0;
    for access in accesses {
        touched_once[usize::from(access.core)] |= access.byte_mask();
        if access.kind.takes_line() {
            written |= access.byte_mask();
        }
    }
    let mut seen = 0;
    for touched in touched_once {
        touched_by_two |= seen & touched;
        seen |= touched;
    }
    // A byte that two cores touched and any of them wrote: the writer has another next to it.
    written & touched_by_two
}

fn candidates(line: &SharedLine, places: &mut impl Places) -> Vec<Candidate> {
    let mut candidates: Vec<Candidate> = Vec::new();
    for (index, &access) in line.accesses.iter().enumerate() {
        let function = places.function(access.instruction);
        let same = |known: &Candidate| {
            let (a, b) = (&known.access, &access);
            known.function == function
                && (a.core, a.offset, a.size_bytes, a.kind) == (b.core, b.offset, b.size_bytes, b.kind)
        };
        if candidates.len() < MAX_KINDS && !candidates.iter().any(same) {
            candidates.push(Candidate { index, access, function });
        }
    }
    candidates
}

fn is_better(pair: [Candidate; 2], known: [Candidate; 2], places: &impl Places) -> bool {
    let unwritten = |pair: [Candidate; 2]| pair.iter().filter(|side| side.access.kind != AccessKind::Write).count();
    let bytes = |pair: [Candidate; 2]| {
        pair.map(|side| (side.access.offset, side.access.size_bytes, side.access.kind, side.access.core))
    };
    let mut order = unwritten(pair).cmp(&unwritten(known));
    if order.is_eq() && pair.map(|side| side.function) != known.map(|side| side.function) {
        let names = |pair: [Candidate; 2]| {
            let mut names = pair.map(|side| places.function_name(side.function));
            names.sort_unstable();
            names
        };
        order = names(pair).cmp(&names(known));
        // The same two functions the other way round: the lower core's decides.
        order = order.then_with(|| places.function_name(pair[0].function).cmp(places.function_name(known[0].function)));
    }
    order.then_with(|| bytes(pair).cmp(&bytes(known))).is_lt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Moments;
    use proptest::prelude::*;

    /// Fields of eight bytes; the function of instruction 0x100 is called "f256".
    struct EightByteFields(Vec<String>);

    impl Places for EightByteFields {
        fn place(&mut self, _line: &SharedLine, offset: u8, _size_bytes: u8) -> u32 {
            u32::from(offset / 8)
        }

        fn function(&mut self, instruction: u64) -> u32 {
            let name = format!("f{instruction}");
            match self.0.iter().position(|known| *known == name) {
                Some(index) => index as u32,
                None => {
                    self.0.push(name);
                    self.0.len() as u32 - 1
                }
            }
        }

        fn function_name(&self, function: u32) -> &str {
            &self.0[function as usize]
        }
    }

    /// Core, offset, size in bytes, write, instruction.
    type Parts = (u8, u8, u8, bool, u64);

    fn line(accesses: &[Parts]) -> SharedLine {
        let access = |&(core, offset, size_bytes, write, instruction): &Parts| Access {
            instruction,
            stack: 0,
            core,
            offset,
            size_bytes,
            kind: write.into(),
        };
        let accesses: Vec<Access> = accesses.iter().map(access).collect();
        let moments = vec![Moments { first: 0, last: 0 }; accesses.len()];
        SharedLine { address: 0, physical: None, captures: Vec::new(), accesses, moments }
    }

    fn found(line: &SharedLine) -> Vec<Conflict> {
        conflicts(line, &mut EightByteFields(Vec::new()))
    }

    #[test]
    fn common_bytes_are_true_sharing_once_per_field() {
        let line = line(&[
            (0, 0, 8, true, 1),
            (0, 8, 4, true, 1),
            (1, 4, 4, false, 2),
            (1, 8, 8, true, 2),
            (1, 32, 8, true, 3),
        ]);
        let found = found(&line);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], Conflict { sharing: Sharing::True, place: 0, other_place: 0, first: 0, second: 2 });
        assert_eq!(found[1], Conflict { sharing: Sharing::True, place: 1, other_place: 1, first: 1, second: 3 });
    }

    #[test]
    fn disjoint_bytes_are_false_sharing_once_per_line() {
        let line = line(&[(1, 0, 8, true, 1), (0, 16, 4, false, 2), (2, 24, 8, false, 3)]);
        let found = found(&line);
        assert_eq!(found, [Conflict { sharing: Sharing::False, place: 2, other_place: 0, first: 1, second: 0 }]);
    }

    #[test]
    fn reads_alone_and_one_core_alone_are_no_conflict() {
        assert_eq!(found(&line(&[(0, 0, 8, false, 1), (1, 0, 8, false, 1)])), []);
        assert_eq!(found(&line(&[(3, 0, 8, true, 1), (3, 0, 8, false, 2)])), []);
        assert_eq!(found(&line(&[])), []);
    }

    #[test]
    fn two_writes_are_preferred_then_names_decide() {
        let accesses =
            [(0, 0, 8, false, 1), (0, 0, 8, true, 9), (0, 0, 8, true, 5), (1, 0, 8, false, 0), (1, 0, 8, true, 7)];
        let line = line(&accesses);
        let [conflict] = found(&line)[..] else { panic!("expected one conflict") };
        assert_eq!((conflict.first, conflict.second), (2, 4));
    }

    #[test]
    fn neighbours_are_two_lines_that_two_cores_touch_and_one_writes() {
        let told = |lower: &[Parts], upper: &[Parts]| {
            neighbours([&line(lower), &line(upper)], &mut EightByteFields(Vec::new()))
        };
        let (conflict, at) = told(&[(1, 8, 8, false, 1), (1, 0, 8, false, 1)], &[(0, 16, 8, true, 2)]).unwrap();
        assert_eq!(at, [1, 0]);
        let (place, other_place) = (2, 0);
        assert_eq!(conflict, Conflict { sharing: Sharing::Neighbour, place, other_place, first: 0, second: 1 });
        assert_eq!(told(&[(0, 0, 8, false, 1)], &[(1, 0, 8, false, 1)]), None);
        assert_eq!(told(&[(0, 0, 8, true, 1)], &[(0, 0, 8, true, 1)]), None);
    }

    fn any_access() -> impl Strategy<Value = Parts> {
        (0u8..4, 0u8..57, 1u8..9, any::<bool>(), 0u64..6)
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition_and_not_with_the_order(
            accesses in proptest::collection::vec(any_access(), 0..24).prop_shuffle(),
            turn in 0usize..24,
        ) {
            let original = line(&accesses);
            let found_here = found(&original);
            let pairs = || accesses.iter().enumerate().flat_map(|(i, a)| accesses[..i].iter().map(move |b| (a, b)));
            let conflicting = |(a, b): &(&Parts, &Parts)| a.0 != b.0 && (a.3 || b.3);
            let overlap = |(a, b): (&Parts, &Parts)| a.1 < b.1 + b.2 && b.1 < a.1 + a.2;
            let any = pairs().any(|pair| conflicting(&pair));
            let truly = pairs().any(|pair| conflicting(&pair) && overlap(pair));
            prop_assert_eq!(found_here.is_empty(), !any);
            for conflict in &found_here {
                prop_assert_eq!(conflict.sharing == Sharing::True, truly);
                let (a, b) = (original.accesses[conflict.first], original.accesses[conflict.second]);
                prop_assert!(a.core < b.core && (a.kind.takes_line() || b.kind.takes_line()));
                prop_assert_eq!(a.byte_mask() & b.byte_mask() != 0, truly);
            }

            // What is reported of the witnesses, but for their indices, is the same for any order of the record.
            let told = |line: &SharedLine| {
                let side = |index: usize| {
                    let access = line.accesses[index];
                    (access.instruction, access.core, access.offset, access.size_bytes, access.kind == AccessKind::Write)
                };
                let mut told: Vec<_> = found(line)
                    .iter()
                    .map(|conflict| (conflict.place, conflict.other_place, side(conflict.first), side(conflict.second)))
                    .collect();
                told.sort_unstable();
                told
            };
            let mut turned = original.clone();
            if !turned.accesses.is_empty() {
                let count = turned.accesses.len();
                turned.accesses.rotate_left(turn % count);
            }
            prop_assert_eq!(told(&original), told(&turned));
        }
    }
}
