//! Maps a file at real addresses, and stores to it through a slice: `cargo run -p scalefs --example window` (Linux).

use std::error::Error;

use percpu::OwnerId;
use scalefs::data::{self, DescriptorOptions};
use scalefs::memory::{self, Address, MappedObject};
use scalefs::{Credentials, MemoryAccess, OpenFlags, OwnedConfig, OwnedScaleFs, Process, Protection, Sharing, Start};
use sync::Spin;

const PAGE: u64 = 4096;

fn main() -> Result<(), Box<dyn Error>> {
    // The pages lie in memory that can be mapped at several addresses; 16 pages of addresses are the process's window.
    let owned = OwnedScaleFs::create_mappable(OwnedConfig::default())?;
    let fs = owned.file_system();
    let core = owned.claim(0, OwnerId::new(1).ok_or("no owner")?)?;
    let process = Process::new(fs, &core, Credentials::SUPERUSER)?;
    let window = owned.open_window(&process, 16).map_err(|_| "no addresses")?;

    let call = fs.enter(&core, &process, &Spin);
    let flags = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE;
    let fd = data::open(&call, Start::WorkingDirectory, b"/letter", flags, 0o600, DescriptorOptions::PLAIN)?;
    data::truncate(&call, fd, PAGE as i64)?;
    data::write_at(&call, fd, b"Dear Bob", 0)?;
    let file = MappedObject::File { fd, offset: 0, sharing: Sharing::Shared };
    let address = memory::map(&call, Address::Fixed(window), PAGE, Protection::ReadWrite, file)?;

    // What a page fault would do.
    call.touch(address, MemoryAccess::Store).map_err(|error| format!("{error:?}"))?;
    let place = std::ptr::with_exposed_provenance_mut::<u8>(address as usize);
    // SAFETY: eight bytes of a page that was touched for stores, and that no call takes away before the last use of the pointer.
    unsafe { place.copy_from(b"Dear Ann".as_ptr(), 8) };
    let mut read = [0; 8];
    data::read_at(&call, fd, &mut read, 0)?;
    println!("the file says {:?}", String::from_utf8_lossy(&read));

    data::write_at(&call, fd, b"Eve", 5)?;
    // SAFETY: as above; nobody stores to it now.
    let seen = unsafe { std::slice::from_raw_parts(place, 8) }.to_vec();
    println!("the program sees {:?}", String::from_utf8_lossy(&seen));

    memory::protect(&call, address, PAGE, Protection::Read)?;
    if let Err(signal) = call.touch(address, MemoryAccess::Store) {
        println!("a store without the right: {signal:?}");
    }
    drop(call);
    process.exit(fs, &core, &Spin);
    Ok(())
}
