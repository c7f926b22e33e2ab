//! A shell's `sort < letters > sorted`, with processes of ScaleFS: each is a thread here, and sees its own descriptors only.
//! `cargo run -p scalefs --example spawn`

use std::error::Error;

use percpu::{Core, OwnerId};
use scalefs::data::{self, DescriptorOptions};
use scalefs::processes;
use scalefs::{
    Credentials, Ended, Errno, FileAction, OpenFlags, OwnedConfig, OwnedScaleFs, Process, ProcessCalls, ScaleFs,
    SpawnOptions, Start, StatusFlags, Which,
};
use sync::Spin;

/// What the new process runs: it reads 0, writes 1, and ends.
fn sort(file_system: &ScaleFs, core: &Core<'_>, process: Process) {
    let calls = ProcessCalls { file_system, core, process: &process, host: &Spin };
    let mut letters = [0; 64];
    let sorted = data::read_waiting(&calls, 0, &mut letters).and_then(|count| {
        letters[..count].sort_unstable();
        data::write_waiting(&calls, 1, &letters[..count])
    });
    process.exit_with(file_system, core, Ended::Exited(u8::from(sorted.is_err())), &Spin);
}

fn main() -> Result<(), Box<dyn Error>> {
    let owned = OwnedScaleFs::create(OwnedConfig::default())?;
    let fs = owned.file_system();
    let owner = OwnerId::new(1).ok_or("no owner")?;
    let core = owned.claim(0, owner)?;
    let shell = Process::new(fs, &core, Credentials::SUPERUSER)?;
    let call = || fs.enter(&core, &shell, &Spin);

    // The shell has a pipe, and a log that no other process is to have.
    let close = DescriptorOptions { on_exec: scalefs::OnExec::Close, ..DescriptorOptions::PLAIN };
    let create = OpenFlags::WRITE | OpenFlags::CREATE;
    let (read, write) = data::pipe(&call(), close)?;
    data::open(&call(), Start::WorkingDirectory, b"log", create, 0o600, close)?;

    // 0 is the pipe, 1 a file; nothing else is passed, and nothing of the shell is copied.
    let sorted =
        FileAction::Open { number: 1, path: b"sorted", flags: create, status: StatusFlags::NONE, permissions: 0o644 };
    let actions = [FileAction::Duplicate { number: read, target: 0 }, sorted];
    let child = processes::spawn(&call(), &actions, SpawnOptions::default())?;
    let number = child.number();
    println!("process {} runs as a child of {}", number.0, shell.number().0);

    let (_, ended) = std::thread::scope(|scope| {
        scope.spawn(|| sort(fs, &owned.claim(1, owner).expect("a core that no one claims"), child));
        data::write(&call(), write, b"posix_spawn")?;
        let calls = ProcessCalls { file_system: fs, core: &core, process: &shell, host: &Spin };
        processes::wait_until_ended(&calls, Which::Child(number))
    })?;
    println!("it ended: {ended:?}");

    let file = data::open(&call(), Start::WorkingDirectory, b"sorted", OpenFlags::READ, 0, DescriptorOptions::PLAIN)?;
    let mut letters = [0; 64];
    let count = data::read(&call(), file, &mut letters)?;
    println!("sorted: {}", str::from_utf8(&letters[..count])?);

    // An action that fails leaves no process, and no end of a pipe.
    let missing = FileAction::ChangeDirectory(b"nowhere");
    let refused = processes::spawn(&call(), &[actions[0], missing], SpawnOptions::default());
    println!("a process in a directory that there is not: {:?}", refused.err().ok_or("it was made")?);
    assert_eq!(processes::wait(&call(), Which::Any), Err(Errno::ECHILD));
    println!("no child is left");
    shell.exit(fs, &core, &Spin);
    Ok(())
}
