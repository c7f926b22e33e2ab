//! The kernel's requests, each with its answer. Nothing can be changed: the overlay above keeps all changes.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuser::{
    AccessFlags, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs,
    ReplyXattr, Request,
};
use rustix::io::Errno;

use super::{ALWAYS, View};
use crate::attributes::{Attributes, Kind, Time};
use crate::question::{Answer, Listed, Question};
use crate::shared::locked;
use crate::tree::{is_absence, is_of_overlay};

const GENERATION: Generation = Generation(0);
const BLOCK_BYTES: u32 = 4096;
/// As far as the kernel reads ahead of a command.
const READ_AHEAD_BYTES: u32 = 128 << 10;

/// An error as FUSE's crate has it.
fn fuse_error(error: Errno) -> fuser::Errno {
    fuser::Errno::from_i32(error.raw_os_error())
}

fn file_type(kind: Kind) -> FileType {
    match kind {
        Kind::File => FileType::RegularFile,
        Kind::Directory => FileType::Directory,
        Kind::Symlink => FileType::Symlink,
        Kind::Fifo => FileType::NamedPipe,
        Kind::Socket => FileType::Socket,
        Kind::CharacterDevice => FileType::CharDevice,
        Kind::BlockDevice => FileType::BlockDevice,
    }
}

fn system_time((seconds, nanoseconds): Time) -> SystemTime {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let at =
        if seconds < 0 { SystemTime::UNIX_EPOCH.checked_sub(whole) } else { SystemTime::UNIX_EPOCH.checked_add(whole) };
    at.and_then(|at| at.checked_add(Duration::from_nanos(nanoseconds.into()))).unwrap_or(SystemTime::UNIX_EPOCH)
}

fn file_attributes(number: u64, attributes: &Attributes) -> FileAttr {
    FileAttr {
        ino: INodeNo(number),
        size: attributes.size_bytes,
        blocks: attributes.size_bytes.div_ceil(512),
        atime: system_time(attributes.modified),
        mtime: system_time(attributes.modified),
        ctime: system_time(attributes.changed),
        crtime: SystemTime::UNIX_EPOCH,
        kind: file_type(attributes.kind),
        perm: attributes.mode as u16,
        nlink: u32::try_from(attributes.links).unwrap_or(u32::MAX),
        uid: attributes.user,
        gid: attributes.group,
        rdev: kernel_device(attributes.special),
        blksize: BLOCK_BYTES,
        flags: 0,
    }
}

/// A device's number as FUSE has it: 12 bits of the major number between 8 and 12 of the minor one.
fn kernel_device(special: u64) -> u32 {
    let (major, minor) = (rustix::fs::major(special), rustix::fs::minor(special));
    (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12)
}

/// The answer about a name that leads nowhere.
fn absent() -> FileAttr {
    let nothing = Attributes {
        kind: Kind::File,
        mode: 0,
        user: 0,
        group: 0,
        device: 0,
        inode: 0,
        links: 0,
        size_bytes: 0,
        modified: (0, 0),
        changed: (0, 0),
        special: 0,
    };
    file_attributes(0, &nothing)
}

/// Answers with bytes, or with their number if the caller asks for that.
fn answer_bytes(reply: ReplyXattr, bytes: &[u8], room_bytes: u32) {
    match (u32::try_from(bytes.len()), room_bytes) {
        (Ok(length), 0) => reply.size(length),
        (Ok(length), room) if length <= room => reply.data(bytes),
        _ => reply.error(fuser::Errno::ERANGE),
    }
}

impl View {
    fn listing(&self, number: u64) -> rustix::io::Result<Arc<Vec<Listed>>> {
        let node = self.nodes.get(number).ok_or(Errno::STALE)?;
        let mut seen = locked(&node.seen);
        if let Some(listing) = &seen.listing {
            return Ok(listing.clone());
        }
        let listing = Arc::new(self.tree.listing(&node.place)?);
        self.note(&node.place, Question::Listing, Answer::Listing(listing.to_vec()));
        seen.listing = Some(listing.clone());
        Ok(listing)
    }

    fn target(&self, number: u64) -> rustix::io::Result<Vec<u8>> {
        let node = self.nodes.get(number).ok_or(Errno::STALE)?;
        let mut seen = locked(&node.seen);
        if let Some(target) = &seen.target {
            return Ok(target.clone());
        }
        match self.tree.ask(&node.place, &Question::Target) {
            Answer::Target(target) => {
                self.note(&node.place, Question::Target, Answer::Target(target.clone()));
                seen.target = Some(target.clone());
                Ok(target)
            }
            // It is no link any more.
            _ => Err(Errno::STALE),
        }
    }

    fn extended(&self, number: u64, name: &[u8]) -> rustix::io::Result<Vec<u8>> {
        let node = self.nodes.get(number).ok_or(Errno::STALE)?;
        let mut seen = locked(&node.seen);
        let known = match seen.extended.get(name) {
            Some(known) => known.clone(),
            None => {
                let value = self.tree.extended(&node.place, name).map_err(Errno::raw_os_error);
                let answer = match &value {
                    Ok(value) => Answer::about_bytes(value),
                    Err(number) => crate::tree::fault(Errno::from_raw_os_error(*number)),
                };
                self.note(&node.place, Question::Extended(name.to_vec()), answer);
                seen.extended.insert(name.to_vec(), value.clone());
                value
            }
        };
        known.map_err(Errno::from_raw_os_error)
    }

