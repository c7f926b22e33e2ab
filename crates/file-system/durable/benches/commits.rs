//! Commits that last: ours, redb's own, and as little as a disk has to do. Each line is a name, a unit, and samples.
//!
//! Rounds of all kinds take turns in one run, so that a disk that is slower for a while is so for all.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use durable::{Durable, Options};
use redb::{Database, TableDefinition};
use scalefs::OwnedConfig;

const TABLE: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("files");
const SMALL_ROUNDS: u64 = 30;
const LARGE_ROUNDS: u64 = 5;
/// Files of a transaction, and bytes of each.
const SMALL: (u64, usize) = (3, 1400);
const LARGE: (u64, usize) = (2000, 4096);
const GROUP_TIME: Duration = Duration::from_secs(3);
const COMMITTERS: usize = 16;

fn milliseconds(act: impl FnOnce() -> io::Result<()>) -> io::Result<f64> {
    let began = Instant::now();
    act()?;
    Ok(began.elapsed().as_secs_f64() * 1000.0)
}

fn print(name: &str, unit: &str, samples: &[f64]) {
    let samples: Vec<_> = samples.iter().map(|sample| format!("{sample:.4}")).collect();
    println!("{name}\t{unit}\t{}", samples.join(" "));
}

fn of(samples: &[f64], base: &[f64]) -> Vec<f64> {
    samples.iter().zip(base).map(|(sample, base)| sample / base).collect()
}

struct Peers {
    appended: File,
    database: Database,
    ours: Durable,
}

impl Peers {
    fn new(folder: &Path) -> io::Result<Peers> {
        let appended = File::options().append(true).create(true).open(folder.join("appended"))?;
        let database = Database::create(folder.join("redb")).map_err(io::Error::other)?;
        let memory = OwnedConfig { metadata_bytes: 128 << 20, page_count: 32 << 10, ..OwnedConfig::default() };
        Ok(Peers { appended, database, ours: Durable::open_with(folder.join("ours"), Options { memory })? })
    }

    /// One commit of each: as many files of so many bytes.
    fn round(&mut self, round: u64, (files, bytes): (u64, usize)) -> io::Result<[f64; 3]> {
        let content = vec![round as u8 + 1; bytes];
        let append = milliseconds(|| {
            self.appended.write_all(&content.repeat(files as usize))?;
            self.appended.sync_data()
        })?;
        let redb = milliseconds(|| {
            let writing = self.database.begin_write().map_err(io::Error::other)?;
            let mut table = writing.open_table(TABLE).map_err(io::Error::other)?;
            for file in 0..files {
                table.insert(round << 32 | file, &content[..]).map_err(io::Error::other)?;
            }
            drop(table);
            writing.commit().map_err(io::Error::other)
        })?;
        let folder = format!("{files}-{round}");
        self.ours.transaction(|t| t.create_dir(&folder))?;
        let ours = milliseconds(|| {
            self.ours.transaction(|t| (0..files).try_for_each(|file| t.write(format!("{folder}/{file}"), &content)))
        })?;
        Ok([append, redb, ours])
    }

    fn compare(&mut self, rounds: u64, size: (u64, usize), words: &str) -> io::Result<()> {
        let samples = (0..rounds).map(|round| self.round(round, size)).collect::<io::Result<Vec<_>>>()?;
        let column = |index: usize| samples.iter().map(|sample| sample[index]).collect::<Vec<_>>();
        let [append, redb, ours] = [0, 1, 2].map(column);
        print(&format!("append and fdatasync, {words}"), "ms", &append);
        print(&format!("redb, {words}"), "ms", &redb);
        print(&format!("durable transaction, {words}"), "ms", &ours);
        print(&format!("durable transaction, {words}, of append and fdatasync"), "", &of(&ours, &append));
        Ok(())
    }
}

/// Commits a second of some threads.
fn rate(ours: &Durable, threads: usize) -> f64 {
    let began = Instant::now();
    let count = thread::scope(|scope| {
        let commit = |thread: usize| {
            let mut count = 0_u64;
            while began.elapsed() < GROUP_TIME {
                let file = format!("committer{thread}");
                ours.transaction(|t| t.write(&file, count.to_le_bytes())).expect("the disk does not fail");
                count += 1;
            }
            count
        };
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || commit(thread))).collect();
        running.into_iter().map(|thread| thread.join().expect("it does not panic")).sum::<u64>()
    });
    count as f64 / began.elapsed().as_secs_f64()
}

fn main() -> io::Result<()> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("durable-commits-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let mut peers = Peers::new(&folder)?;
    peers.compare(SMALL_ROUNDS, SMALL, "3 files of 1.4 kB")?;
    peers.compare(LARGE_ROUNDS, LARGE, "2,000 files of 4 KiB")?;
    let (one, many): (Vec<_>, Vec<_>) = (0..3).map(|_| (rate(&peers.ours, 1), rate(&peers.ours, COMMITTERS))).unzip();
    print("durable commits of one thread", "commits/s", &one);
    print("durable commits of 16 threads", "commits/s", &many);
    print("durable commits of 16 threads, of one", "", &of(&many, &one));
    black_box(&peers);
    drop(peers);
    fs::remove_dir_all(folder)
}
