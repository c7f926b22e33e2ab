//! What C holds pointers to: instances with their memory, threads with their cores, processes.

use core::cell::{Cell, UnsafeCell};
use core::ptr;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, Ordering};

use percpu::{Core, OwnerId};
use scalefs::{
    Credentials, Direct, Ended, Errno, InProcess, LockWait, OpenNode, Outside, OwnedConfig, OwnedError, OwnedScaleFs,
    Process, ScaleFs,
};
use sync::mutant::planted;
use transact::{Sharing, Transaction};

use crate::reason;

/// Calls between two maintenances of a core.
const CALLS_PER_MAINTENANCE: u32 = 64;

/// A file system with its memory.
pub struct scalefs_instance {
    owned: OwnedScaleFs,
    attached: AtomicU32,
    /// Handles that were given out. What is left of one that was given up stays until the instance goes, so that its use
    /// is refused rather than undefined.
    threads: Mutex<Vec<*mut scalefs_thread>>,
    processes: Mutex<Vec<*mut scalefs_process>>,
}

/// A thread that is a core.
pub struct scalefs_thread {
    instance: *const scalefs_instance,
    /// Nothing once it is detached.
    core: UnsafeCell<Option<Core<'static>>>,
    /// Since the last maintenance.
    calls: Cell<u32>,
    /// Calls that are under way: one, and those that its callback makes.
    depth: Cell<u32>,
    transaction: UnsafeCell<Option<Begun>>,
}

/// A transaction of a thread. What it has been told holds for the process that began it, and for no other: it is that one's.
struct Begun {
    transaction: Transaction<OpenNode>,
    process: *const scalefs_process,
}

/// A call of a thread that is under way.
struct UnderWay<'t>(&'t Cell<u32>);

