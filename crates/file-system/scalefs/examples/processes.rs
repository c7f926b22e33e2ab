//! Two processes work on one file system in memory that they share; one dies in the middle of its work, and the other
//! takes its core over and goes on: `cargo run -p scalefs --example processes`. Linux.

use std::error::Error;
use std::ptr::NonNull;

use percpu::{Arena, ArenaConfig, Core, OwnerId};
use scalefs::attributes::{self, Access};
use scalefs::{Context, Credentials, Follow, ScaleFs, ScaleFsConfig, Start, directories};
use sync::Spin;

const AT: Start<scalefs::Node<'static>> = Start::WorkingDirectory;
const SIZE_BYTES: usize = 16 << 20;

fn exists(fs: &ScaleFs, core: &Core<'_>, context: &Context, path: &[u8]) -> bool {
    let call = fs.begin(core, context, &Spin);
    attributes::access(&call, AT, path, Follow::Symlinks, Access::EXISTS).is_ok()
}

/// Makes directories until it is killed.
fn work_for_ever(fs: &ScaleFs, core: &Core<'_>) -> ! {
    let context = Context::new(fs, core, Credentials::SUPERUSER);
    for number in 0_u64.. {
        let path = [b'd', b'a' + (number % 26) as u8];
        let _ = directories::make_directory(&fs.begin(core, &context, &Spin), AT, &path, 0o755);
        let _ = directories::remove_directory(&fs.begin(core, &context, &Spin), AT, &path);
        if number == 1000 {
            let _ = directories::make_directory(&fs.begin(core, &context, &Spin), AT, b"mark", 0o755);
        }
        fs.maintain(core, &Spin);
    }
    unreachable!("counts forever")
}

fn main() -> Result<(), Box<dyn Error>> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, shared with the child that we fork.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), SIZE_BYTES, protection, flags, -1, 0) };
    let base = NonNull::new(base.cast()).filter(|_| base != libc::MAP_FAILED).ok_or("no memory")?;
    // SAFETY: the mapping is valid to the end of both processes.
    let arena = unsafe { Arena::create_at(base, SIZE_BYTES, ArenaConfig::new(2)) }?;
    let (parent, child) = (OwnerId::new(1).ok_or("no owner")?, OwnerId::new(2).ok_or("no owner")?);
    let core = arena.claim(0, parent)?;
    let fs = ScaleFs::create(&core, ScaleFsConfig::default())?;
    let context = Context::new(fs, &core, Credentials::SUPERUSER);
    // SAFETY: the child calls nothing of its parent's but the file system, and ends by a signal.
    let process = unsafe { libc::fork() };
    if process == 0 {
        work_for_ever(fs, &arena.claim(1, child)?);
    }
    while !exists(fs, &core, &context, b"mark") {
        fs.maintain(&core, &Spin);
        std::thread::yield_now();
    }
    // SAFETY: our own child; when it has been waited for, it has stopped for good, and its core can be taken over.
    let heir = unsafe {
        libc::kill(process, libc::SIGKILL);
        libc::waitpid(process, std::ptr::null_mut(), 0);
        let heir = arena.take_over(1, child, parent)?;
        fs.repair_taken_over(&heir, &Spin);
        heir
    };
    directories::remove_directory(&fs.begin(&heir, &context, &Spin), AT, b"mark")?;
    println!("the other process died; its core goes on as core {}", heir.index().get());
    for letter in b'a'..=b'z' {
        if exists(fs, &core, &context, &[b'd', letter]) {
            println!("it left the directory d{}, whole", char::from(letter));
        }
    }
    Ok(())
}
