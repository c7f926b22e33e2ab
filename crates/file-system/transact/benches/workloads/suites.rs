//! The programs of table 5.2 of the thesis on TxOS, small: PostMark, the benchmarks of the log-structured file system (LFS)
//! on small files and on a large one, and the phases of the Andrew benchmark as there. A phase consists of parts, each of
//! which is one transaction: in PostMark each of its transactions, else the whole phase.

use std::hint::black_box;
use std::io;

use crate::door::Door;

type Part = Box<dyn Fn(&dyn Door) -> io::Result<()>>;

/// What is timed.
pub struct Phase {
    pub name: &'static str,
    pub parts: Vec<Part>,
}

/// Phases that run one after the other in an empty file system; those before them are timed for nobody.
pub struct Suite {
    pub before: Vec<Part>,
    pub phases: Vec<Phase>,
}

fn whole(name: &'static str, part: impl Fn(&dyn Door) -> io::Result<()> + 'static) -> Phase {
    Phase { name, parts: vec![Box::new(part)] }
}

/// Numbers that are the same each time (splitmix64).
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

/// PostMark 1.5: a pool of files of 500 to 9,770 bytes; each transaction reads or appends to one, and makes or removes one.
fn postmark() -> Suite {
    const POOL: u64 = 200;
    const TRANSACTIONS: u64 = 600;
    let mut draw = Draw(42);
    let bytes = |draw: &mut Draw| vec![b'm'; 500 + draw.below(9_271) as usize];
    let mut pool: Vec<u64> = (0..POOL).collect();
    let mut before: Vec<Part> = vec![Box::new(|calls| calls.create_dir("pool"))];
    for file in 0..POOL {
        let bytes = bytes(&mut draw);
        before.push(Box::new(move |calls| calls.write(&format!("pool/{file}"), &bytes)));
    }
    let mut parts: Vec<Part> = Vec::new();
    for number in 0..TRANSACTIONS {
        let file = format!("pool/{}", pool[draw.below(pool.len() as u64) as usize]);
        let appended = (draw.below(2) == 0).then(|| bytes(&mut draw));
        let made = (draw.below(2) == 0).then(|| bytes(&mut draw));
        let other = match &made {
            Some(_) => POOL + number,
            None => pool.swap_remove(draw.below(pool.len() as u64) as usize),
        };
        pool.extend(made.is_some().then_some(other));
        parts.push(Box::new(move |calls| {
            match &appended {
                Some(bytes) => calls.append(&file, bytes)?,
                None => drop(black_box(calls.read(&file)?)),
            }
            let other = format!("pool/{other}");
            match &made {
                Some(bytes) => calls.write(&other, bytes),
                None => calls.remove_file(&other),
            }
        }));
    }
    Suite { before, phases: vec![Phase { name: "PostMark", parts }] }
}

fn small_files() -> Suite {
    const FILES: usize = 1_000;
    let all = |act: fn(&dyn Door, &str) -> io::Result<()>| {
        move |calls: &dyn Door| (0..FILES).try_for_each(|file| act(calls, &format!("small/{file}")))
    };
    let phases = vec![
        whole("LFS small, create", all(|calls, file| calls.write(file, &[b's'; 1024]))),
        whole("LFS small, read", all(|calls, file| calls.read(file).map(|bytes| drop(black_box(bytes))))),
        whole("LFS small, delete", all(|calls, file| calls.remove_file(file))),
    ];
    Suite { before: vec![Box::new(|calls| calls.create_dir("small"))], phases }
}

fn large_file() -> Suite {
    const PARTS: u64 = 512;
    const PART_BYTES: usize = 8 << 10;
    let order = || {
        let mut draw = Draw(7);
        let mut order: Vec<u64> = (0..PARTS).collect();
        (1..PARTS).rev().for_each(|last| order.swap(last as usize, draw.below(last + 1) as usize));
        order
    };
    let write =
        |calls: &dyn Door, part: u64| calls.write_at("large", &[part as u8; PART_BYTES], part * PART_BYTES as u64);
    let phases = vec![
        whole("LFS large, write in order", move |calls| {
            calls.write("large", b"")?;
            (0..PARTS).try_for_each(|part| write(calls, part))
        }),
        whole("LFS large, read", |calls| calls.read("large").map(|bytes| drop(black_box(bytes)))),
        whole("LFS large, write at random", move |calls| order().into_iter().try_for_each(|part| write(calls, part))),
    ];
    Suite { before: Vec::new(), phases }
}

/// The phases of the thesis: directories are made, a set of files is copied into some of them, all is counted, all is read.
fn andrew() -> Suite {
    const FILES: usize = 25;
    const DIRECTORIES: usize = 1_000;
    const COPIED_INTO: usize = 40;
    let mut before: Vec<Part> = vec![Box::new(|calls| calls.create_dir("source"))];
    before.push(Box::new(|calls| {
        (0..FILES).try_for_each(|file| calls.write(&format!("source/{file}"), &[b'a' + (file % 26) as u8; 1000]))
    }));
    let each_copy = |act: fn(&dyn Door, &str) -> io::Result<()>| {
        move |calls: &dyn Door| {
            (0..COPIED_INTO).try_for_each(|directory| {
                calls
                    .names(&format!("{directory}"))?
                    .iter()
                    .try_for_each(|name| act(calls, &format!("{directory}/{name}")))
            })
        }
    };
    let phases = vec![
        whole("Andrew, mkdir", |calls| {
            (0..DIRECTORIES).try_for_each(|directory| calls.create_dir(&format!("{directory}")))
        }),
        whole("Andrew, cp", |calls| {
            (0..COPIED_INTO * FILES).try_for_each(|copy| {
                let (directory, file) = (copy / FILES, copy % FILES);
                calls.write(&format!("{directory}/{file}"), &calls.read(&format!("source/{file}"))?)
            })
        }),
        whole("Andrew, du", each_copy(|calls, file| black_box(calls.kind(file)).map(|_| ()))),
        whole("Andrew, grep and sum", each_copy(|calls, file| calls.read(file).map(|bytes| drop(black_box(bytes))))),
    ];
    Suite { before, phases }
}

pub fn all() -> [Suite; 4] {
    [postmark(), small_files(), large_file(), andrew()]
}