impl<'t> UnderWay<'t> {
    fn begin(depth: &'t Cell<u32>) -> UnderWay<'t> {
        depth.set(depth.get() + 1);
        UnderWay(depth)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// A process.
pub struct scalefs_process {
    instance: *const scalefs_instance,
    /// Nothing once it has exited.
    process: UnsafeCell<Option<Process>>,
    /// How many transactions it has begun that have not ended.
    transactions: AtomicU32,
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
    pub(crate) fn create(
        config: OwnedConfig,
        create: impl FnOnce(OwnedConfig) -> Result<OwnedScaleFs, OwnedError>,
    ) -> *mut Self {
        match create(config) {
            Ok(owned) => Box::into_raw(Box::new(scalefs_instance {
                owned,
                attached: AtomicU32::new(0),
                threads: Mutex::default(),
                processes: Mutex::default(),
            })),
            Err(error) => {
                reason::keep(error.to_string());
                ptr::null_mut()
            }
        }
    }

    /// Whether it was made in this process.
    fn check(&self) -> Result<(), Errno> {
        if self.owned.is_of_this_process() {
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
        match instance.owned.claim_waiting(core as usize, owner, &Outside) {
            Ok(claimed) => {
                instance.attached.fetch_add(1, Ordering::AcqRel);
                let core = UnsafeCell::new(Some(claimed));
                give_out(
                    &instance.threads,
                    scalefs_thread {
                        instance,
                        core,
                        calls: Cell::new(0),
                        depth: Cell::new(0),
                        transaction: UnsafeCell::new(None),
                    },
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
        // SAFETY: the caller's promise: nobody else uses the handle.
        if let Ok(attached) = unsafe { scalefs_thread::attached(thread) } {
            if attached.is_in_a_callback() {
                reason::keep("a callback does not detach the thread that runs it");
                return;
            }
            attached.abort_what_is_open();
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

    /// What is done with a process between its calls, such as fork and exec. Not in the middle of one.
    pub(crate) fn between_calls<T>(
        &self,
        body: impl FnOnce(&OwnedScaleFs, &Core<'_>) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        if self.is_in_a_callback() {
            reason::keep("a callback does not do this");
            return Err(Errno::EBUSY);
        }
        let done = body(&self.instance.owned, self.core);
        self.count_call();
        done
    }

    /// Does what is left to do between calls; nothing in the middle of one.
    pub(crate) fn maintain_all(&self) {
        if !self.is_in_a_callback() {
            self.file_system().maintain_with_idle_cores(self.core, &Outside);
        }
    }

    /// Waits until a lock of a file may be free. No call of the thread is under way.
    pub(crate) fn wait_for_lock(&self, wait: LockWait, round: u32) {
        self.file_system().wait_for_lock(wait, &Outside, round);
    }

    /// Whether a call of the thread is under way, whose callback runs.
    pub(crate) fn is_in_a_callback(&self) -> bool {
        self.thread.depth.get() > 0
    }

    fn begun(&self) -> Option<&Begun> {
        // SAFETY: one thread uses the handle at a time, by its caller's promise, and no call that replaces the transaction
        // (`begin`, `take`) holds this borrow.
        unsafe { &*self.thread.transaction.get() }.as_ref()
    }

    /// The transaction that the thread has open, if it has one.
    ///
    /// # Errors
    /// EINVAL if another process than this has begun it.
    pub(crate) fn transaction_of(
        &self,
        process: *const scalefs_process,
    ) -> Result<Option<&Transaction<OpenNode>>, Errno> {
        match self.begun() {
            None => Ok(None),
            Some(begun)
                if ptr::eq(begun.process, process) || planted("scalefs-c: a transaction serves any process") =>
            {
                Ok(Some(&begun.transaction))
            }
            Some(_) => reason::invalid("the thread's transaction is of another process: end it first"),
        }
    }

    /// Opens a transaction; whether the thread had none.
    ///
    /// # Safety
    /// As [`scalefs_process::of`].
    pub(crate) unsafe fn begin(&self, process: *const scalefs_process) -> Result<bool, Errno> {
        // SAFETY: the caller's promise.
        let of = unsafe { scalefs_process::of(process, self) }?;
        if self.begun().is_some() {
            return Ok(false);
        }
        let transaction = self.act(of, |base| Transaction::begin(&base, Sharing::Shared)).map_err(Errno::from)?;
        // SAFETY: as in `begun`, whose borrow has ended. The process is there, as looked up above.
        unsafe {
            (*process).transactions.fetch_add(1, Ordering::AcqRel);
            *self.thread.transaction.get() = Some(Begun { transaction, process });
        }
        Ok(true)
    }

    /// Takes the open transaction out, to be ended on behalf of its process.
    fn take(&self) -> Option<Begun> {
        // SAFETY: as in `begun`; nobody has borrowed it.
        unsafe { &mut *self.thread.transaction.get() }.take()
    }

    /// Ends the transaction that a process has begun in this thread.
    ///
    /// # Safety
    /// As [`scalefs_process::of`].
    pub(crate) unsafe fn end<T>(
        &self,
        process: *const scalefs_process,
        end: impl FnOnce(Transaction<OpenNode>, Direct<'_, Outside>) -> T,
    ) -> Result<T, Errno> {
        // SAFETY: the caller's promise.
        let of = unsafe { scalefs_process::of(process, self) }?;
        self.transaction_of(process)?;
        let Some(begun) = self.take() else {
            return reason::invalid("the thread has begun no transaction");
        };
        let ended = self.act(of, |base| end(begun.transaction, base));
        // SAFETY: the process is there: it does not exit before this.
        unsafe { (*begun.process).transactions.fetch_sub(1, Ordering::AcqRel) };
        Ok(ended)
    }

    /// Lets nothing happen of a transaction that was not ended.
    fn abort_what_is_open(&self) {
        if planted("scalefs-c: a thread is detached from its transaction") {
            return;
        }
        if let Some(process) = self.begun().map(|begun| begun.process) {
            // SAFETY: a process with a transaction has not exited, and its handle stays as long as the instance.
            let _ = unsafe { self.end(process, |transaction, base| transaction.abort(&base)) };
        }
    }

    pub(crate) fn call<T>(&self, process: &Process, body: impl FnOnce(&InProcess<'_, Outside>) -> T) -> T {
        let under_way = UnderWay::begin(&self.thread.depth);
        let result = body(&self.file_system().enter(self.core, process, &Outside));
        drop(under_way);
        self.count_call();
        result
    }

    /// As [`Attached::call`], for a call that knows no descriptors.
    pub(crate) fn act<T>(&self, process: &Process, body: impl FnOnce(Direct<'_, Outside>) -> T) -> T {
        let under_way = UnderWay::begin(&self.thread.depth);
        let result = body(self.file_system().begin(self.core, process.context(), &Outside));
        drop(under_way);
        self.count_call();
        result
    }

    /// Maintains the core now and then, and those that nobody is: what they left behind is worked off by whoever goes on. Not in
    /// the middle of a call whose callback makes calls.
    fn count_call(&self) {
        let calls = &self.thread.calls;
        calls.set(calls.get() + 1);
        let is_in_a_callback =
            self.is_in_a_callback() && !planted("scalefs-c: maintenance comes in the middle of a call");
        if calls.get() >= CALLS_PER_MAINTENANCE && !is_in_a_callback {
            calls.set(0);
            if planted("scalefs-c: what a detached thread has left stays") {
                self.file_system().maintain(self.core, &Outside);
            } else {
                self.file_system().maintain_with_idle_cores(self.core, &Outside);
            }
        }
    }
}

impl scalefs_process {
    pub(crate) fn new(thread: &Attached<'_>, credentials: Credentials) -> *mut Self {
        match Process::new(thread.file_system(), thread.core, credentials) {
            Ok(process) => scalefs_process::give_out(thread, process),
            Err(errno) => {
                reason::keep(format!("no memory for a process: {errno}"));
                ptr::null_mut()
            }
        }
    }

    /// The handle of a process that was made.
    pub(crate) fn give_out(thread: &Attached<'_>, process: Process) -> *mut Self {
        let process = UnsafeCell::new(Some(process));
        let transactions = AtomicU32::new(0);
        give_out(&thread.instance.processes, scalefs_process { instance: thread.instance, process, transactions })
    }

    /// What the handle stands for, unless it stands for nothing.
    ///
    /// # Safety
    /// The process is of `scalefs_process_new` or NULL, its instance was not destroyed, and it does not exit meanwhile.
    pub(crate) unsafe fn of<'p>(process: *const Self, thread: &Attached<'_>) -> Result<&'p Process, Errno> {
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
    pub(crate) unsafe fn exit(process: *mut Self, thread: &Attached<'_>, ended: Ended) -> Result<(), Errno> {
        // SAFETY: the caller's promise.
        unsafe {
            scalefs_process::of(process, thread)?;
            let open = (*process).transactions.load(Ordering::Acquire);
            if open != 0 || thread.is_in_a_callback() {
                reason::keep(match open {
                    0 => "a callback does not end a process".into(),
                    _ => format!("transactions of the process that are open: {open}"),
                });
                return Err(Errno::EBUSY);
            }
            if let Some(process) = (*(*process).process.get()).take() {
                process.exit_with(thread.file_system(), thread.core, ended, &Outside);
            }
        }
        Ok(())
    }
}
