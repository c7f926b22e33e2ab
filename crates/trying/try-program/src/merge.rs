//! Two changes of one version of a file, put together where they are of different bytes.
//!
//! ```text
//! the version read   aaaa bbbb cccc
//! the command's      aaaa BBBB cccc        bytes 5 to 9
//! there now          aaaa bbbb cccc dddd   after byte 14
//! merged             aaaa BBBB cccc dddd
//! ```
//! A version of the same length is compared byte by byte. Of another length, it is compared line by line, and then by the bytes at both
//! ends of lines that differ.

use std::ops::Range;

use crate::stops::planted;

/// Above so many lines that come or go, all between the first and the last of them counts as changed.
const MOST_DIFFERENCES: usize = 1_000;

/// Bytes of the version read, and what a later version has instead of them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hunk<'a> {
    read: Range<usize>,
    bytes: &'a [u8],
}

impl Hunk<'_> {
    fn moves_what_follows(&self) -> bool {
        self.read.len() != self.bytes.len()
    }

    /// Whether nobody can say which bytes both would leave. Bytes that are put in have no place of their own: what touches them meets
    /// them.
    fn meets(&self, other: &Hunk<'_>) -> bool {
        let touches = self.read.start <= other.read.end && other.read.start <= self.read.end;
        let overlaps = self.read.start < other.read.end && other.read.start < self.read.end;
        overlaps || (touches && (self.moves_what_follows() || other.moves_what_follows()))
    }
}

/// What has both changes of `read`; `Err` with the first bytes of it that both have changed, be it to the same.
pub(crate) fn merged(read: &[u8], ours: &[u8], theirs: &[u8]) -> Result<Vec<u8>, Range<usize>> {
    let (ours, theirs) = (hunks(read, ours), hunks(read, theirs));
    let meeting = ours.iter().find_map(|one| theirs.iter().find(|other| one.meets(other)).map(|other| (one, other)));
    if let Some((one, other)) = meeting
        && !planted("try-program: the command's bytes win")
    {
        return Err(one.read.start.max(other.read.start)..one.read.end.min(other.read.end));
    }
    let mut all = [ours, theirs].concat();
    all.sort_by_key(|hunk| (hunk.read.start, hunk.read.end));
    let (mut merged, mut at) = (Vec::with_capacity(read.len()), 0);
    for hunk in all {
        merged.extend_from_slice(&read[at.min(hunk.read.start)..hunk.read.start]);
        merged.extend_from_slice(hunk.bytes);
        at = hunk.read.end;
    }
    merged.extend_from_slice(&read[at..]);
    Ok(merged)
}

/// How a later version differs from `read`, in order.
fn hunks<'a>(read: &[u8], later: &'a [u8]) -> Vec<Hunk<'a>> {
    if read.len() == later.len() { runs(read, later) } else { line_hunks(read, later) }
}

/// Runs of bytes that differ at their places.
fn runs<'a>(read: &[u8], later: &'a [u8]) -> Vec<Hunk<'a>> {
    let mut found: Vec<Hunk<'a>> = Vec::new();
    let mut at = 0;
    while at < read.len() {
        if read[at] == later[at] {
            at += 1;
            continue;
        }
        let length = read[at..].iter().zip(&later[at..]).take_while(|(one, other)| one != other).count();
        found.push(Hunk { read: at..at + length, bytes: &later[at..at + length] });
        at += length;
    }
    found
}

/// Differences by lines, each without the bytes at its ends that are the same.
fn line_hunks<'a>(read: &[u8], later: &'a [u8]) -> Vec<Hunk<'a>> {
    let (old, new) = (lines(read), lines(later));
    let mut found = Vec::new();
    for (from, to) in different_lines(read, later, &old, &new) {
        let place =
            |lines: &[Range<usize>], length: usize, line: usize| lines.get(line).map_or(length, |line| line.start);
        let read_range = place(&old, read.len(), from.start)..place(&old, read.len(), from.end);
        let later_range = place(&new, later.len(), to.start)..place(&new, later.len(), to.end);
        found.push(trimmed(read, read_range, later, later_range));
    }
    found
}

