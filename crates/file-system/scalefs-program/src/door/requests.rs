//! The kernel's requests, each with its answer.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use fuser::{
    AccessFlags, BsdFileFlags, FileAttr, FileHandle, Filesystem, FopenFlags, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenAccMode, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus,
    ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use scalefs::names::RenameMode;
use scalefs::{DataOperations, Errno, Kind, Need, ObjectOperations, OpenFlags, Sought, WriteAt, attributes};

use super::attributes::{GENERATION, absent, errno};
use super::changes::New;
use super::data::NewAttributes;
use super::view::View;
use super::{Caching, Door, bytes};

const MAX_NAME_BYTES: u32 = 255;
/// Maintenances after which what was given up is free, before space is told.
const ROUNDS_FOR_SPACE: u32 = 4;

impl<V: View> Door<V> {
    fn answer_entry(&self, reply: ReplyEntry, made: Result<FileAttr, Errno>) {
        match made {
            Ok(attributes) => reply.entry(&self.believed(), &attributes, GENERATION),
            Err(error) => reply.error(errno(error)),
        }
    }

    /// How the kernel treats what it opens.
    fn open_flags(&self) -> FopenFlags {
        match self.caching {
            _ if self.has_no_opens => FopenFlags::FOPEN_KEEP_CACHE,
            Caching::Nothing if self.greeting.is_direct.get().is_some() => FopenFlags::FOPEN_DIRECT_IO,
            _ => FopenFlags::empty(),
        }
    }

    fn answer_attributes(&self, reply: ReplyAttr, told: Result<FileAttr, Errno>) {
        match told {
            Ok(attributes) => reply.attr(&self.believed(), &attributes),
            Err(error) => reply.error(errno(error)),
        }
    }
}

fn answer(reply: ReplyEmpty, done: Result<(), Errno>) {
    match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(errno(error)),
    }
}

fn rename_mode(flags: RenameFlags) -> Result<RenameMode, Errno> {
    match flags {
        _ if flags.is_empty() => Ok(RenameMode::Replace),
        RenameFlags::RENAME_NOREPLACE => Ok(RenameMode::NoReplace),
        RenameFlags::RENAME_EXCHANGE => Ok(RenameMode::Exchange),
        // Linux `simple_rename`: EINVAL for flags that a file system does not know.
        _ => Err(Errno::EINVAL),
    }
}

