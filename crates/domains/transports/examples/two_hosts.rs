//! One file system over two processes that share a pool and nothing else, as two hosts would.
//! `cargo run -p transports --example two_hosts`

use std::cell::RefCell;
use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::rc::Rc;
use std::sync::Arc;

use domains::{Domain, Limits, PoolLines, Process};
use messages::{DomainNumber, Transport};
use pool::file::{Pool, create, path_of};
use posix_calls::data::{self, DescriptorOptions};
use posix_calls::names::{self, RenameMode};
use posix_calls::{Credentials, Errno, OpenFlags, Start};
use transports::{Plan, Rings};

const DOMAINS: usize = 2;

type Host = Domain<Rings<Arc<Pool>>>;

/// Joins the pool as a domain of the file system.
fn join(path: &Path, number: u16) -> Result<Host, Box<dyn Error>> {
    let pool = Arc::new(Pool::join(path, number.into())?);
    let (at, own) = (pool.first_free(), DomainNumber(number));
    let plan = Plan { at, domain_count: DOMAINS, ring_lines: [16, 256, 256, 256], salt: 1, patience: 1 << 20 };
    let rings = Rings::new(&pool, plan, own)?;
    let lines = PoolLines::new(pool, at + plan.bytes(), DOMAINS)?;
    let limits = Limits { pages: 1 << 20, inodes: 1 << 20, split_above: usize::MAX, split_after: u64::MAX };
    Ok(Domain::new(rings, Rc::new(lines), || 0, limits))
}

/// Calls until the name is there, while the other process lives.
fn wait_for<R>(
    host: &Host,
    is_alone: impl Fn() -> bool,
    mut call: impl FnMut() -> Result<R, Errno>,
) -> Result<R, Box<dyn Error>> {
    loop {
        match call() {
            Err(Errno::ENOENT) if is_alone() => return Err("the other process has ended".into()),
            Err(Errno::ENOENT) if !host.serve() => host.transport().wait(),
            Err(Errno::ENOENT) => {}
            other => return Ok(other?),
        }
    }
}

fn at<N>() -> Start<N> {
    Start::WorkingDirectory
}

/// What the second process does: it finds a file, reads it, and gives it another name.
fn other(path: &Path) -> Result<(), Box<dyn Error>> {
    let (host, process) = (join(path, 1)?, Process::new(Credentials::SUPERUSER));
    // Both have it: without a name, it goes with the last of them, however that ends.
    std::fs::remove_file(path)?;
    let mut bytes = [0; 64];
    let length = wait_for(
        &host,
        || host.transport().has_left(DomainNumber(0)),
        || {
            host.call(&process, |call| {
                let file = data::open(call, at(), b"letter", OpenFlags::READ, 0, DescriptorOptions::PLAIN)?;
                let length = data::read(call, file, &mut bytes)?;
                data::close(call, file).map(|()| length)
            })
        },
    )?;
    println!("process {} reads: {}", std::process::id(), String::from_utf8_lossy(&bytes[..length]));
    host.call(&process, |call| names::rename(call, (at(), b"letter"), (at(), b"answered"), RenameMode::Replace))?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(path) = std::env::args_os().nth(1) {
        return other(Path::new(&path));
    }
    let path = path_of(&format!("two-hosts-{}", std::process::id()));
    create(&path, 1 << 21, DOMAINS)?;
    let (host, process) = (join(&path, 0)?, Process::new(Credentials::SUPERUSER));
    let child = RefCell::new(Command::new(std::env::current_exe()?).arg(&path).spawn()?);
    let has_ended = || !matches!(child.borrow_mut().try_wait(), Ok(None));
    let answered = host
        .call(&process, |call| {
            let flags = OpenFlags::CREATE.union(OpenFlags::WRITE);
            let file = data::open(call, at(), b"draft", flags, 0o644, DescriptorOptions::PLAIN)?;
            data::write(call, file, b"a letter from another host")?;
            data::close(call, file)?;
            names::rename(call, (at(), b"draft"), (at(), b"letter"), RenameMode::Replace)
        })
        .map_err(Box::from)
        .and_then(|()| {
            wait_for(&host, has_ended, || host.call(&process, |call| names::unlink(call, at(), b"answered")))
        });
    child.borrow_mut().wait()?;
    // It has, but for one that was killed before.
    let _ = std::fs::remove_file(&path);
    answered?;
    println!("process {} has removed what was answered", std::process::id());
    Ok(())
}
