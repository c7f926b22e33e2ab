//! What C holds pointers to: instances with their memory, threads with their cores, processes.

use core::cell::{Cell, UnsafeCell};
use core::ptr;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use percpu::{Core, OwnerId};
use scalefs::{Credentials, Direct, Errno, Host, InProcess, OpenNode, OwnedConfig, OwnedScaleFs, Process, ScaleFs};
use sync::{Wait, WaitReason};
use transact::{Sharing, Transaction};

use crate::{forks, reason};

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
    /// Handles that were given out. What is left of one that was given up stays until the instance goes, so that its use
    /// is refused rather than undefined.
    threads: Mutex<Vec<*mut scalefs_thread>>,
    processes: Mutex<Vec<*mut scalefs_process>>,
    generation: u32,
}

/// A thread that is a core.
pub struct scalefs_thread {
    instance: *const scalefs_instance,
    /// Nothing once it is detached.
    core: UnsafeCell<Option<Core<'static>>>,
    calls: Cell<u32>,
    transaction: UnsafeCell<Option<Transaction<OpenNode>>>,
}

/// A process.
pub struct scalefs_process {
    instance: *const scalefs_instance,
    /// Nothing once it has exited.
    process: UnsafeCell<Option<Process>>,
}

/// Adds a handle to those of an instance; where it stays.
fn give_out<T>(handles: &Mutex<Vec<*mut T>>, handle: T) -> *mut T {
    let handle = Box::into_raw(Box::new(handle));
    handles.lock().unwrap_or_else(PoisonError::into_inner).push(handle);
    handle
}

/// Frees what is left of handles.
///
/// # Safety
/// They were given out, and nobody uses them any more.
unsafe fn take_back<T>(handles: &Mutex<Vec<*mut T>>) {
    for handle in handles.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        // SAFETY: made by `give_out`, and the caller's promise.
        drop(unsafe { Box::from_raw(handle) });
    }
}

impl scalefs_instance {
    pub(crate) fn create(metadata_bytes: usize, page_count: u32, core_count: u32, hash_seed: u64) -> *mut Self {
        let config = OwnedConfig { metadata_bytes, page_count, core_count: core_count as usize, hash_seed };
        match OwnedScaleFs::create(config) {
            Ok(owned) => Box::into_raw(Box::new(scalefs_instance {
                owned,
                attached: AtomicU32::new(0),
                threads: Mutex::default(),
                processes: Mutex::default(),
                generation: forks::generation(),
            })),
            Err(error) => {
                reason::keep(error.to_string());
                ptr::null_mut()
            }
        }
    }

    /// Whether it was made in this process.
    fn check(&self) -> Result<(), Errno> {
        if self.generation == forks::current() {
            Ok(())
        } else {
            reason::invalid("the instance is of the process that forked: a child makes one of its own")
        }
    }

    /// # Safety
    /// As `scalefs_destroy` says.
    pub(crate) unsafe fn destroy(instance: *mut Self) -> i32 {
        if instance.is_null() {
            reason::keep("the instance is NULL");
            return -Errno::EINVAL.number();
        }
        // SAFETY: the caller's promise.
        unsafe {
            let attached = (*instance).attached.load(Ordering::Acquire);
            if attached != 0 {
                reason::keep(format!("threads that are still attached: {attached}"));
                return -Errno::EBUSY.number();
            }
            // Processes go with the instance, whose objects are theirs.
            take_back(&(*instance).processes);
            take_back(&(*instance).threads);
            drop(Box::from_raw(instance));
        }
        0
    }
}

impl scalefs_thread {
    /// # Safety
    /// As `scalefs_attach` says.
    pub(crate) unsafe fn attach(instance: *mut scalefs_instance, core: u32) -> *mut Self {
        if instance.is_null() {
            reason::keep("the instance is NULL");
            return ptr::null_mut();
        }
        // SAFETY: the caller's promise; an instance with threads is not destroyed.
        let instance: &'static scalefs_instance = unsafe { &*instance };
        if instance.check().is_err() {
            return ptr::null_mut();
        }
        let Some(owner) = OwnerId::new(u64::from(std::process::id()).max(1)) else { return ptr::null_mut() };
        match instance.owned.claim(core as usize, owner) {
            Ok(claimed) => {
                instance.attached.fetch_add(1, Ordering::AcqRel);
                let core = UnsafeCell::new(Some(claimed));
                give_out(
                    &instance.threads,
                    scalefs_thread { instance, core, calls: Cell::new(0), transaction: UnsafeCell::new(None) },
                )
            }
            Err(error) => {
                reason::keep(format!("core {core}: {error}"));
                ptr::null_mut()
            }
        }
    }

    /// # Safety
    /// As `scalefs_detach` says.
    pub(crate) unsafe fn detach(thread: *mut Self) {
        if thread.is_null() {
            return;
        }
        // SAFETY: the caller's promise: nobody else uses the handle, which stays as long as the instance.
        let (instance, core) = unsafe { ((*thread).instance, &mut *(*thread).core.get()) };
        // SAFETY: an instance is there as long as its handles are in use.
        let is_ours = unsafe { (*instance).check() }.is_ok();
        if is_ours && core.take().is_some() {
            // SAFETY: until now a thread was attached, so that the instance is there.
            unsafe { (*instance).attached.fetch_sub(1, Ordering::AcqRel) };
        }
    }

