//! All benchmarks. Those with two variants differ in the interface alone: what lets calls commute has `-any` or the like.

mod children;
mod data;
mod fxmark;
mod mail;
mod map;
mod names;
mod path;
mod pipes;
mod sharded;
mod sockets;

use scalefs::data::{self as calls, DescriptorOptions};
use scalefs::{Errno, NumberChoice, OnExec, OpenFlags, Start, StatusFlags};

use self::path::Path;
use crate::benchmark::Benchmark;
use crate::world::World;

/// Every benchmark, in the order in which they are told of.
pub fn all() -> impl Iterator<Item = &'static Benchmark> {
    let groups: [&[Benchmark]; 9] = [
        &names::BENCHMARKS,
        &data::BENCHMARKS,
        &pipes::BENCHMARKS,
        &map::BENCHMARKS,
        &sockets::BENCHMARKS,
        &children::BENCHMARKS,
        &mail::BENCHMARKS,
        &sharded::BENCHMARKS,
        &fxmark::BENCHMARKS,
    ];
    groups.into_iter().flatten()
}

const AT: Start<scalefs::Node<'static>> = Start::WorkingDirectory;
const READ_WRITE: OpenFlags = OpenFlags::READ.union(OpenFlags::WRITE);

/// The number of a new descriptor may be any (`O_ANYFD`).
const ANY: DescriptorOptions =
    DescriptorOptions { status: StatusFlags::NONE, number: NumberChoice::Any, on_exec: OnExec::Keep };

/// A file name of a core's own.
fn name(core: usize, what: &str) -> Path {
    Path::from(format!("{what}-{core}"))
}

/// Makes a file and keeps it open.
fn make(world: &World, path: &[u8]) -> u32 {
    calls::open(&world.enter(0), AT, path, READ_WRITE | OpenFlags::CREATE, 0o600, ANY).expect("a new file")
}

/// What each core has, by core.
fn of_each<T>(world: &World, make: impl Fn(usize) -> T) -> Vec<T> {
    (0..world.core_count()).map(make).collect()
}

/// Makes a call until it has not to wait any more.
fn again(mut call: impl FnMut() -> Result<(), Errno>) {
    let mut round = 0;
    while let Err(errno) = call() {
        assert_eq!(errno, Errno::EAGAIN);
        sync::Wait::wait(&sync::Spin, sync::WaitReason::Pipe, round);
        round += 1;
    }
}
