//! What C holds pointers to: instances with their memory, threads with their cores, processes.

use core::cell::Cell;
use core::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use percpu::{Core, OwnerId};
use scalefs::{Credentials, Errno, Host, InProcess, OwnedConfig, OwnedScaleFs, Process, ScaleFs};
use sync::{Wait, WaitReason};

/// Calls between two maintenances of a core.
const CALLS_PER_MAINTENANCE: u32 = 64;

/// The world outside: the system's clock, and waiting that lets other threads run.
#[derive(Clone, Copy, Debug)]
pub struct Outside;

impl Wait for Outside {
    fn wait(&self, _: WaitReason, round: u32) {
        if round < 16 { std::hint::spin_loop() } else { std::thread::yield_now() }
    }
}

impl Host for Outside {
    fn now_ns(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
    }
}

/// A file system with its memory.
pub struct scalefs_instance {
    owned: OwnedScaleFs,
    attached: AtomicU32,
}

/// A thread that is a core.
pub struct scalefs_thread {
    instance: *const scalefs_instance,
    core: Core<'static>,
    calls: Cell<u32>,
}

/// A process.
pub struct scalefs_process(Process);

impl scalefs_instance {
    pub(crate) fn create(metadata_bytes: usize, page_count: u32, core_count: u32, hash_seed: u64) -> *mut Self {
        let config = OwnedConfig { metadata_bytes, page_count, core_count: core_count as usize, hash_seed };
        let made = OwnedScaleFs::create(config).map(|owned| scalefs_instance { owned, attached: AtomicU32::new(0) });
        made.map_or(ptr::null_mut(), |instance| Box::into_raw(Box::new(instance)))
    }

    /// # Safety
    /// As `scalefs_destroy` says.
    pub(crate) unsafe fn destroy(instance: *mut Self) -> i32 {
        // SAFETY: the caller's promise.
        unsafe {
            if (*instance).attached.load(Ordering::Acquire) != 0 {
                return -Errno::EBUSY.number();
            }
            drop(Box::from_raw(instance));
        }
        0
    }
}

impl scalefs_thread {
    /// # Safety
    /// As `scalefs_attach` says.
    pub(crate) unsafe fn attach(instance: *mut scalefs_instance, core: u32) -> *mut Self {
        // SAFETY: the caller's promise; an instance with threads is not destroyed.
        let instance: &'static scalefs_instance = unsafe { &*instance };
        let claimed = OwnerId::new(u64::from(std::process::id()).max(1))
            .and_then(|owner| instance.owned.claim(core as usize, owner).ok());
        let Some(core) = claimed else { return ptr::null_mut() };
        instance.attached.fetch_add(1, Ordering::AcqRel);
        Box::into_raw(Box::new(scalefs_thread { instance, core, calls: Cell::new(0) }))
    }

    /// # Safety
    /// As `scalefs_detach` says.
    pub(crate) unsafe fn detach(thread: *mut Self) {
        // SAFETY: the caller's promise.
        unsafe {
            let instance = (*thread).instance;
            drop(Box::from_raw(thread));
            (*instance).attached.fetch_sub(1, Ordering::AcqRel);
        }
    }

    fn file_system(&self) -> &'static ScaleFs {
        // SAFETY: an instance with threads is not destroyed.
        unsafe { (*self.instance).owned.file_system() }
    }

    pub(crate) fn maintain_all(&self) {
        self.file_system().maintain_with_idle_cores(&self.core, &Outside);
    }

    pub(crate) fn call<T>(&self, process: &Process, body: impl FnOnce(&InProcess<'_, Outside>) -> T) -> T {
        let result = body(&self.file_system().enter(&self.core, process, &Outside));
        self.calls.set(self.calls.get() + 1);
        if self.calls.get() == CALLS_PER_MAINTENANCE {
            self.calls.set(0);
            self.file_system().maintain(&self.core, &Outside);
        }
        result
    }
}

impl scalefs_process {
    pub(crate) fn new(thread: &scalefs_thread, user: u32, group: u32) -> *mut Self {
        let Some(credentials) = Credentials::new(user, group, &[]) else { return ptr::null_mut() };
        let process = Process::new(thread.file_system(), &thread.core, credentials);
        Box::into_raw(Box::new(scalefs_process(process)))
    }

    pub(crate) fn process(&self) -> &Process {
        &self.0
    }

    /// # Safety
    /// As `scalefs_process_exit` says.
    pub(crate) unsafe fn exit(process: *mut Self, thread: &scalefs_thread) {
        // SAFETY: the caller's promise.
        let process = unsafe { Box::from_raw(process) };
        process.0.exit(thread.file_system(), &thread.core, &Outside);
    }
}