    /// What the handle stands for, unless it stands for nothing.
    ///
    /// # Safety
    /// The thread is of `scalefs_attach` or NULL, its instance was not destroyed, and one thread uses it at a time.
    pub(crate) unsafe fn attached<'t>(thread: *mut Self) -> Result<Attached<'t>, Errno> {
        if thread.is_null() {
            return reason::invalid("the thread is NULL");
        }
        // SAFETY: the caller's promise.
        let (thread, instance) = unsafe { (&*thread, &*(*thread).instance) };
        instance.check()?;
        // SAFETY: one thread uses the handle at a time, by the caller's promise, so nobody takes the core out meanwhile.
        match unsafe { &*thread.core.get() } {
            Some(core) => Ok(Attached { thread, instance, core }),
            None => reason::invalid("the thread was detached"),
        }
    }
}

/// A thread that may call.
pub(crate) struct Attached<'t> {
    thread: &'t scalefs_thread,
    instance: &'t scalefs_instance,
    core: &'t Core<'static>,
}

impl<'t> Attached<'t> {
    fn file_system(&self) -> &'t ScaleFs {
        self.instance.owned.file_system()
    }

    pub(crate) fn maintain_all(&self) {
        self.file_system().maintain_with_idle_cores(self.core, &Outside);
    }

    /// The transaction that the thread has open, if it has one.
    pub(crate) fn transaction(&self) -> Option<&Transaction<OpenNode>> {
        // SAFETY: one thread uses the handle at a time, by its caller's promise, and no call that replaces the transaction
        // (`begin`, `take`) holds this borrow.
        unsafe { &*self.thread.transaction.get() }.as_ref()
    }

    /// Opens a transaction; whether the thread had none.
    pub(crate) fn begin(&self, process: &Process) -> Result<bool, Errno> {
        if self.transaction().is_some() {
            return Ok(false);
        }
        let begun = self.act(process, |base| Transaction::begin(&base, Sharing::Shared)).map_err(Errno::from)?;
        // SAFETY: as in `transaction`; the borrow above has ended.
        unsafe { *self.thread.transaction.get() = Some(begun) };
        Ok(true)
    }

    /// Takes the open transaction out, to be ended.
    pub(crate) fn take(&self) -> Option<Transaction<OpenNode>> {
        // SAFETY: as in `transaction`; nobody has borrowed it.
        unsafe { &mut *self.thread.transaction.get() }.take()
    }

    pub(crate) fn call<T>(&self, process: &Process, body: impl FnOnce(&InProcess<'_, Outside>) -> T) -> T {
        let result = body(&self.file_system().enter(self.core, process, &Outside));
        self.count_call();
        result
    }

    /// As [`Attached::call`], for a call that knows no descriptors.
    pub(crate) fn act<T>(&self, process: &Process, body: impl FnOnce(Direct<'_, Outside>) -> T) -> T {
        let result = body(self.file_system().begin(self.core, process.context(), &Outside));
        self.count_call();
        result
    }

    fn count_call(&self) {
        let calls = &self.thread.calls;
        calls.set(calls.get() + 1);
        if calls.get() == CALLS_PER_MAINTENANCE {
            calls.set(0);
            self.file_system().maintain(self.core, &Outside);
        }
    }
}

impl scalefs_process {
    pub(crate) fn new(thread: &Attached<'_>, user: u32, group: u32) -> *mut Self {
        let Some(credentials) = Credentials::new(user, group, &[]) else { return ptr::null_mut() };
        let Ok(process) = Process::new(thread.file_system(), thread.core, credentials) else {
            return ptr::null_mut();
        };
        let process = UnsafeCell::new(Some(process));
        give_out(&thread.instance.processes, scalefs_process { instance: thread.instance, process })
    }

    /// What the handle stands for, unless it stands for nothing.
    ///
    /// # Safety
    /// The process is of `scalefs_process_new` or NULL, its instance was not destroyed, and it does not exit meanwhile.
    pub(crate) unsafe fn of<'p>(process: *mut Self, thread: &Attached<'_>) -> Result<&'p Process, Errno> {
        if process.is_null() {
            return reason::invalid("the process is NULL");
        }
        // SAFETY: the caller's promise.
        let process = unsafe { &*process };
        if !ptr::eq(process.instance, thread.instance) {
            return reason::invalid("the process and the thread are of two instances");
        }
        // SAFETY: the process does not exit meanwhile, by the caller's promise; nothing else changes the cell.
        match unsafe { &*process.process.get() } {
            Some(process) => Ok(process),
            None => reason::invalid("the process has exited"),
        }
    }

    /// # Safety
    /// As `scalefs_process_exit` says.
    pub(crate) unsafe fn exit(process: *mut Self, thread: &Attached<'_>) -> Result<(), Errno> {
        // SAFETY: the caller's promise.
        unsafe {
            scalefs_process::of(process, thread)?;
            if let Some(process) = (*(*process).process.get()).take() {
                process.exit(thread.file_system(), thread.core, &Outside);
            }
        }
        Ok(())
    }
}
