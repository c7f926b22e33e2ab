//! Objects are made, and given back.
#![allow(unsafe_code)]

use core::alloc::Layout;
use core::ptr::NonNull;

use hashdir::HashDir;
use percpu::{CacheLine, Core, OutOfMemory, SizeClass};
use posix_calls::{InodeNumber, Kind, NewObject, Permissions};
use sync::atomic::Ordering;

use crate::annex::Annex;
use crate::context::Context;
use crate::directory::Directory;
use crate::file::File;
use crate::inode::{Inode, Named, Symlink, number_made_by};
use crate::inode_ref::InodeRef;
use crate::instance::ScaleFs;
use crate::pipe::Pipe;
use crate::place::Place;
use crate::socket::SocketInode;

impl ScaleFs {
    /// Makes a pipe with one reference and a descriptor at each end, which the caller installs.
    pub(crate) fn make_pipe(&self, core: &Core<'_>, context: &Context, now_ns: u64) -> Result<InodeRef, OutOfMemory> {
        let credentials = context.credentials();
        let permissions = Permissions { mode: 0o600, user: credentials.user, group: credentials.group };
        let inode = Inode::new(self.next_number(core), Kind::Pipe, permissions, now_ns, Named::AtOnce);
        Ok(InodeRef::new(core.allocate_object(Pipe::new(inode))?.cast(), Kind::Pipe))
    }

    /// Makes an object with one reference, and one link if its name is inserted at once; in `parent` if it is a directory.
    pub(crate) fn make(
        &self,
        core: &Core<'_>,
        object: NewObject<'_>,
        permissions: Permissions,
        parent: InodeRef,
        now_ns: u64,
        named: Named,
    ) -> Result<InodeRef, OutOfMemory> {
        self.inodes.take(core)?;
        let made = self.make_object(core, object, permissions, parent, now_ns, named);
        made.inspect_err(|_| self.inodes.give(core))
    }

    fn make_object(
        &self,
        core: &Core<'_>,
        object: NewObject<'_>,
        permissions: Permissions,
        parent: InodeRef,
        now_ns: u64,
        named: Named,
    ) -> Result<InodeRef, OutOfMemory> {
        let kind = object.kind();
        // Made where it is to lie.
        let inode = || Inode::new(self.next_number(core), kind, permissions, now_ns, named);
        let address = match object {
            NewObject::File => {
                let address = core.allocate_place::<File>()?;
                // SAFETY: fresh memory for one.
                unsafe { address.write(File::new(inode())) };
                address.cast()
            }
            NewObject::Directory => {
                let address = core.allocate_place::<Directory>()?;
                // SAFETY: the directory is used with this arena and this instance's epochs only.
                let names = unsafe { HashDir::new(core, self.decisions(), self.directory_bucket_count) };
                let names = names.inspect_err(|_| {
                    // SAFETY: allocated just now.
                    unsafe { core.free_object::<Directory>(address.cast()) };
                })?;
                let place = CacheLine(Place::under(parent.to_bits()));
                // SAFETY: fresh memory of the right class; the caller has found the parent in this call.
                unsafe {
                    address.write(Directory { inode: inode(), names, place });
                    self.counts().change(core, &parent.inode().references.counted, 1);
                }
                address.cast()
            }
            NewObject::Symlink(target) => make_with_bytes(core, inode(), target)?,
            NewObject::Outside(_, device) => make_with_bytes(core, inode(), &device.to_ne_bytes())?,
        };
        Ok(InodeRef::new(address, kind))
    }

    /// Gives an object back.
    ///
    /// # Safety
    /// No name, reference or call leads to it any more.
    pub(crate) unsafe fn unmake(&self, core: &Core<'_>, node: InodeRef) {
        let address = node.address();
        // What has no names in directories is not limited, as on Linux.
        if !matches!(node.kind(), Kind::Pipe | Kind::Socket) {
            self.inodes.give(core);
        }
        // SAFETY: nobody reaches the object, by the caller's promise.
        unsafe { Annex::destroy(node.inode(), core) };
        // SAFETY: as above. Types and classes are those with which each kind
        // is made, since the node's kind is the one that they gave; a directory still holds the reference to its parent.
        unsafe {
            match node.kind() {
                Kind::Regular => {
                    node.file().destroy(self, core);
                    core.free_object::<File>(address.cast());
                }
                Kind::Pipe => {
                    node.pipe().destroy(self, core);
                    core.free_object::<Pipe>(address.cast());
                }
                Kind::Socket => core.free_object::<SocketInode>(address.cast()),
                Kind::Symlink | Kind::NamedPipe | Kind::NamedSocket | Kind::CharacterDevice | Kind::BlockDevice => {
                    let target_bytes = address.cast::<Symlink>().as_ref().target_bytes;
                    core.free(address.cast(), symlink_class(target_bytes.into()));
                }
                Kind::Directory => {
                    let directory = node.directory();
                    let parent = InodeRef::from_bits(directory.place.parent.load(Ordering::Acquire));
                    directory.names.destroy(core, |_| debug_assert!(false, "removed directories are empty"));
                    self.counts().change(core, &parent.inode().references.counted, -1);
                    core.free_object::<Directory>(address.cast());
                }
            }
        }
    }

    pub(crate) fn next_number(&self, core: &Core<'_>) -> InodeNumber {
        let made = &self.own.get(core).made;
        made.set(made.get() + 1);
        number_made_by(core.index(), made.get())
    }
}

/// An inode with bytes behind it, at most 4,095.
fn make_with_bytes(core: &Core<'_>, inode: Inode, bytes: &[u8]) -> Result<NonNull<Inode>, OutOfMemory> {
    let place = core.allocate(symlink_class(bytes.len()))?.cast::<Symlink>();
    // SAFETY: fresh memory for the inode and the bytes behind it.
    unsafe {
        place.write(Symlink { inode, target_bytes: bytes.len() as u16 });
        place.add(1).cast::<u8>().copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len());
    }
    Ok(place.cast())
}

/// The size class of a symbolic link with a target of so many bytes, at most 4,095.
fn symlink_class(target_bytes: usize) -> SizeClass {
    let target = Layout::array::<u8>(target_bytes).expect("targets are short");
    let (layout, _) = Layout::new::<Symlink>().extend(target).expect("targets are short");
    SizeClass::of(layout).expect("targets are short")
}
