//! What a door shows: the instance as it is, or as a transaction sees it.

use fuser::Request;
use scalefs::{
    Attributes, DataOperations, Direct, Errno, Fields, FileSystem, InProcess, ObjectOperations, OpenNode, Outside,
    Process, Start, handles, names,
};

use super::callers::Callers;

/// On whose behalf a call is made.
#[derive(Clone, Copy)]
pub(crate) enum Who<'r> {
    /// The kernel itself, for what it has checked or writes on its own.
    Kernel,
    /// Who has made a request.
    Caller(&'r Request),
}

/// What becomes of attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Somebody has asked for them.
    Asked,
    /// The kernel gets them with something else, and asks again before it tells anybody.
    InPassing,
}

/// An object during a call of a view.
pub(crate) type NodeOf<'v, 'c, V> = <<V as View>::Objects<'c> as ObjectOperations>::Node<'v>;

/// The calls that a door makes.
pub(crate) trait View: Send + Sync + Sized + 'static {
    /// The operations on objects in a call.
    type Objects<'c>: ObjectOperations<Handle = Self::Handle>;
    /// A call.
    type Calls<'c>: DataOperations<Objects = Self::Objects<'c>>;
    /// What keeps an object.
    type Handle: Send + Sync + 'static;
    /// Whether it can say where a file has holes.
    const KNOWS_HOLES: bool;
    /// Whether what a call has found stays so: it need not look again, and who looks again asks for all that was ever found.
    const KEEPS_ANSWERS: bool;

    /// Makes a call; again if it finds no space and some may become free.
    fn call<T>(&self, who: Who<'_>, call: impl for<'c> FnMut(&Self::Calls<'c>) -> Result<T, Errno>)
    -> Result<T, Errno>;

    /// Gives up an object that was kept.
    fn release(&self, handle: Self::Handle);

    /// What `stat` says.
    fn attributes<'v, 'c>(
        objects: &'v Self::Objects<'c>,
        node: NodeOf<'v, 'c, Self>,
        look: Look,
    ) -> Result<Attributes, Errno>;

    /// Gives an object a further name.
    fn link<'v, 'c>(
        objects: &'v Self::Objects<'c>,
        node: NodeOf<'v, 'c, Self>,
        new: (Start<NodeOf<'v, 'c, Self>>, &[u8]),
    ) -> Result<(), Errno>;

    /// Hears by which name of which directory an object was found.
    fn found(&self, _directory: u64, _name: &[u8], _number: u64) {}
}

/// The instance as it is: each call happens at once, as its caller.
pub(crate) struct AsItIs {
    files: FileSystem,
    callers: Callers,
}

impl AsItIs {
    pub(crate) fn new(files: &FileSystem) -> Result<AsItIs, Errno> {
        Ok(AsItIs { files: files.clone(), callers: Callers::new(files)? })
    }
}

impl View for AsItIs {
    type Objects<'c> = Direct<'c, Outside>;
    type Calls<'c> = InProcess<'c, Outside>;
    type Handle = OpenNode;
    const KNOWS_HOLES: bool = true;
    const KEEPS_ANSWERS: bool = false;

    fn call<T>(
        &self,
        who: Who<'_>,
        mut call: impl for<'c> FnMut(&InProcess<'c, Outside>) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        match who {
            Who::Kernel => call_as(&self.files, self.callers.kernel().process(), |calls| call(&calls)),
            Who::Caller(request) => {
                let caller = self.callers.of(request)?;
                call_as(&self.files, caller.process(), |calls| call(&calls))
            }
        }
    }

    fn release(&self, handle: OpenNode) {
        if let Ok(lease) = self.files.begin() {
            names::close(&lease.objects(), handle);
        }
    }

    fn attributes<'v, 'c>(
        objects: &'v Direct<'c, Outside>,
        node: NodeOf<'v, 'c, AsItIs>,
        _: Look,
    ) -> Result<Attributes, Errno> {
        Ok(objects.attributes(node, Fields::ALL)?)
    }

    fn link<'v, 'c>(
        objects: &'v Direct<'c, Outside>,
        node: NodeOf<'v, 'c, AsItIs>,
        new: (Start<NodeOf<'v, 'c, AsItIs>>, &[u8]),
    ) -> Result<(), Errno> {
        handles::link_object(objects, node, new)
    }
}

/// Makes a call as a process; again if it finds no space and some may become free.
pub(super) fn call_as<T>(
    files: &FileSystem,
    process: &Process,
    mut call: impl FnMut(InProcess<'_, Outside>) -> Result<T, Errno>,
) -> Result<T, Errno> {
    let mut lease = files.begin().map_err(|_| Errno::EIO)?;
    loop {
        let outcome = call(lease.calls_of(process));
        if !matches!(outcome, Err(Errno::ENOSPC)) || !lease.make_room() {
            return outcome;
        }
    }
}
