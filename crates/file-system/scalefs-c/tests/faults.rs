//! Faults of the C door that were, each with what showed it: transactions that serve several processes, callbacks that make
//! calls, threads that leave something behind.
//!
//! `RUSTFLAGS="--cfg fuzzing" cargo test --release -p scalefs-c --test faults` plants each of them, and it must be found.
#![cfg(not(any(loom, shuttle)))]

use std::ffi::{CStr, CString, c_char, c_int, c_void};

use scalefs_c::*;

const ENOENT: c_int = -2;
const EACCES: c_int = -13;
const EBUSY: c_int = -16;
const EINVAL: c_int = -22;
const EOPNOTSUPP: c_int = -95;

/// An instance with one thread and its superuser.
struct World {
    instance: *mut scalefs_instance,
    me: *mut scalefs_thread,
    root: *mut scalefs_process,
}

impl World {
    fn new(core_count: u32, page_count: u32) -> World {
        // SAFETY: handles are of the calls that give them out, here and below; strings end with NUL.
        unsafe {
            let instance = scalefs_create(8 << 20, page_count, core_count, 1);
            let me = scalefs_attach(instance, 0);
            World { instance, me, root: scalefs_process_new(me, 0, 0) }
        }
    }

    fn process(&self, user: u32) -> *mut scalefs_process {
        // SAFETY: see `new`.
        unsafe { scalefs_process_new(self.me, user, user) }
    }