impl<V: View> Filesystem for Door<V> {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let mut wanted = InitFlags::FUSE_PARALLEL_DIROPS
            | InitFlags::FUSE_HANDLE_KILLPRIV_V2
            | InitFlags::FUSE_DO_READDIRPLUS
            | InitFlags::FUSE_READDIRPLUS_AUTO;
        if self.caching == Caching::Full {
            wanted |= InitFlags::FUSE_WRITEBACK_CACHE
                | InitFlags::FUSE_CACHE_SYMLINKS
                | InitFlags::FUSE_NO_OPEN_SUPPORT
                | InitFlags::FUSE_NO_OPENDIR_SUPPORT;
        }
        if self.caching == Caching::Nothing && config.add_capabilities(InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP).is_ok() {
            let _ = self.greeting.is_direct.set(());
        }
        for flag in wanted.iter() {
            // An older kernel does without.
            let is_known = config.add_capabilities(flag).is_ok();
            self.has_no_opens |= is_known && flag == InitFlags::FUSE_NO_OPEN_SUPPORT;
        }
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.nodes.get(parent.0).and_then(|held| {
            self.call_for_kernel(|calls| {
                let objects = calls.objects();
                self.look_up(objects, (parent, held.node(objects)), bytes(name))
            })
        });
        match found {
            Err(Errno::ENOENT) if self.caching == Caching::Full => {
                reply.entry(&self.believed(), &absent(), GENERATION);
            }
            found => self.answer_entry(reply, found),
        }
    }

    fn forget(&self, _: &Request, number: INodeNo, count: u64) {
        self.nodes.forget(number.0, count);
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.answer_attributes(reply, self.attributes(number));
    }

    fn setattr(
        &self,
        request: &Request,
        number: INodeNo,
        mode: Option<u32>,
        user: Option<u32>,
        group: Option<u32>,
        size_bytes: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let new = NewAttributes { mode, owner: (user, group), size_bytes, times: (accessed, modified) };
        self.answer_attributes(reply, self.set_attributes(request, number, &new));
    }

    /// Asked where the kernel does not check rights itself: of a transaction's mount.
    fn access(&self, request: &Request, number: INodeNo, wanted: AccessFlags, reply: ReplyEmpty) {
        answer(reply, self.check_access(request, number, Need::from_bits(wanted.bits() as u32)));
    }

    fn readlink(&self, _: &Request, number: INodeNo, reply: ReplyData) {
        let target = self.nodes.get(number.0).and_then(|held| {
            self.call_for_kernel(|calls| {
                let objects = calls.objects();
                let node = held.node(objects);
                match objects.kind(node) {
                    Kind::Symlink => Ok(objects.link_target(node)?.as_ref().to_vec()),
                    _ => Err(Errno::EINVAL),
                }
            })
        });
        match target {
            Ok(target) => reply.data(&target),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn mknod(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, _: u32, rdev: u32, reply: ReplyEntry) {
        self.answer_entry(reply, self.make(request, parent, name, &New::Node { mode, device: rdev }));
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, _: u32, reply: ReplyEntry) {
        self.answer_entry(reply, self.make(request, parent, name, &New::Directory { mode }));
    }

    fn unlink(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer(reply, self.remove(request, parent, name, Kind::Regular));
    }

    fn rmdir(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer(reply, self.remove(request, parent, name, Kind::Directory));
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        self.answer_entry(reply, self.make(request, parent, name, &New::Symlink { target }));
    }

    fn rename(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let moved =
            rename_mode(flags).and_then(|mode| self.move_name(request, (parent, name), (new_parent, new_name), mode));
        answer(reply, moved);
    }

    fn link(&self, request: &Request, number: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.answer_entry(reply, self.make(request, parent, name, &New::Link(number)));
    }

    fn open(&self, _: &Request, _: INodeNo, _: fuser::OpenFlags, reply: ReplyOpen) {
        // The kernel has checked the rights, and asks no more if it may do without.
        if self.has_no_opens {
            return reply.error(fuser::Errno::ENOSYS);
        }
        reply.opened(FileHandle(0), self.open_flags());
    }

    fn opendir(&self, _: &Request, _: INodeNo, _: fuser::OpenFlags, reply: ReplyOpen) {
        if self.has_no_opens {
            return reply.error(fuser::Errno::ENOSYS);
        }
        reply.opened(FileHandle(0), FopenFlags::empty());
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let access = match fuser::OpenFlags(flags).acc_mode() {
            OpenAccMode::O_RDONLY => OpenFlags::READ,
            OpenAccMode::O_WRONLY => OpenFlags::WRITE,
            OpenAccMode::O_RDWR => OpenFlags::READ | OpenFlags::WRITE,
        };
        let is_exclusive = flags & nix::fcntl::OFlag::O_EXCL.bits() != 0;
        let flags = if is_exclusive { access | OpenFlags::EXCLUSIVE } else { access };
        match self.make(request, parent, name, &New::File { flags, mode }) {
            Ok(made) => {
                reply.created(&self.believed(), &made, GENERATION, FileHandle(0), self.open_flags());
            }
            Err(error) => reply.error(errno(error)),
        }
    }

    fn read(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: fuser::OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.read_at(number, (offset, size), |read| match read {
            Ok(bytes) => reply.data(bytes),
            Err(error) => reply.error(errno(error)),
        });
    }

    fn write(
        &self,
        request: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        open_flags: fuser::OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let appends = open_flags.0 & nix::fcntl::OFlag::O_APPEND.bits() != 0;
        // What the kernel caches and writes back has its place already; else the end is where it is now.
        let at =
            match appends && self.caching == Caching::Nothing && !write_flags.contains(WriteFlags::FUSE_WRITE_CACHE) {
                true => WriteAt::End,
                false => WriteAt::Offset(offset),
            };
        match self.write(request, number, (at, data), write_flags) {
            Ok(written) => reply.written(written as u32),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn readdir(&self, _: &Request, number: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        match self.list(number, offset, &mut reply) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn readdirplus(&self, _: &Request, number: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectoryPlus) {
        match self.list_with_attributes(number, offset, &mut reply) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let space = self.files.begin().map_err(|_| Errno::EIO).and_then(|mut lease| {
            // What was removed is free for who asks.
            for _ in 0..ROUNDS_FOR_SPACE {
                lease.maintain();
            }
            attributes::space(&lease.objects())
        });
        match space {
            Ok(space) => reply.statfs(
                space.blocks,
                space.free_blocks,
                space.free_blocks,
                space.inodes,
                space.free_inodes,
                space.block_bytes as u32,
                MAX_NAME_BYTES,
                space.block_bytes as u32,
            ),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn lseek(&self, _: &Request, number: INodeNo, _: FileHandle, offset: i64, whence: i32, reply: ReplyLseek) {
        const SEEK_DATA: i32 = 3;
        const SEEK_HOLE: i32 = 4;
        let sought = match whence {
            // What the kernel has not written back yet would seem to be holes.
            _ if self.caching == Caching::Full || !V::KNOWS_HOLES => return reply.error(fuser::Errno::ENOSYS),
            SEEK_DATA => Sought::Data,
            SEEK_HOLE => Sought::Hole,
            _ => return reply.error(errno(Errno::EINVAL)),
        };
        match self.next(number, offset, sought) {
            Ok(offset) => reply.offset(offset),
            Err(error) => reply.error(errno(error)),
        }
    }

    // Data are in memory: there is nothing to wait for. The kernel asks each of these once and no more.

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.error(fuser::Errno::ENOSYS);
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.error(fuser::Errno::ENOSYS);
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.error(fuser::Errno::ENOSYS);
    }
}
