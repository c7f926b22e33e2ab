//! Two systems measured in one run: their rounds alternate, and each round of one is held against the next of the other,
//! so that a slow phase of the machine strikes both. Time is that of the thread on its processor, so that other programs
//! count only by what they leave in the caches.

use std::ptr::NonNull;

/// Calls of a round.
const CALLS: usize = 2000;

/// What the command line asks for: rounds, and a part of the titles of what is to be measured.
pub struct Options {
    pub rounds: usize,
    part: String,
}

impl Options {
    /// From arguments such as `12 stat`, whatever their order; those with a dash are cargo's.
    pub fn from_arguments() -> Options {
        let mut options = Options { rounds: 41, part: String::new() };
        for argument in std::env::args().skip(1).filter(|argument| !argument.starts_with('-')) {
            match argument.parse() {
                Ok(rounds) => options.rounds = rounds,
                Err(_) => options.part = argument,
            }
        }
        options
    }

    pub fn wants(&self, title: &str) -> bool {
        title.contains(&self.part)
    }

    /// Rounds of ours and of theirs in turn, as a row.
    pub fn compare(&self, title: &str, mut ours: impl FnMut(usize), mut theirs: impl FnMut(usize)) {
        if !self.wants(title) {
            return;
        }
        let rounds = (0..self.rounds).map(|_| (processor_ns_per_call(&mut ours), processor_ns_per_call(&mut theirs)));
        print_row(title, rounds.collect());
    }
}

/// Nanoseconds that this thread has spent on its processor.
pub fn processor_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is ours to write.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) }, 0);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn processor_ns_per_call(call: impl FnMut(usize)) -> f64 {
    let start = processor_ns();
    (0..CALLS).for_each(call);
    (processor_ns() - start) as f64 / CALLS as f64
}

/// First quartile, median and third quartile.
pub fn quartiles(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    [values.len() / 4, values.len() / 2, 3 * values.len() / 4].map(|index| values[index])
}

/// The head of a table.
pub fn print_head(what: &str) {
    println!("{what:<22} {:>20} {:>20} {:>22}", "ScaleFS", "tmpfs", "ratio of a pair");
}

/// A row of pairs of ours and theirs: medians with quartiles, of the pairs' ratios too.
pub fn print_row(title: &str, rounds: Vec<(f64, f64)>) {
    let [ours, theirs] = [quartiles(rounds.iter().map(|pair| pair.0)), quartiles(rounds.iter().map(|pair| pair.1))];
    let ratio = quartiles(rounds.iter().map(|(ours, theirs)| ours / theirs));
    let times = |[first, median, third]: [f64; 3]| format!("{median:.0} [{first:.0}, {third:.0}]");
    let ratio = format!("{:.3} [{:.3}, {:.3}]", ratio[1], ratio[0], ratio[2]);
    println!("{title:<22} {:>20} {:>20} {ratio:>22}", times(ours), times(theirs));
}

/// Memory of at least so many bytes in huge pages, as large arenas and pools should lie in, all touched.
pub fn huge_pages(size_bytes: usize) -> (NonNull<u8>, usize) {
    const HUGE_BYTES: usize = 2 << 20;
    let size_bytes = size_bytes.next_multiple_of(HUGE_BYTES);
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, one huge page larger than what is used of it, so that its start can be aligned.
    unsafe {
        let mapped = libc::mmap(std::ptr::null_mut(), size_bytes + HUGE_BYTES, protection, flags, -1, 0);
        assert_ne!(mapped, libc::MAP_FAILED);
        let start = mapped.cast::<u8>().add(mapped.align_offset(HUGE_BYTES));
        // A kernel without huge pages gives small ones.
        libc::madvise(start.cast(), size_bytes, libc::MADV_HUGEPAGE);
        for offset in (0..size_bytes).step_by(4096) {
            start.add(offset).write_volatile(0);
        }
        (NonNull::new(start).unwrap(), size_bytes)
    }
}