    fn space(&self) -> (u64, u64) {
        // SAFETY: see `new`.
        unsafe {
            (0..20).for_each(|_| scalefs_maintain(self.me));
            let mut space = scalefs_space { struct_size: size_of::<scalefs_space>() as u32, ..Default::default() };
            assert_eq!(scalefs_statvfs(self.me, self.root, &mut space), 0);
            (space.free_blocks, space.free_inodes)
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        // SAFETY: see `new`; nobody uses them any more.
        unsafe {
            scalefs_detach(self.me);
            assert_eq!(scalefs_destroy(self.instance), 0, "{:?}", CStr::from_ptr(scalefs_reason()));
        }
    }
}

fn reason() -> String {
    // SAFETY: a text that stays until the next refusal.
    unsafe { CStr::from_ptr(scalefs_reason()) }.to_str().unwrap().to_owned()
}

/// What the owner of a directory had been told answered another user, who removed a file there.
fn a_transaction_is_of_one_process() {
    let world = World::new(2, 100);
    let (me, owner, other) = (world.me, world.process(1000), world.process(2000));
    // SAFETY: see `World::new`.
    unsafe {
        assert_eq!(scalefs_mkdir(me, world.root, c"/pub".as_ptr(), 0o777), 0);
        assert_eq!(scalefs_chmod(me, world.root, c"/pub".as_ptr(), 0o777), 0);
        assert_eq!(scalefs_mkdir(me, owner, c"/pub/secret".as_ptr(), 0o700), 0);
        let secret = c"/pub/secret/x".as_ptr();
        assert_eq!(scalefs_mknod(me, owner, secret, 0o600), 0);
        assert_eq!(scalefs_unlink(me, other, secret), EACCES);
        assert_eq!(scalefs_xbegin(me, owner, 0), 0);
        assert_eq!(scalefs_access(me, owner, secret, 2), 0);
        assert_eq!(scalefs_access(me, other, secret, 0), EINVAL);
        assert!(reason().contains("of another process"), "{}", reason());
        assert_eq!(scalefs_unlink(me, other, secret), EINVAL);
        assert_eq!(scalefs_open(me, other, secret, SCALEFS_READ, 0), EINVAL);
        assert_eq!(scalefs_chdir(me, other, c"/pub/secret".as_ptr()), EINVAL);
        assert_eq!(scalefs_xbegin(me, other, 0), EINVAL);
        assert_eq!(scalefs_xend(me, other), EINVAL);
        assert_eq!(scalefs_xabort(me, other), EINVAL);
        // It is still there, and its own process goes on.
        assert_eq!(scalefs_mknod(me, owner, c"/pub/secret/y".as_ptr(), 0o600), 0);
        assert_eq!(scalefs_open(me, owner, secret, SCALEFS_READ, 0), EOPNOTSUPP);
        assert_eq!(scalefs_xend(me, owner), 0);
        assert_eq!(scalefs_access(me, world.root, secret, 0), 0);
        assert_eq!(scalefs_access(me, owner, c"/pub/secret/y".as_ptr(), 0), 0);
        assert_eq!(scalefs_unlink(me, other, secret), EACCES);
    }
}

/// The working directory that a transaction had changed came to be that of whoever ended it.
fn a_process_does_not_end_before_its_transaction() {
    let world = World::new(2, 100);
    let (me, other) = (world.me, world.process(1000));
    // SAFETY: see `World::new`.
    unsafe {
        assert_eq!(scalefs_xbegin(me, other, 0), 0);
        assert_eq!(scalefs_process_exit(me, other), EBUSY);
        assert!(reason().contains("that are open: 1"), "{}", reason());
        assert_eq!(scalefs_xabort(me, other), 0);
        assert_eq!(scalefs_process_exit(me, other), 0);
        assert_eq!(scalefs_xbegin(me, other, 0), EINVAL);
        assert_eq!(scalefs_xbegin(me, world.root, 0), 0);
        assert_eq!(scalefs_xend(me, world.root), 0);
    }
}

/// Objects that its transaction kept stayed for ever.
fn a_thread_is_detached_with_its_transaction() {
    let world = World::new(2, 100);
    let before = world.space();
    // SAFETY: see `World::new`.
    unsafe {
        for round in 0..10 {
            let other = scalefs_attach(world.instance, 1);
            assert_eq!(scalefs_xbegin(other, world.root, 0), 0);
            let path = CString::new(format!("/f{round}")).unwrap();
            assert_eq!(scalefs_mknod(other, world.root, path.as_ptr(), 0o600), 0);
            assert_eq!(scalefs_mkdir(other, world.root, c"/d".as_ptr(), 0o700), 0);
            scalefs_detach(other);
            assert_eq!(scalefs_access(world.me, world.root, path.as_ptr(), 0), ENOENT);
        }
        assert_eq!(world.space(), before);
        assert_eq!(scalefs_process_exit(world.me, world.root), 0);
    }
}

struct Asks(*mut scalefs_thread, *mut scalefs_process, u32);

unsafe extern "C" fn ask(name: *const c_char, length: usize, _: u64, asks: *mut c_void) -> c_int {
    // SAFETY: the argument is an `Asks`, and the name has so many bytes.
    unsafe {
        let asks = &mut *asks.cast::<Asks>();
        let name = std::slice::from_raw_parts(name.cast::<u8>(), length);
        let path = CString::new([b"/", name].concat()).unwrap();
        let mut status = scalefs_status { struct_size: size_of::<scalefs_status>() as u32, ..Default::default() };
        assert_eq!(scalefs_stat(asks.0, asks.1, path.as_ptr(), 0, SCALEFS_ALL, &mut status), 0);
        // What would take from the call what it stands on.
        scalefs_maintain(asks.0);
        scalefs_detach(asks.0);
        assert_eq!(scalefs_process_exit(asks.0, asks.1), EBUSY);
        asks.2 += 1;
        1
    }
}

/// The 64th call of a thread within a callback ended the program: maintenance came while the thread was in a call.
fn a_callback_makes_calls() {
    let world = World::new(2, 100);
    // SAFETY: see `World::new`.
    unsafe {
        for number in 0..200 {
            let path = CString::new(format!("/f{number}")).unwrap();
            assert_eq!(scalefs_mknod(world.me, world.root, path.as_ptr(), 0o600), 0);
        }
        let (mut asks, mut cookie) = (Asks(world.me, world.root, 0), 0);
        let argument = (&raw mut asks).cast();
        let listed = scalefs_list(world.me, world.root, c"/".as_ptr(), &mut cookie, Some(ask), argument);
        assert_eq!((listed, asks.2), (0, 202));
        assert_eq!(scalefs_access(world.me, world.root, c"/f0".as_ptr(), 0), 0);
    }
}

/// What a thread had given up last waited for maintenance of a core that nobody was any more.
fn what_a_detached_thread_has_left_comes_back() {
    let world = World::new(4, 400);
    let before = world.space().0;
    // SAFETY: see `World::new`.
    unsafe {
        for core in 1..4 {
            let other = scalefs_attach(world.instance, core);
            let flags = SCALEFS_WRITE | SCALEFS_CREATE;
            let fd = scalefs_open(other, world.root, c"/f".as_ptr(), flags, 0o600);
            let bytes = [1_u8; 100 << 12];
            assert_eq!(scalefs_write(other, world.root, fd, bytes.as_ptr().cast(), bytes.len()), 100 << 12);
            assert_eq!(scalefs_close(other, world.root, fd), 0);
            assert_eq!(scalefs_unlink(other, world.root, c"/f".as_ptr()), 0);
            scalefs_detach(other);
        }
        // Calls alone, as of a program that knows nothing of maintenance.
        (0..64 * 20).for_each(|_| assert_eq!(scalefs_access(world.me, world.root, c"/".as_ptr(), 0), 0));
        let mut space = scalefs_space { struct_size: size_of::<scalefs_space>() as u32, ..Default::default() };
        assert_eq!(scalefs_statvfs(world.me, world.root, &mut space), 0);
        assert_eq!(space.free_blocks, before);
    }
}

/// An object that a transaction had made, and whose name went before the core's maintenance, stayed forever.
fn what_a_transaction_has_made_can_be_removed_at_once() {
    let world = World::new(2, 100);
    let before = world.space();
    let (me, root) = (world.me, world.root);
    // SAFETY: see `World::new`.
    unsafe {
        for round in 0..10 {
            assert_eq!(scalefs_xbegin(me, root, 0), 0);
            assert_eq!(scalefs_mknod(me, root, c"/f".as_ptr(), 0o600), 0);
            assert_eq!(scalefs_mkdir(me, root, c"/d".as_ptr(), 0o700), 0);
            assert_eq!(scalefs_symlink(me, root, c"f".as_ptr(), c"/s".as_ptr()), 0);
            assert_eq!(scalefs_link(me, root, c"/f".as_ptr(), c"/second".as_ptr()), 0);
            assert_eq!(scalefs_xend(me, root), 0);
            let is_in_another = round % 2 == 0;
            if is_in_another {
                assert_eq!(scalefs_xbegin(me, root, 0), 0);
            }
            assert_eq!(scalefs_unlink(me, root, c"/f".as_ptr()), 0);
            assert_eq!(scalefs_unlink(me, root, c"/second".as_ptr()), 0);
            assert_eq!(scalefs_unlink(me, root, c"/s".as_ptr()), 0);
            assert_eq!(scalefs_rmdir(me, root, c"/d".as_ptr()), 0);
            if is_in_another {
                assert_eq!(scalefs_xend(me, root), 0);
            }
        }
    }
    assert_eq!(world.space(), before);
}

/// By fault, in the words of docs/notes/planted-faults.md, its test.
type Shown = (&'static str, fn());
const SHOWN: [Shown; 6] = [
    ("scalefs-c: a transaction serves any process", a_transaction_is_of_one_process),
    ("", a_process_does_not_end_before_its_transaction),
    ("scalefs-c: a thread is detached from its transaction", a_thread_is_detached_with_its_transaction),
    ("scalefs-c: maintenance comes in the middle of a call", a_callback_makes_calls),
    ("scalefs-c: what a detached thread has left stays", what_a_detached_thread_has_left_comes_back),
    ("refcache: a first count stays in the cache", what_a_transaction_has_made_can_be_removed_at_once),
];

#[test]
fn none_shows() {
    let planted = std::env::var("PLANTED").ok();
    for (fault, shown) in SHOWN {
        if planted.as_deref().is_none_or(|planted| planted == fault) {
            println!("{fault}");
            #[cfg(fuzzing)]
            if planted.is_some() {
                sync::mutant::plant(fault);
            }
            shown();
        }
    }
}

/// In a process for each: a panic within a call of C ends it.
#[cfg(fuzzing)]
#[test]
fn each_is_found_where_it_is_planted() {
    for (fault, _) in SHOWN.into_iter().filter(|(fault, _)| !fault.is_empty()) {
        let program = std::env::current_exe().unwrap();
        let mut run = std::process::Command::new(program);
        let ran = run.args(["--exact", "none_shows", "--nocapture"]).env("PLANTED", fault).output().unwrap();
        let told = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
        assert!(!ran.status.success() && told.contains("panicked"), "the planted fault `{fault}` was missed: {told}");
    }
}
