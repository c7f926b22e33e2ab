//! What changes names, owners and modes: each call is made as its caller.

use std::ffi::OsStr;
use std::path::Path;

use fuser::{FileAttr, INodeNo, Request};
use scalefs::names::RenameMode;
use scalefs::{DataOperations, Direct, Errno, Kind, Node, OpenFlags, Outside, Start, directories, handles, names};

use super::attributes::kind_of;
use super::{Door, bytes};

impl Door {
    /// Makes a call that makes a name, and looks up what it leads to then.
    fn make(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        make: impl Fn(&Direct<'_, Outside>, Start<Node<'_>>, &[u8]) -> Result<(), Errno>,
    ) -> Result<FileAttr, Errno> {
        let (caller, held) = (self.callers.of(request)?, self.nodes.get(parent.0)?);
        self.call(caller.process(), |calls| {
            let objects = calls.objects();
            make(objects, Start::Handle(held.node(objects)), bytes(name))
        })?;
        // The kernel lets nobody else change the directory meanwhile.
        self.call_for_kernel(|calls| self.look_up(calls, held.node(calls.objects()), bytes(name)))
    }

    pub(super) fn make_directory(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
    ) -> Result<FileAttr, Errno> {
        self.make(request, parent, name, |objects, start, name| directories::make_directory(objects, start, name, mode))
    }

    pub(super) fn make_symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
    ) -> Result<FileAttr, Errno> {
        let target = bytes(target.as_os_str());
        self.make(request, parent, name, |objects, start, name| names::symlink(objects, target, start, name))
    }

    /// Makes a file, or opens one that is there unless `flags` forbid it.
    pub(super) fn make_file(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        (flags, mode): (OpenFlags, u32),
    ) -> Result<FileAttr, Errno> {
        self.make(request, parent, name, |objects, start, name| {
            let opened = names::open(objects, start, name, flags | OpenFlags::CREATE, mode)?;
            names::close(objects, opened.handle);
            Ok(())
        })
    }

    /// Makes a file, or a name for a pipe, a socket or a device, which are the kernel's own.
    pub(super) fn make_node(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        (mode, device): (u32, u32),
    ) -> Result<FileAttr, Errno> {
        let kind = kind_of(mode).ok_or(Errno::EINVAL)?;
        self.make(request, parent, name, |objects, start, name| {
            names::make_node(objects, start, name, (kind, device.into()), mode)
        })
    }

    pub(super) fn remove(&self, request: &Request, parent: INodeNo, name: &OsStr, kind: Kind) -> Result<(), Errno> {
        let (caller, held) = (self.callers.of(request)?, self.nodes.get(parent.0)?);
        self.call(caller.process(), |calls| {
            let objects = calls.objects();
            let start = Start::Handle(held.node(objects));
            match kind {
                Kind::Directory => directories::remove_directory(objects, start, bytes(name)),
                _ => names::unlink(objects, start, bytes(name)),
            }
        })
    }

    pub(super) fn move_name(
        &self,
        request: &Request,
        (parent, name): (INodeNo, &OsStr),
        (new_parent, new_name): (INodeNo, &OsStr),
        mode: RenameMode,
    ) -> Result<(), Errno> {
        let (caller, from, to) = (self.callers.of(request)?, self.nodes.get(parent.0)?, self.nodes.get(new_parent.0)?);
        let (old, new) = (bytes(name), bytes(new_name));
        self.call(caller.process(), |calls| {
            let objects = calls.objects();
            let (from, to) = (from.node(objects), to.node(objects));
            names::rename(objects, (Start::Handle(from), old), (Start::Handle(to), new), mode)
        })
    }

    /// Gives an object another name.
    pub(super) fn add_name(
        &self,
        request: &Request,
        number: INodeNo,
        parent: INodeNo,
        name: &OsStr,
    ) -> Result<FileAttr, Errno> {
        let held = self.nodes.get(number.0)?;
        self.make(request, parent, name, |objects, start, name| {
            handles::link_object(objects, held.node(objects), (start, name))
        })
    }
}
