//! A call on one core many times, to be counted by a tool that counts instructions:
//!
//! ```sh
//! cargo build --release -p scalefs --example instructions
//! valgrind --tool=callgrind --branch-sim=yes target/release/examples/instructions stat 640
//! ```
//! `map-unmap` and `map-store-unmap` are of one anonymous page. The difference of runs of 1,280 and of 640 calls is what 640 calls cost, with what surrounds them; `nothing` tells that.
//! `front-stat` and others with that beginning are made by the front door, [`scalefs::FileSystem`].
//! A third argument is how many descriptors that `exec` closes the process has: `spawn 640 100000`.
use std::hint::black_box;

use scalefs::data::{self, DescriptorOptions, Whence};
use scalefs::memory::{self, Address, MappedObject};
use scalefs::names::{self, RenameMode};
use scalefs::processes;
use scalefs::{
    Credentials, DataOperations, Fields, FileSystem, Follow, InProcess, MemoryOperations, OnExec, OpenFlags,
    OpenOptions, OwnedConfig, OwnedScaleFs, Process, Protection, SpawnOptions, Start, Which, attributes, directories,
};
use sync::Spin;

const AT: Start<scalefs::Node<'static>> = Start::WorkingDirectory;
const READ_WRITE: OpenFlags = OpenFlags::READ.union(OpenFlags::WRITE);

fn open(calls: &InProcess<'_, Spin>, path: &[u8], flags: OpenFlags) -> u32 {
    data::open(calls, AT, path, flags, 0o600, DescriptorOptions::PLAIN).unwrap()
}

/// The calls of the front door.
fn by_the_front(call: &str, count: usize) {
    let page_count = if call == "front-refused-pwrite" { 64 } else { 1 << 10 };
    let root = FileSystem::create(OwnedConfig { page_count, ..OwnedConfig::default() }).unwrap().root().unwrap();
    let options = OpenOptions::new().read(true).write(true);
    let file = root.open_with("f", options.create(true)).unwrap();
    let mut page = [1; 4096];
    file.write_at(&page, 0).unwrap();
    let mut pages = 1;
    if call == "front-refused-pwrite" {
        while file.write_at(&page, 4096 * pages).is_ok() {
            pages += 1;
        }
    }
    for round in 0..count {
        match call {
            "front-nothing" => {
                black_box(&root);
            }
            "front-stat" => {
                black_box(root.metadata("f").unwrap());
            }
            "front-open-close" => drop(root.open_with("f", options).unwrap()),
            "front-pread" => {
                file.read_at(&mut page, 0).unwrap();
            }
            "front-pwrite" => {
                file.write_at(&page, 0).unwrap();
            }
            "front-refused-pwrite" => {
                file.write_at(&page, 4096 * pages).unwrap_err();
            }
            "front-create-unlink" => {
                drop(root.create("g").unwrap());
                root.remove_file("g").unwrap();
            }
            "front-rename" => {
                let (from, to) = if round % 2 == 0 { ("f", "g") } else { ("g", "f") };
                root.rename(from, to).unwrap();
            }
            "front-link-unlink" => {
                root.hard_link("f", "g").unwrap();
                root.remove_file("g").unwrap();
            }
            "front-mkdir-rmdir" => {
                root.create_dir("d").unwrap();
                root.remove_dir("d").unwrap();
            }
            other => panic!("{other}: no such call"),
        }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let call = arguments.next().expect("expected a call, such as stat");
    let count: usize = arguments.next().and_then(|count| count.parse().ok()).expect("expected how many calls");
    if call.starts_with("front-") {
        return by_the_front(&call, count);
    }
    let instance = OwnedScaleFs::create(OwnedConfig::default()).unwrap();
    let core = instance.claim(0, percpu::OwnerId::new(1).unwrap()).unwrap();
    let fs = instance.file_system();
    let process = Process::new(fs, &core, Credentials::SUPERUSER).unwrap();
    let enter = || fs.enter(&core, &process, &Spin);
    for path in [&b"d"[..], b"d/e"] {
        directories::make_directory(enter().objects(), AT, path, 0o755).unwrap();
    }
    let create = |path: &[u8]| {
        let fd = open(&enter(), path, READ_WRITE | OpenFlags::CREATE);
        data::write(&enter(), fd, &[1; 4096]).unwrap();
        fd
    };
    let (fd, _) = (create(b"f"), create(b"d/e/f"));
    let stat = |path: &[u8]| {
        black_box(attributes::stat(enter().objects(), AT, path, Follow::Symlinks, Fields::ALL).unwrap());
    };
    let closed: u32 = arguments.next().map_or(0, |count| count.parse().expect("expected how many descriptors"));
    for number in 0..closed {
        data::duplicate_to(&enter(), fd, 100 + number, OnExec::Close).unwrap();
    }
    let mut page = [0; 4096];
    for round in 0..count {
        match call.as_str() {
            "nothing" => {
                black_box(&enter);
            }
            "stat" => stat(b"f"),
            "stat-below" => stat(b"/d/e/f"),
            "open-close" => {
                let opened = open(&enter(), b"f", OpenFlags::READ);
                data::close(&enter(), opened).unwrap();
            }
            "pread" => {
                data::read_at(&enter(), fd, &mut page, 0).unwrap();
            }
            "lseek-write" => {
                data::seek(&enter(), fd, 0, Whence::Start).unwrap();
                data::write(&enter(), fd, &page).unwrap();
            }
            "create-close-unlink" => {
                let opened = open(&enter(), b"g", OpenFlags::READ | OpenFlags::CREATE | OpenFlags::EXCLUSIVE);
                data::close(&enter(), opened).unwrap();
                names::unlink(enter().objects(), AT, b"g").unwrap();
            }
            "rename" => {
                let (from, to) = if round % 2 == 0 { (&b"f"[..], &b"g"[..]) } else { (&b"g"[..], &b"f"[..]) };
                names::rename(enter().objects(), (AT, from), (AT, to), RenameMode::Replace).unwrap();
            }
            "link-unlink" => {
                names::link(enter().objects(), (AT, b"f"), (AT, b"g"), Follow::Nothing).unwrap();
                names::unlink(enter().objects(), AT, b"g").unwrap();
            }
            "map-unmap" | "map-store-unmap" => {
                let mapped = memory::map(&enter(), Address::Any, 4096, Protection::ReadWrite, MappedObject::Anonymous);
                let mapped = mapped.unwrap();
                if call == "map-store-unmap" {
                    enter().store(mapped, &[1]).unwrap();
                }
                memory::unmap(&enter(), mapped, 4096).unwrap();
            }
            "spawn" => {
                let child = processes::spawn(&enter(), &[], SpawnOptions::default()).unwrap();
                child.exit(fs, &core, &Spin);
                processes::wait(&enter(), Which::Any).unwrap();
            }
            "fork" => {
                process.fork(fs, &core, &Spin).unwrap().exit(fs, &core, &Spin);
                processes::wait(&enter(), Which::Any).unwrap();
            }
            other => panic!("{other}: no such call"),
        }
        if round % 64 == 63 {
            fs.maintain(&core, &Spin);
        }
    }
    process.exit(fs, &core, &Spin);
}
