//! Two threads deliver mail into one directory, as qmail does: create a file in `tmp`, rename it into `new`. They share the
//! directories and nothing else: `cargo run -p scalefs --example maildir`.

use std::error::Error;

use percpu::{Arena, ArenaConfig, HeapRegion, OwnerId};
use scalefs::names::{self, RenameMode};
use scalefs::{Context, Credentials, Errno, ObjectOperations, OpenFlags, ScaleFs, ScaleFsConfig, Start, directories};
use sync::Spin;

const AT: Start<scalefs::Node<'static>> = Start::WorkingDirectory;
const THREADS: usize = 2;
const MESSAGES: usize = 5_000;
/// Calls between two maintenances of a core.
const PERIOD: usize = 64;

fn deliver(fs: &ScaleFs, core: &percpu::Core<'_>, context: &Context, thread: usize) -> Result<(), Errno> {
    for message in 0..MESSAGES {
        let (draft, sent) = (format!("tmp/{thread}.{message}"), format!("new/{thread}.{message}"));
        let call = fs.begin(core, context, &Spin);
        let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
        let opened = names::open(&call, AT, draft.as_bytes(), flags, 0o600)?;
        names::close(&call, opened.handle);
        names::rename(&call, (AT, draft.as_bytes()), (AT, sent.as_bytes()), RenameMode::NoReplace)?;
        drop(call);
        if message % PERIOD == 0 {
            fs.maintain(core, &Spin);
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut region = HeapRegion::new(64 << 20)?;
    let arena = Arena::create(&mut region, ArenaConfig::new(THREADS))?;
    let owner = OwnerId::new(1).ok_or("no owner")?;
    let core = arena.claim(0, owner)?;
    let config = ScaleFsConfig { directory_bucket_count: 1024, ..ScaleFsConfig::default() };
    let fs = ScaleFs::create(&core, config)?;
    let context = Context::new(fs, &core, Credentials::SUPERUSER);
    for directory in [b"tmp", b"new"] {
        directories::make_directory(&fs.begin(&core, &context, &Spin), AT, directory, 0o755)?;
    }
    drop(core);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let context = &context;
                scope.spawn(move || {
                    let core = arena.claim(number, owner).expect("each thread is a core of its own");
                    deliver(fs, &core, context, number)
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
    })?;
    let core = arena.claim(0, owner)?;
    let call = fs.begin(&core, &context, &Spin);
    for directory in [&b"tmp"[..], b"new"] {
        let opened = names::open(&call, AT, directory, OpenFlags::READ | OpenFlags::DIRECTORY, 0)?;
        let mut names = 0;
        directories::read_directory(&call, call.held(&opened.handle), 0, |_| {
            names += 1;
            true
        })?;
        names::close(&call, opened.handle);
        println!("{}: {} messages", String::from_utf8_lossy(directory), names - 2);
    }
    Ok(())
}
