//! Data, sizes and attributes of one object.

use std::cell::RefCell;

use fuser::{FileAttr, INodeNo, Request, TimeOrNow, WriteFlags};
use scalefs::{
    DataOperations, Errno, Kind, Need, ObjectOperations, OperationError, PermissionChange, SET_GROUP, SET_USER, Sought,
    WriteAt, attributes, data,
};

use super::Door;
use super::attributes::{file_attributes, new_time};
use super::view::{Look, View, Who};

thread_local! {
    /// What is read goes through here to the kernel.
    static READ: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// What `setattr` sets.
pub(super) struct NewAttributes {
    pub(super) mode: Option<u32>,
    pub(super) owner: (Option<u32>, Option<u32>),
    pub(super) size_bytes: Option<u64>,
    pub(super) times: (Option<TimeOrNow>, Option<TimeOrNow>),
}

impl<V: View> Door<V> {
    /// Where the next data are, or the next hole, from an offset on.
    pub(super) fn next(&self, number: INodeNo, offset: i64, sought: Sought) -> Result<i64, Errno> {
        let held = self.nodes.get(number.0)?;
        self.call_for_kernel(|calls| {
            let node = held.node(calls.objects());
            match calls.objects().kind(node) {
                Kind::Regular => data::next(calls, node, offset, sought).map(u64::cast_signed),
                _ => Err(Errno::EINVAL),
            }
        })
    }

    pub(super) fn attributes(&self, number: INodeNo) -> Result<FileAttr, Errno> {
        let held = self.nodes.get(number.0)?;
        self.call_for_kernel(|calls| {
            let objects = calls.objects();
            file_attributes::<V>(objects, held.node(objects), Look::Asked)
        })
    }

    /// Whether the caller may do with an object what is asked.
    pub(super) fn check_access(&self, request: &Request, number: INodeNo, need: Need) -> Result<(), Errno> {
        let held = self.nodes.get(number.0)?;
        self.view.call(Who::Caller(request), |calls| {
            let objects = calls.objects();
            if objects.permits(held.node(objects), need)? { Ok(()) } else { Err(Errno::EACCES) }
        })
    }

    pub(super) fn set_attributes(
        &self,
        request: &Request,
        number: INodeNo,
        new: &NewAttributes,
    ) -> Result<FileAttr, Errno> {
        let held = self.nodes.get(number.0)?;
        if new.owner != (None, None) || new.mode.is_some() || new.size_bytes.is_some() {
            self.view.call(Who::Caller(request), |calls| {
                let objects = calls.objects();
                let node = held.node(objects);
                if new.owner != (None, None) {
                    attributes::change_owner_of(objects, node, new.owner)?;
                }
                if let Some(mode) = new.mode {
                    attributes::change_mode_of(objects, node, mode)?;
                }
                match new.size_bytes {
                    Some(size_bytes) => resize(calls, node, size_bytes),
                    None => Ok(()),
                }
            })?;
        }
        let (accessed, modified) = (new_time(new.times.0), new_time(new.times.1));
        self.call_for_kernel(|calls| {
            let objects = calls.objects();
            let node = held.node(objects);
            if new.times != (None, None) {
                // The kernel has checked the right, or sets what it has cached for somebody else.
                attributes::set_times_of(objects, node, (accessed, modified))?;
            }
            file_attributes::<V>(objects, node, Look::InPassing)
        })
    }

    /// Gives what is read at an offset to `answer`.
    pub(super) fn read_at<T>(
        &self,
        number: INodeNo,
        (offset, length): (u64, u32),
        answer: impl FnOnce(Result<&[u8], Errno>) -> T,
    ) -> T {
        READ.with_borrow_mut(|buffer| {
            buffer.resize(buffer.len().max(length as usize), 0);
            let bytes = &mut buffer[..length as usize];
            let read = self.nodes.get(number.0).and_then(|held| {
                self.call_for_kernel(|calls| {
                    let node = held.node(calls.objects());
                    check_regular(calls.objects(), node)?;
                    Ok(calls.read_range(node, offset, bytes)?)
                })
            });
            answer(read.map(|length| &bytes[..length]))
        })
    }

    /// Writes all of it, but where the caller is told how much.
    pub(super) fn write(
        &self,
        request: &Request,
        number: INodeNo,
        (at, bytes): (WriteAt, &[u8]),
        flags: WriteFlags,
    ) -> Result<usize, Errno> {
        let held = self.nodes.get(number.0)?;
        let is_of_kernel = flags.contains(WriteFlags::FUSE_WRITE_CACHE);
        if flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID) && !is_of_kernel {
            let changed = self.view.call(Who::Caller(request), |calls| {
                let objects = calls.objects();
                drop_set_ids(objects, held.node(objects))
            })?;
            if changed {
                self.forget_attributes(number.0);
            }
        }
        let mut done = 0;
        let written = self.call_for_kernel(|calls| {
            let node = held.node(calls.objects());
            check_regular(calls.objects(), node)?;
            while done < bytes.len() {
                let next = match at {
                    WriteAt::Offset(offset) => WriteAt::Offset(offset + done as u64),
                    WriteAt::End => WriteAt::End,
                };
                match calls.write_range(node, next, &bytes[done..])?.length {
                    0 => return Err(Errno::ENOSPC),
                    length => done += length,
                }
            }
            Ok(())
        });
        match written {
            // Who writes back looks at nothing but the error.
            Err(errno) if done == 0 || is_of_kernel => Err(errno),
            _ => Ok(done),
        }
    }
}

fn check_regular<'v, O: ObjectOperations>(objects: &'v O, node: O::Node<'v>) -> Result<(), Errno> {
    if objects.kind(node) == Kind::Regular { Ok(()) } else { Err(Errno::EINVAL) }
}

/// Clears set-id bits of a file whose data the caller changes; whether there were any.
fn drop_set_ids<'v, O: ObjectOperations>(objects: &'v O, node: O::Node<'v>) -> Result<bool, Errno> {
    let has_bits = objects.permissions(node)?.mode & (SET_USER | SET_GROUP) != 0;
    if has_bits && !objects.credentials().is_superuser() {
        objects.change_permissions(node, PermissionChange::DropSetIds)?;
    }
    Ok(has_bits)
}

fn resize<'v, C: DataOperations>(
    calls: &'v C,
    node: <C::Objects as ObjectOperations>::Node<'v>,
    size_bytes: u64,
) -> Result<(), Errno> {
    let objects = calls.objects();
    check_regular(objects, node)?;
    if !objects.credentials().is_superuser() {
        drop_set_ids(objects, node)?;
    }
    loop {
        match calls.resize(node, size_bytes) {
            Ok(()) => return Ok(()),
            Err(OperationError::NoSpace) => return Err(Errno::ENOSPC),
            Err(OperationError::Fault(fault)) => return Err(fault.into()),
            // Somebody else has changed the file.
            Err(_) => {}
        }
    }
}
