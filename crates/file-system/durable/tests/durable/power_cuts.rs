//! Power cuts at each write and sync: what has returned is there, and nothing is there by half.

use std::io;

use durable::{Durable, Options};
use posix_calls::attributes::NewTime;
use scalefs::OwnedConfig;
use transact::Scope;

use crate::disk::{Disk, Draw};
use crate::tree::{Tree, part, tree};

/// Small, since it is made again for each cut.
pub const SMALL: Options =
    Options { memory: OwnedConfig { metadata_bytes: 2 << 20, page_count: 1 << 10, core_count: 2, hash_seed: 1 } };
/// So many transactions are there before the cuts.
const TRANSACTIONS: usize = 24;
/// Enough for the page file: fewer pages are records.
const LARGE_BYTES: u64 = 30 * 4096;

/// What there was after each transaction, and when it was said to last.
pub struct Past {
    pub disk: Disk,
    trees: Vec<Tree>,
    /// By transaction: after how many steps it had returned. Those that do not wait for the disk have not said so.
    returned: Vec<Option<usize>>,
    /// After how many steps each began.
    begun: Vec<usize>,
}

/// One transaction that was drawn.
fn act(t: &Scope<'_>, draw: &mut Draw) -> io::Result<()> {
    for _ in 0..=draw.below(3) {
        let (folder, other) = (format!("d{}", draw.below(3)), format!("d{}", draw.below(3)));
        let (file, second) = (format!("{folder}/f{}", draw.below(4)), format!("{other}/f{}", draw.below(4)));
        let byte = draw.below(255) as u8 + 1;
        // Refused ones are parts of what is drawn.
        let _ = match draw.below(12) {
            0 => t.create_dir(&folder),
            1 => t.remove_dir(&folder),
            2 => t.rename(&folder, &other),
            3 | 4 => t.write(&file, vec![byte; draw.below(9000) as usize]),
            5 => t.write(&file, vec![byte; (LARGE_BYTES + draw.below(LARGE_BYTES)) as usize]),
            6 => t.write_at(&file, vec![byte; draw.below(9000) as usize], draw.below(LARGE_BYTES)),
            7 => t.set_len(&file, draw.below(LARGE_BYTES)),
            8 => t.remove_file(&file),
            9 => t.rename(&file, &second),
            10 => t.hard_link(&file, &second),
            _ => t
                .set_times(&file, (NewTime::At(byte.into()), NewTime::At(-1)))
                .and_then(|()| t.set_mode(&file, byte.into())),
        };
    }
    Ok(())
}

impl Past {
    /// An instance that transactions have come into.
    pub fn drawn(seed: u64) -> Past {
        let disk = Disk::default();
        let mut draw = Draw(seed);
        let instance = Durable::create_in(disk.storage(), SMALL).unwrap();
        let mut past = Past { trees: vec![tree(&instance)], returned: vec![Some(disk.steps())], begun: vec![0], disk };
        for _ in 0..TRANSACTIONS {
            past.begun.push(past.disk.steps());
            let waits = draw.below(3) > 0;
            if waits {
                instance.transaction(|t| act(t, &mut draw)).unwrap();
            } else {
                instance.transaction_later(|t| act(t, &mut draw)).unwrap();
            }
            past.returned.push(waits.then(|| past.disk.steps()));
            past.trees.push(tree(&instance));
        }
        drop(instance);
        past
    }

    /// The first step after which there is an instance.
    pub fn first_cut(&self) -> usize {
        self.returned[0].unwrap()
    }

