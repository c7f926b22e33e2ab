//! Maps a file twice, shared and private, stores to both, cuts the file, and forks: `cargo run -p scalefs --example mapped`.

use std::error::Error;

use percpu::OwnerId;
use scalefs::data::{self, DescriptorOptions};
use scalefs::memory::{self, Address, MappedObject};
use scalefs::{
    AccessError, Credentials, InProcess, MemoryOperations, OpenFlags, OwnedConfig, OwnedScaleFs, Process, Protection,
    Sharing, Start,
};
use sync::Spin;

const PAGE: u64 = 4096;

/// What stands at an address, or the signal that a program would get.
fn text(call: &InProcess<'_, Spin>, address: u64) -> String {
    let mut bytes = [0; 8];
    match call.load(address, &mut bytes) {
        Ok(()) => format!("{:?}", String::from_utf8_lossy(&bytes).trim_end_matches('\0')),
        Err(AccessError::Bus) => "SIGBUS".into(),
        Err(_) => "SIGSEGV".into(),
    }
}

fn store(call: &InProcess<'_, Spin>, address: u64, bytes: &[u8]) -> Result<(), &'static str> {
    call.store(address, bytes).map_err(|_| "the store raised a signal")
}

fn main() -> Result<(), Box<dyn Error>> {
    let owned = OwnedScaleFs::create(OwnedConfig::default())?;
    let fs = owned.file_system();
    let core = owned.claim(0, OwnerId::new(1).ok_or("no owner")?)?;
    let process = Process::new(fs, &core, Credentials::SUPERUSER)?;
    let call = fs.enter(&core, &process, &Spin);

    // A file of two pages, mapped twice where the file system likes.
    let flags = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE;
    let fd = data::open(&call, Start::WorkingDirectory, b"/letter", flags, 0o600, DescriptorOptions::PLAIN)?;
    data::truncate(&call, fd, 2 * PAGE as i64)?;
    data::write_at(&call, fd, b"Dear Bob", 0)?;
    let map = |sharing| {
        let file = MappedObject::File { fd, offset: 0, sharing };
        memory::map(&call, Address::Any, 2 * PAGE, Protection::ReadWrite, file)
    };
    let (shared, private) = (map(Sharing::Shared)?, map(Sharing::Private)?);

    // What is stored to the shared mapping is in the file at once; to the private one, in a page of its own.
    store(&call, shared, b"Dear Ann")?;
    store(&call, private + 5, b"Eve")?;
    let mut read = [0; 8];
    data::read_at(&call, fd, &mut read, 0)?;
    println!("the file says {:?}, shared {}", String::from_utf8_lossy(&read), text(&call, shared));
    println!("private {}", text(&call, private));

    // Behind a cut there is nothing, until the file grows again: then there are zeros.
    store(&call, shared + PAGE, b"P.S.")?;
    data::truncate(&call, fd, PAGE as i64)?;
    println!("behind the cut {}", text(&call, shared + PAGE));
    data::truncate(&call, fd, 2 * PAGE as i64)?;
    println!("grown again {}", text(&call, shared + PAGE));

    // A child has what its parent had, and neither sees what the other stores to private memory.
    drop(call);
    let child = process.fork(fs, &core, &Spin)?;
    let in_child = fs.enter(&core, &child, &Spin);
    store(&in_child, private, b"From")?;
    store(&in_child, shared, b"Both")?;
    println!("the child {}, {}", text(&in_child, private), text(&in_child, shared));
    drop(in_child);
    let call = fs.enter(&core, &process, &Spin);
    println!("its parent {}, {}", text(&call, private), text(&call, shared));

    // Memory without rights, and memory that is gone, raise a signal.
    memory::protect(&call, private, PAGE, Protection::None)?;
    memory::unmap(&call, shared, 2 * PAGE)?;
    println!("without rights {}, unmapped {}", text(&call, private), text(&call, shared));
    drop(call);
    child.exit(fs, &core, &Spin);
    process.exit(fs, &core, &Spin);
    Ok(())
}
