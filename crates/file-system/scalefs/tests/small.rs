//! Some dozens of calls on names, data, pipes and permissions by two threads: few enough for an interpreter that knows
//! undefined behaviour (`make miri`).
#![cfg(not(any(loom, shuttle)))]

use std::ptr::NonNull;

use pages::{PAGE_BYTES, PagePool};
use percpu::testing::World;
use percpu::{Core, HeapRegion};
use scalefs::data::{self, DescriptorOptions, Whence};
use scalefs::names::{self, RenameMode};
use scalefs::{
    Credentials, DataOperations, Errno, Fields, Follow, OpenFlags, Process, ScaleFs, ScaleFsConfig, Start, attributes,
    directories,
};
use sync::Spin;

const AT: Start<scalefs::Node<'static>> = Start::WorkingDirectory;
const PLAIN: DescriptorOptions = DescriptorOptions::PLAIN;

fn work(fs: &ScaleFs, core: &Core, process: &Process, number: usize) -> Result<(), Errno> {
    let call = || fs.enter(core, process, &Spin);
    let own = format!("/d/{number}");
    let flags = OpenFlags::CREATE | OpenFlags::READ | OpenFlags::WRITE;
    let fd = data::open(&call(), AT, own.as_bytes(), flags, 0o644, PLAIN)?;
    for round in 0..3_i64 {
        data::write_at(&call(), fd, &[number as u8 + 1; 100], round * 1000)?;
        data::seek(&call(), fd, -50, Whence::End)?;
        let mut bytes = [0; 60];
        assert_eq!(data::read(&call(), fd, &mut bytes)?, 50);
        assert_eq!(bytes[0], number as u8 + 1);
    }
    data::truncate(&call(), fd, 10)?;
    let status = data::stat(&call(), fd, Fields::ALL)?;
    assert_eq!((status.size_bytes, status.link_count), (10, 1));
    let (read, write) = data::pipe(&call(), PLAIN)?;
    data::write(&call(), write, b"through")?;
    assert_eq!(data::read(&call(), read, &mut [0; 9])?, 7);
    [fd, read, write].into_iter().try_for_each(|fd| data::close(&call(), fd))?;
    let (link, moved) = (format!("/l{number}"), format!("/d/m{number}"));
    names::link(call().objects(), (AT, own.as_bytes()), (AT, link.as_bytes()), Follow::Nothing)?;
    names::rename(call().objects(), (AT, link.as_bytes()), (AT, moved.as_bytes()), RenameMode::Replace)?;
    attributes::change_mode(call().objects(), AT, moved.as_bytes(), 0o600)?;
    // Both threads want this name.
    let _ = names::rename(call().objects(), (AT, moved.as_bytes()), (AT, b"/shared"), RenameMode::Replace);
    let _ = attributes::stat(call().objects(), AT, b"/shared", Follow::Symlinks, Fields::ALL);
    let opened = names::open(call().objects(), AT, b"/d", OpenFlags::READ | OpenFlags::DIRECTORY, 0)?.handle;
    names::close(call().objects(), opened);
    fs.maintain(core, &Spin);
    names::unlink(call().objects(), AT, own.as_bytes())?;
    fs.maintain(core, &Spin);
    Ok(())
}

#[test]
fn two_threads_call() {
    let world = World::new(2);
    let mut pages = HeapRegion::new(65 * PAGE_BYTES).unwrap();
    let base = NonNull::new(pages.as_mut_ptr()).unwrap();
    // SAFETY: the pages are the pool's alone, and outlive the instance's use.
    let pool = unsafe { PagePool::create(world.arena(), base, 64) }.unwrap();
    let config = ScaleFsConfig {
        root_bucket_count: 2,
        directory_bucket_count: 1,
        count_slots_per_core: 2,
        ..ScaleFsConfig::default()
    };
    let fs = ScaleFs::create_with_pages(&world.core(0), pool, config).unwrap();
    let process = Process::new(fs, &world.core(0), Credentials::SUPERUSER).unwrap();
    let before = world.live_bytes();
    directories::make_directory(fs.enter(&world.core(0), &process, &Spin).objects(), AT, b"/d", 0o755).unwrap();
    std::thread::scope(|scope| {
        for number in 0..2 {
            let (world, process) = (&world, &process);
            scope.spawn(move || work(fs, &world.core(number), process, number).unwrap());
        }
    });
    let core = world.core(0);
    for path in ["/shared", "/d/m0", "/d/m1"] {
        let _ = names::unlink(fs.enter(&core, &process, &Spin).objects(), AT, path.as_bytes());
    }
    directories::remove_directory(fs.enter(&core, &process, &Spin).objects(), AT, b"/d").unwrap();
    process.exit(fs, &core, &Spin);
    for _ in 0..10 {
        fs.maintain_with_idle_cores(&core, &Spin);
    }
    assert_eq!(pool.free_pages(), 64);
    assert!(world.live_bytes() <= before);
}
