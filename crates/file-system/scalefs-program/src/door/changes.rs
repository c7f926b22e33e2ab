//! What changes names, owners and modes: each call is made as its caller.

use std::ffi::OsStr;
use std::path::Path;

use fuser::{INodeNo, Request};
use scalefs::names::RenameMode;
use scalefs::{
    Attributes, DataOperations, Direct, Errno, Fields, Follow, Kind, Node, ObjectOperations, OpenFlags, Outside, Start,
    directories, names,
};

use super::nodes::{Name, ROOT};
use super::{Door, bytes, number_of};

/// Bits of a mode that say what kind of object it is, and those of a regular file.
const KIND_BITS: u32 = 0o170_000;
const REGULAR_BITS: u32 = 0o100_000;

impl Door {
    /// Makes a call that makes a name, and looks up what it leads to then.
    fn make(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        make: impl Fn(&Direct<'_, Outside>, Start<Node<'_>>, &[u8]) -> Result<(), Errno>,
    ) -> Result<Attributes, Errno> {
        let (caller, held) = (self.callers.of(request)?, self.nodes.get(parent.0)?);
        self.call(caller.process(), |calls| {
            let objects = calls.objects();
            make(objects, Start::Handle(held.node(objects)), bytes(name))
        })?;
        // The kernel lets nobody else change the directory meanwhile.
        self.call_for_kernel(|calls| self.look_up(calls, (held.node(calls.objects()), parent.0), bytes(name)))
    }

    pub(super) fn make_directory(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
    ) -> Result<Attributes, Errno> {
        self.make(request, parent, name, |objects, start, name| directories::make_directory(objects, start, name, mode))
    }

    pub(super) fn make_symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
    ) -> Result<Attributes, Errno> {
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
    ) -> Result<Attributes, Errno> {
        self.make(request, parent, name, |objects, start, name| {
            let opened = names::open(objects, start, name, flags | OpenFlags::CREATE, mode)?;
            names::close(objects, opened.handle);
            Ok(())
        })
    }

    /// Makes what `mknod` makes; of these, regular files.
    pub(super) fn make_node(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
    ) -> Result<Attributes, Errno> {
        match mode & KIND_BITS {
            0 | REGULAR_BITS => self.make_file(request, parent, name, (OpenFlags::EXCLUSIVE, mode)),
            // POSIX.1-2017 `mknod`, EINVAL; Linux `vfs_mknod`: EPERM where the file system has no such objects.
            _ => Err(Errno::EPERM),
        }
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
            names::rename(objects, (Start::Handle(from), old), (Start::Handle(to), new), mode)?;
            for (directory, number, name) in [(from, parent.0, old), (to, new_parent.0, new)] {
                if let Some(found) = number_of(objects, directory, name)? {
                    self.nodes.rename(scalefs::InodeNumber(found), Name { directory: number, name: name.into() });
                }
            }
            Ok(())
        })
    }

    /// Gives an object another name. The kernel names it by its number, a call by a path: so a name of it is looked for.
    pub(super) fn add_name(
        &self,
        request: &Request,
        number: INodeNo,
        parent: INodeNo,
        name: &OsStr,
    ) -> Result<Attributes, Errno> {
        let (caller, to) = (self.callers.of(request)?, self.nodes.get(parent.0)?);
        let old = self.find_name(number.0)?.ok_or(Errno::ENOENT)?;
        let from = self.nodes.get(old.directory);
        self.call(caller.process(), |calls| {
            let objects = calls.objects();
            let to = Start::Handle(to.node(objects));
            // What the kernel does not know of any more is reached from above.
            let (start, path) = match &from {
                Ok(held) => (Start::Handle(held.node(objects)), old.name.as_ref()),
                Err(_) => (Start::Handle(objects.root()), old.name.as_ref()),
            };
            names::link(objects, (start, path), (to, bytes(name)), Follow::Nothing)
        })?;
        self.call_for_kernel(|calls| {
            self.look_up(calls, (self.nodes.get(parent.0)?.node(calls.objects()), parent.0), bytes(name))
        })
    }

    /// A name that leads to an object: the one that was heard of last, or any in the tree.
    fn find_name(&self, number: u64) -> Result<Option<Name>, Errno> {
        self.call_for_kernel(|calls| {
            let objects = calls.objects();
            if let Some(name) = self.nodes.name(number)
                && let Ok(held) = self.nodes.get(name.directory)
                && number_of(objects, held.node(objects), &name.name)? == Some(number)
            {
                return Ok(Some(name));
            }
            search(objects, number)
        })
    }
}

/// Looks for an object in the whole tree; its name is then a path from the root.
fn search(objects: &Direct<'_, Outside>, number: u64) -> Result<Option<Name>, Errno> {
    let mut pending = vec![(objects.root(), Vec::new())];
    while let Some((directory, path)) = pending.pop() {
        let mut found = None;
        objects.list(directory, 0, &mut |item| {
            let below = || [path.as_slice(), item.name].join(&b'/');
            match objects.attributes(item.node, Fields::IDENTITY) {
                Ok(attributes) if attributes.number.0 == number => found = Some(below()),
                _ if objects.kind(item.node) == Kind::Directory => pending.push((item.node, below())),
                _ => {}
            }
            found.is_none()
        })?;
        if let Some(path) = found {
            // An absolute path, whatever it starts at.
            return Ok(Some(Name { directory: ROOT, name: path.into() }));
        }
    }
    Ok(None)
}