fn trimmed<'a>(read: &[u8], mut old: Range<usize>, later: &'a [u8], mut new: Range<usize>) -> Hunk<'a> {
    let same = read[old.clone()].iter().zip(&later[new.clone()]).take_while(|(one, other)| one == other).count();
    (old.start, new.start) = (old.start + same, new.start + same);
    let same = read[old.clone()].iter().rev().zip(later[new.clone()].iter().rev());
    let same = same.take_while(|(one, other)| one == other).count();
    (old.end, new.end) = (old.end - same, new.end - same);
    Hunk { read: old, bytes: &later[new] }
}

/// Where lines lie, each with its end.
fn lines(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut start = 0;
    bytes
        .split_inclusive(|byte| *byte == b'\n')
        .map(|line| {
            let range = start..start + line.len();
            start = range.end;
            range
        })
        .collect()
}

/// Lines of one version and those of the other that stand instead of them, in order (Myers, 1986: the fewest lines that come or go).
fn different_lines(
    read: &[u8],
    later: &[u8],
    old: &[Range<usize>],
    new: &[Range<usize>],
) -> Vec<(Range<usize>, Range<usize>)> {
    let same = |one: usize, other: usize| read[old[one].clone()] == later[new[other].clone()];
    let first = (0..old.len().min(new.len())).take_while(|line| same(*line, *line)).count();
    let room = old.len().min(new.len()) - first;
    let last = (0..room).take_while(|line| same(old.len() - 1 - line, new.len() - 1 - line)).count();
    let (old_end, new_end) = (old.len() - last, new.len() - last);
    let (old_count, new_count) = (old_end - first, new_end - first);
    let all = || vec![(first..old_end, first..new_end)];
    // By diagonal, from `-most` on: how many old lines the furthest path on it has used. One such list for each number of differences.
    let most = (old_count + new_count).min(MOST_DIFFERENCES);
    let mut furthest = vec![0_usize; 2 * most + 3];
    let place = |diagonal: isize| (diagonal + most as isize + 1) as usize;
    let comes_down = |furthest: &[usize], diagonal: isize, differences: isize| {
        diagonal == -differences
            || (diagonal != differences && furthest[place(diagonal - 1)] < furthest[place(diagonal + 1)])
    };
    let mut past: Vec<Vec<usize>> = Vec::new();
    let mut is_found = false;
    'search: for differences in 0..=most as isize {
        past.push(furthest.clone());
        for diagonal in (-differences..=differences).step_by(2) {
            let mut used = match comes_down(&furthest, diagonal, differences) {
                true => furthest[place(diagonal + 1)],
                false => furthest[place(diagonal - 1)] + 1,
            };
            let mut other = used as isize - diagonal;
            while used < old_count
                && (0..new_count as isize).contains(&other)
                && same(first + used, first + other as usize)
            {
                used += 1;
                other += 1;
            }
            furthest[place(diagonal)] = used;
            if used >= old_count && other >= new_count as isize {
                is_found = true;
                break 'search;
            }
        }
    }
    if !is_found {
        return all();
    }
    // Back along the path: which lines it has left out of either.
    let (mut used, mut other) = (old_count as isize, new_count as isize);
    let mut changed: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    for differences in (1..past.len() as isize).rev() {
        let furthest = &past[differences as usize];
        let diagonal = used - other;
        let comes_down = comes_down(furthest, diagonal, differences);
        let before = if comes_down { diagonal + 1 } else { diagonal - 1 };
        let from = furthest[place(before)] as isize;
        let (from, from_other) = (from, from - before);
        let step = match comes_down {
            true => (from..from, from_other..from_other + 1),
            false => (from..from + 1, from_other..from_other),
        };
        let at = |place: isize| first + place as usize;
        let (gone, come) = (at(step.0.start)..at(step.0.end), at(step.1.start)..at(step.1.end));
        match changed.last_mut() {
            Some((after, after_come)) if gone.end == after.start && come.end == after_come.start => {
                (after.start, after_come.start) = (gone.start, come.start);
            }
            _ => changed.push((gone, come)),
        }
        (used, other) = (from, from_other);
    }
    changed.reverse();
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(read: &str, ours: &str, theirs: &str) -> Result<String, Range<usize>> {
        let both = merged(read.as_bytes(), ours.as_bytes(), theirs.as_bytes())?;
        assert_eq!(merged(read.as_bytes(), theirs.as_bytes(), ours.as_bytes()).as_ref(), Ok(&both), "in either order");
        Ok(String::from_utf8(both).expect("text"))
    }

    #[test]
    fn different_bytes_are_both_there() {
        assert_eq!(text("abcd", "Abcd", "abcD").as_deref(), Ok("AbcD"));
        assert_eq!(text("abcd", "ABcd", "abCD").as_deref(), Ok("ABCD"), "next to each other");
        assert_eq!(text("1\n2\n3\n", "1\n2\n3\n4\n", "0\n1\n2\n3\n").as_deref(), Ok("0\n1\n2\n3\n4\n"));
        assert_eq!(text("1\n2\n3\n4\n5\n", "1\n3\n4\n5\n", "1\n2\n3\n4\nfive\n").as_deref(), Ok("1\n3\n4\nfive\n"));
        assert_eq!(text("x = 1; y = 2\n", "x = 10; y = 2\n", "x = 1; y = 22\n").as_deref(), Ok("x = 10; y = 22\n"));
        assert_eq!(text("same", "same", "other").as_deref(), Ok("other"));
    }

    #[test]
    fn the_same_bytes_are_refused() {
        assert_eq!(text("0\n", "1\n", "1\n"), Err(0..1), "of two that count, one has to count again");
        assert_eq!(text("abcd", "aBCd", "abXd"), Err(2..3));
        assert_eq!(text("log\n", "log\nours\n", "log\ntheirs\n"), Err(4..4), "two that append have an order");
        assert_eq!(text("a\nb\nc\n", "a\nc\n", "a\nB\nc\n"), Err(2..3));
        assert_eq!(text("", "ours", "theirs"), Err(0..0));
        assert_eq!(text("ab", "aXb", "aYYb"), Err(1..1));
    }

    /// Lines that are drawn: where both sides change lines with at least one between them, the merge is what each of both changes alone
    /// leaves of its lines; and whatever was drawn, a merge has all lines that only one side has put in.
    #[test]
    fn drawn_changes_are_both_there() {
        let mut state = 7_u64;
        let mut draw = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let (mut put_together, mut refused) = (0, 0);
        for round in 0..3_000 {
            let read: Vec<String> = (0..draw(12)).map(|_| format!("{}\n", draw(4))).collect();
            let mut change = |name: &str| {
                let mut lines = read.clone();
                for number in 0..1 + draw(2) {
                    let at = draw(lines.len() + 1);
                    match draw(3) {
                        0 => lines.insert(at, format!("{name}{number}\n")),
                        1 if at < lines.len() => lines[at] = format!("{name}{number}\n"),
                        _ if at < lines.len() => drop(lines.remove(at)),
                        _ => {}
                    }
                }
                lines.concat()
            };
            let (ours, theirs, read) = (change("o"), change("t"), read.concat());
            assert_eq!(text(&read, &ours, &read).as_deref(), Ok(ours.as_str()), "round {round}: one change alone");
            match text(&read, &ours, &theirs) {
                Err(_) => refused += 1,
                Ok(both) => {
                    put_together += 1;
                    let own = |text: &str, mark: char| {
                        text.lines().filter(|line| line.starts_with(mark)).map(str::to_owned).collect::<Vec<_>>()
                    };
                    assert_eq!(
                        own(&both, 'o'),
                        own(&ours, 'o'),
                        "round {round}: {read:?} {ours:?} {theirs:?} {both:?}"
                    );
                    assert_eq!(
                        own(&both, 't'),
                        own(&theirs, 't'),
                        "round {round}: {read:?} {ours:?} {theirs:?} {both:?}"
                    );
                    let length = ours.len() + theirs.len() - read.len();
                    assert_eq!(both.len(), length, "round {round}: {read:?} {ours:?} {theirs:?} {both:?}");
                }
            }
        }
        assert!(put_together > 500 && refused > 500, "{put_together} {refused}");
    }

    #[test]
    fn versions_that_have_little_in_common_are_one_difference() {
        let lines = |mark: &str| (0..3_000).map(|line| format!("{mark}{line}\n")).collect::<String>();
        let read = format!("first\n{}last\n", lines("r"));
        let ours = format!("first\n{}more\nlast\n", lines("o"));
        assert_eq!(text(&read, &ours, &read).as_deref(), Ok(ours.as_str()));
        assert!(text(&read, &ours, &read.replace("r1500\n", "R\n")).is_err());
        assert!(text(&read, &ours, &read.replace("first\n", "First\n")).is_ok());
    }
}
