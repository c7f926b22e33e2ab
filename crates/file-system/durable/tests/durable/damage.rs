//! Instances that are not as they were written: a clear error, or all of it is there after all.

use durable::{Durable, OpenError};

use crate::disk::{Disk, Draw};
use crate::power_cuts::SMALL;
use crate::tree::{Tree, part, tree};

/// Both files of an instance that was closed, and what is in it.
fn closed() -> ([Vec<u8>; 2], Tree) {
    let disk = Disk::default();
    let instance = Durable::create_in(disk.storage(), SMALL).unwrap();
    for round in 0..40_u8 {
        instance
            .transaction(|t| {
                if round % 4 == 0 {
                    t.create_dir(format!("d{round}"))?;
                    t.write(format!("d{round}/large"), vec![round + 1; 100_000])?;
                }
                t.write(format!("small{}", round % 16), vec![round + 1; usize::from(round) * 50])?;
                t.symlink("there", format!("link{round}"))
            })
            .unwrap();
    }
    let seen = tree(&instance);
    instance.close().unwrap();
    (disk.cut(disk.steps(), &mut Draw(0)), seen)
}

/// Opens what is damaged: its error, or what is in it.
fn opened(files: [Vec<u8>; 2]) -> Result<Tree, OpenError> {
    Durable::open_in(Disk::with(files).storage(), SMALL).map(|instance| tree(&instance))
}

/// How many of these flips are noticed; what is not is no damage.
pub fn flip_bits(flips: u64) -> u64 {
    let (files, seen) = closed();
    let used = [0, 1]
        .map(|file: usize| -> Vec<usize> { (0..files[file].len()).filter(|place| files[file][*place] != 0).collect() });
    let mut noticed = 0;
    for flip in 0..flips {
        let mut draw = Draw(part() << 32 | flip);
        let mut damaged = files.clone();
        let file = draw.below(2) as usize;
        // The headers are small, and of the rest most is free.
        let place = match draw.below(4) {
            0 => draw.below(320) as usize,
            1 => draw.below(files[file].len() as u64) as usize,
            _ => used[file][draw.below(used[file].len() as u64) as usize],
        };
        damaged[file][place] ^= 1 << draw.below(8);
        match opened(damaged) {
            Ok(found) => assert!(found == seen, "flip {flip} at {place} of file {file} is not noticed"),
            Err(error) => {
                assert!(matches!(error, OpenError::Damaged(_) | OpenError::OtherVersion { .. }), "{flip}: {error:?}");
                noticed += 1;
            }
        }
    }
    noticed
}

/// `COMMUTANT_FLIPS` says how many; by default few.
#[test]
fn any_bit_that_is_wrong_is_noticed_or_harmless() {
    let flips = std::env::var("COMMUTANT_FLIPS").map_or(30, |flips| flips.parse().unwrap());
    let noticed = flip_bits(flips);
    assert!(noticed > flips / 4 && noticed < flips, "{noticed} of {flips}");
    println!("{noticed} of {flips} wrong bits were noticed, the others changed nothing");
}

#[test]
fn files_of_any_length_are_noticed_or_harmless() {
    let (files, seen) = closed();
    for cut in 0..24 {
        let mut draw = Draw(cut);
        let mut damaged = files.clone();
        let file = (cut % 2) as usize;
        let length = draw.below(files[file].len() as u64) as usize;
        // All but as many bytes, or as many alone.
        let length = if cut < 6 { length % 5000 } else { length };
        damaged[file].truncate(length);
        if let Ok(found) = opened(damaged) {
            assert!(found == seen, "{length} bytes of file {file} of {}", files[file].len());
        }
        let mut longer = files.clone();
        longer[file].resize(files[file].len() + length, 0xA5);
        assert!(opened(longer).is_ok_and(|found| found == seen), "{length} bytes more");
    }
}

pub fn put_an_older_copy_back() {
    let disk = Disk::default();
    let instance = Durable::create_in(disk.storage(), SMALL).unwrap();
    instance.transaction(|t| t.create("first")).unwrap();
    let older = disk.cut(disk.steps(), &mut Draw(0));
    instance.transaction(|t| t.create("second")).unwrap();
    drop(instance);
    let [_, pages] = disk.cut(disk.steps(), &mut Draw(0));
    let [records, _] = older;
    let refused = opened([records, pages]).unwrap_err();
    assert!(refused.to_string().contains("1 more that had lasted are gone"), "{refused}");
}

#[test]
fn an_older_copy_of_the_records_is_noticed() {
    put_an_older_copy_back();
}

#[test]
fn files_of_two_instances_are_noticed() {
    let ([records, _], _) = closed();
    let ([_, pages], _) = closed();
    let refused = opened([records, pages]).unwrap_err();
    assert!(refused.to_string().contains("of two instances"), "{refused}");
}

#[test]
fn another_format_is_named() {
    let (files, _) = closed();
    let mut other = files;
    other[1][8] = 7;
    // As a program of that format would have written it.
    let checksum = blake3::hash(&other[1][..28]);
    other[1][28..44].copy_from_slice(&checksum.as_bytes()[..16]);
    let refused = opened(other).unwrap_err();
    assert!(matches!(refused, OpenError::OtherVersion { found: 7 }), "{refused}");
    assert!(refused.to_string().contains("format 7, and this program reads format 1"), "{refused}");
}
