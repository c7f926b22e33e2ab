//! What changes names, owners and modes: each call is made as its caller.

use std::ffi::OsStr;
use std::path::Path;

use fuser::{FileAttr, INodeNo, Request};
use scalefs::names::RenameMode;
use scalefs::{DataOperations, Errno, Kind, OpenFlags, Start, directories, names};

use super::attributes::kind_of;
use super::view::{View, Who};
use super::{Door, bytes};

/// What a name is made for.
pub(super) enum New<'n> {
    Directory {
        mode: u32,
    },
    Symlink {
        target: &'n Path,
    },
    /// Or one that is there, unless flags forbid it.
    File {
        flags: OpenFlags,
        mode: u32,
    },
    /// A file, or a name for a pipe, a socket or a device, which are the kernel's own.
    Node {
        mode: u32,
        device: u32,
    },
    /// An object that has other names.
    Link(INodeNo),
}

impl<V: View> Door<V> {
    /// Makes a name, and looks up what it leads to then.
    pub(super) fn make(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new: &New<'_>,
    ) -> Result<FileAttr, Errno> {
        let held = self.nodes.get(parent.0)?;
        let linked = match new {
            New::Link(number) => Some(self.nodes.get(number.0)?),
            _ => None,
        };
        self.view.call(Who::Caller(request), |calls| {
            let (objects, name) = (calls.objects(), bytes(name));
            let start = Start::Handle(held.node(objects));
            match *new {
                New::Directory { mode } => directories::make_directory(objects, start, name, mode),
                New::Symlink { target } => names::symlink(objects, bytes(target.as_os_str()), start, name),
                New::File { flags, mode } => {
                    let opened = names::open(objects, start, name, flags | OpenFlags::CREATE, mode)?;
                    names::close(objects, opened.handle);
                    Ok(())
                }
                New::Node { mode, device } => {
                    let kind = kind_of(mode).ok_or(Errno::EINVAL)?;
                    names::make_node(objects, start, name, (kind, device.into()), mode)
                }
                New::Link(_) => {
                    let linked = linked.as_ref().ok_or(Errno::EIO)?;
                    V::link(objects, linked.node(objects), (start, name))
                }
            }
        })?;
        // The kernel lets no other of its callers change the directory in between; a transaction that commits just now can.
        self.call_for_kernel(|calls| {
            let objects = calls.objects();
            self.look_up(objects, (parent, held.node(objects)), bytes(name))
        })
    }

    pub(super) fn remove(&self, request: &Request, parent: INodeNo, name: &OsStr, kind: Kind) -> Result<(), Errno> {
        let held = self.nodes.get(parent.0)?;
        self.view.call(Who::Caller(request), |calls| {
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
        let (from, to) = (self.nodes.get(parent.0)?, self.nodes.get(new_parent.0)?);
        let (old, new) = (bytes(name), bytes(new_name));
        self.view.call(Who::Caller(request), |calls| {
            let objects = calls.objects();
            let (from, to) = (from.node(objects), to.node(objects));
            names::rename(objects, (Start::Handle(from), old), (Start::Handle(to), new), mode)
        })
    }
}