    fn extended_names(&self, number: u64) -> rustix::io::Result<Vec<Vec<u8>>> {
        let node = self.nodes.get(number).ok_or(Errno::STALE)?;
        let mut seen = locked(&node.seen);
        if let Some(known) = &seen.extended_names {
            return known.clone().map_err(Errno::from_raw_os_error);
        }
        let names = self.tree.extended_names(&node.place).map_err(Errno::raw_os_error);
        let answer = match &names {
            Ok(names) => Answer::Names(names.clone()),
            Err(number) => crate::tree::fault(Errno::from_raw_os_error(*number)),
        };
        self.note(&node.place, Question::ExtendedNames, answer);
        seen.extended_names = Some(names.clone());
        names.map_err(Errno::from_raw_os_error)
    }
}

impl Filesystem for View {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        for flag in (InitFlags::FUSE_PARALLEL_DIROPS | InitFlags::FUSE_CACHE_SYMLINKS).iter() {
            // An older kernel does without.
            let _ = config.add_capabilities(flag);
        }
        let _ = config.set_max_readahead(READ_AHEAD_BYTES);
        // An overlay may lie above a file system that passes reads through to one that is none itself, and no higher.
        self.passes_through =
            config.add_capabilities(InitFlags::FUSE_PASSTHROUGH).is_ok() && config.set_max_stack_depth(1).is_ok();
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.look_up(parent.0, name.as_bytes()) {
            Ok(Some(number)) => match self.nodes.get(number) {
                // The kernel has to ask before it shows more to anyone.
                Some(node) => {
                    let seen = locked(&node.seen);
                    let believed = if seen.has_given_attributes { ALWAYS } else { Duration::ZERO };
                    let attributes = file_attributes(number, &self.ownership.shown(&seen.known()));
                    reply.entry_with_ttls(&believed, &ALWAYS, &attributes, GENERATION);
                }
                None => reply.error(fuser::Errno::ESTALE),
            },
            Ok(None) => reply.entry(&ALWAYS, &absent(), GENERATION),
            Err(error) => reply.error(fuse_error(error)),
        }
    }

    fn getattr(&self, request: &Request, number: INodeNo, handle: Option<FileHandle>, reply: ReplyAttr) {
        let answer = match handle {
            Some(_) => self.size(number.0).map(|attributes| (attributes, Duration::ZERO)),
            None => self.attributes(number.0, request.pid()),
        };
        match answer {
            Ok((attributes, believed)) => {
                reply.attr(&believed, &file_attributes(number.0, &self.ownership.shown(&attributes)));
            }
            Err(error) => reply.error(fuse_error(error)),
        }
    }

    fn readlink(&self, _: &Request, number: INodeNo, reply: ReplyData) {
        match self.target(number.0) {
            Ok(target) => reply.data(&target),
            Err(error) => reply.error(fuse_error(error)),
        }
    }

    fn open(&self, _: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        if flags.acc_mode() != fuser::OpenAccMode::O_RDONLY {
            return reply.error(fuser::Errno::EROFS);
        }
        if let Some(node) = self.nodes.get(number.0)
            && let Some(backing) = self.backing(&node, |file| reply.open_backing(file))
        {
            return reply.opened_passthrough(FileHandle(0), FopenFlags::empty(), backing);
        }
        match self.open(number.0) {
            Ok(handle) => reply.opened(FileHandle(handle), FopenFlags::FOPEN_KEEP_CACHE),
            Err(error) => reply.error(fuse_error(error)),
        }
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.read(handle.0, offset, size) {
            Ok(bytes) => reply.data(&bytes),
            Err(error) => reply.error(fuse_error(error)),
        }
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.close(handle.0);
        reply.ok();
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // The kernel asks this once and no more.
        reply.error(fuser::Errno::ENOSYS);
    }

    fn opendir(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_CACHE_DIR | FopenFlags::FOPEN_KEEP_CACHE);
    }

    fn readdir(&self, _: &Request, number: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let listing = match self.listing(number.0) {
            Ok(listing) => listing,
            Err(error) if is_absence(error) => return reply.error(fuser::Errno::ESTALE),
            Err(error) => return reply.error(fuse_error(error)),
        };
        let dots = [(b".".to_vec(), Kind::Directory), (b"..".to_vec(), Kind::Directory)];
        let all = dots.iter().chain(listing.iter());
        for (position, (name, kind)) in all.enumerate().skip(usize::try_from(offset).unwrap_or(usize::MAX)) {
            // Numbers of inodes in a listing are hints; any that is not zero will do.
            let is_full = reply.add(number, position as u64 + 1, file_type(*kind), OsStr::from_bytes(name));
            if is_full {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        // Room is that of the layer of changes.
        reply.statfs(0, 0, 0, 0, 0, BLOCK_BYTES, 255, BLOCK_BYTES);
    }

    fn getxattr(&self, _: &Request, number: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        // What an overlay keeps about its layers says nothing here: it would be somebody's who wants to mislead.
        if is_of_overlay(name.as_bytes()) {
            return reply.error(fuser::Errno::ENODATA);
        }
        match self.extended(number.0, name.as_bytes()) {
            Ok(value) => answer_bytes(reply, &value, size),
            Err(error) => reply.error(fuse_error(error)),
        }
    }

    fn listxattr(&self, _: &Request, number: INodeNo, size: u32, reply: ReplyXattr) {
        match self.extended_names(number.0) {
            Ok(names) => {
                let joined: Vec<u8> = names.iter().flat_map(|name| name.iter().copied().chain([0])).collect();
                answer_bytes(reply, &joined, size);
            }
            Err(Errno::NODATA) => answer_bytes(reply, b"", size),
            Err(error) => reply.error(fuse_error(error)),
        }
    }

    fn access(&self, _: &Request, _: INodeNo, _: AccessFlags, reply: ReplyEmpty) {
        reply.error(fuser::Errno::ENOSYS);
    }
}