    /// Cuts the power after some steps, and once more while the instance is opened again: what has returned is there.
    pub fn cut(&self, at: usize, draw: &mut Draw) {
        let again = Disk::with(self.disk.cut(at, draw));
        let instance = Durable::open_in(again.storage(), SMALL).unwrap_or_else(|error| panic!("cut at {at}: {error}"));
        let found = tree(&instance);
        let returned = self.returned.iter().rposition(|returned| returned.is_some_and(|step| step <= at)).unwrap();
        let begun = self.begun.iter().rposition(|step| *step <= at).unwrap();
        let possible = &self.trees[returned..=begun];
        assert!(possible.contains(&found), "cut at {at}: none of transactions {returned} to {begun}");
        if draw.below(4) == 0 {
            instance.transaction(|t| t.write("after", vec![1; draw.below(2 * LARGE_BYTES) as usize])).unwrap();
            let with_more = tree(&instance);
            drop(instance);
            let third = Durable::open_in(Disk::with(again.cut(again.steps(), draw)).storage(), SMALL).unwrap();
            assert_eq!(tree(&third), with_more);
            return;
        }
        let steps = again.steps();
        drop(instance);
        let cut_again = again.cut(draw.below(steps as u64 + 1) as usize, draw);
        let third = Durable::open_in(Disk::with(cut_again).storage(), SMALL).unwrap();
        assert_eq!(tree(&third), found, "cut at {at}, and in the opening after it");
    }
}

/// Draws instances and cuts.
pub fn cut_often(seeds: std::ops::Range<u64>, cuts: usize) {
    for seed in seeds {
        let past = Past::drawn(seed);
        let (first, last) = (past.first_cut() as u64, past.disk.steps() as u64);
        for cut in 0..cuts {
            let mut draw = Draw(seed << 32 | cut as u64);
            let at = first + draw.below(last - first + 1);
            past.cut(at as usize, &mut draw);
        }
    }
}

/// `COMMUTANT_POWER_CUTS` says how many; by default few.
#[test]
fn what_has_returned_survives_power_cuts() {
    let cuts: usize = std::env::var("COMMUTANT_POWER_CUTS").map_or(24, |cuts| cuts.parse().unwrap());
    let seeds = (cuts / 1000).max(3) as u64;
    let first = 1 + part() * seeds;
    cut_often(first..first + seeds, cuts / seeds as usize);
}

/// Who has looked at something, or was refused because of it, has looked at what lasts.
#[test]
fn answers_rest_on_what_lasts() {
    rest_on_what_lasts();
}

pub fn rest_on_what_lasts() {
    for seed in 0..8 {
        let disk = Disk::default();
        let instance = Durable::create_in(disk.storage(), SMALL).unwrap();
        let name = if seed % 2 == 0 { "refused" } else { "seen" };
        instance.transaction_later(|t| t.create(name)).unwrap();
        if seed % 2 == 0 {
            let refused = instance.transaction(|t| t.create(name)).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        } else {
            assert!(instance.transaction(|t| t.exists(name)).unwrap());
        }
        let left = disk.cut(disk.steps(), &mut Draw(seed));
        let again = Durable::open_in(Disk::with(left).storage(), SMALL).unwrap();
        assert!(again.transaction(|t| t.exists(name)).unwrap(), "{name}, seed {seed}");
    }
}

/// A disk that fails at any step: what had returned is there, and who waits is told.
#[test]
fn a_disk_that_fails_is_said() {
    let steps = {
        let whole = Past::drawn(5);
        whole.disk.steps()
    };
    for fails_at in (0..steps + 20).step_by(7) {
        let disk = Disk::failing(fails_at);
        let Ok(instance) = Durable::create_in(disk.storage(), SMALL) else { continue };
        let (mut lasting, mut failed) = (Vec::new(), false);
        for round in 0..20 {
            let name = format!("f{round}");
            let bytes = vec![round as u8; if round % 3 == 0 { LARGE_BYTES as usize } else { 10 }];
            match instance.transaction(|t| t.write(&name, &bytes)) {
                Ok(()) => {
                    assert!(!failed, "after a failure nothing lasts");
                    lasting.push((name, bytes));
                }
                Err(error) => {
                    failed = true;
                    assert!(error.to_string().contains("the disk"), "{error}");
                }
            }
        }
        drop(instance);
        let left = disk.cut(disk.steps(), &mut Draw(fails_at as u64));
        let again = Durable::open_in(Disk::with(left).storage(), SMALL).unwrap();
        for (name, bytes) in lasting {
            assert_eq!(again.transaction(|t| t.read(&name)).unwrap(), bytes);
        }
    }
}
