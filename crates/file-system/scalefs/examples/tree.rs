//! Makes a small tree, writes and reads a file, and lists everything: `cargo run -p scalefs --example tree`.

use std::error::Error;
use std::ptr::NonNull;
use std::time::{SystemTime, UNIX_EPOCH};

use pages::{PAGE_BYTES, PagePool};
use percpu::{Arena, ArenaConfig, HeapRegion, OwnerId};
use scalefs::data::{self, DescriptorOptions};
use scalefs::{
    Clocked, Credentials, DataOperations, Errno, Follow, Host, Kind, OpenFlags, Process, ScaleFs, ScaleFsConfig,
};
use scalefs::{InProcess, ObjectOperations, Start, directories, names};
use sync::Spin;

const AT: Start<scalefs::Node<'static>> = Start::WorkingDirectory;
const PAGES: u32 = 64;

/// Prints what is below a directory.
fn show<'v, H: Host>(call: &'v InProcess<'_, H>, directory: scalefs::Node<'v>, indent: usize) -> Result<(), Errno> {
    let objects = call.objects();
    directories::read_directory(objects, directory, 0, |entry| {
        let name = String::from_utf8_lossy(entry.name);
        if name != "." && name != ".." {
            println!("{:indent$}{name} ({:?}, inode {})", "", entry.kind, entry.number.0);
            if let (Kind::Directory, Some(key)) = (entry.kind, objects.key(entry.name))
                && let Ok(Some(found)) = objects.look_up(directory, &key)
            {
                let _ = show(call, objects.node(&found), indent + 2);
            }
        }
        true
    })?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    // The caller supplies all memory: an arena for names and inodes, a pool of pages for data.
    let (mut region, mut data_region) =
        (HeapRegion::new(8 << 20)?, HeapRegion::new((PAGES as usize + 1) * PAGE_BYTES)?);
    let base = NonNull::new(data_region.as_mut_ptr()).ok_or("no memory")?;
    let arena = Arena::create(&mut region, ArenaConfig::new(2))?;
    // SAFETY: the pages belong to this pool alone, which is used no longer than they live.
    let pool = unsafe { PagePool::create(arena, base, PAGES) }?;
    let core = arena.claim(0, OwnerId::new(1).ok_or("no owner")?)?;
    let fs = ScaleFs::create_with_pages(&core, pool, ScaleFsConfig::default())?;
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    let host = Clocked { wait: Spin, clock };
    let process = Process::new(fs, &core, Credentials::SUPERUSER)?;
    {
        let call = fs.enter(&core, &process, &host);
        directories::make_directory(call.objects(), AT, b"/people", 0o755)?;
        directories::make_directory(call.objects(), AT, b"/people/ann", 0o700)?;
        let flags = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE;
        let fd = data::open(&call, AT, b"/people/ann/letter", flags, 0o600, DescriptorOptions::PLAIN)?;
        data::write(&call, fd, b"Dear Bob")?;
        names::link(call.objects(), (AT, b"/people/ann/letter"), (AT, b"/people/copy"), Follow::Nothing)?;
        names::symlink(call.objects(), b"ann/letter", AT, b"/people/link")?;
        show(&call, call.objects().root(), 0)?;
        let mut text = [0; 64];
        let length = data::read_at(&call, fd, &mut text, 5)?;
        println!("read {:?} at 5", String::from_utf8_lossy(&text[..length]));
        data::close(&call, fd)?;
    }
    // Between calls: what nobody can reach is freed, counts are applied.
    fs.maintain(&core, &host);
    process.exit(fs, &core, &host);
    Ok(())
}
