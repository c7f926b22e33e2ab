//! Listings of directories: names alone, or names of which the kernel is told the attributes at once.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use fuser::{INodeNo, ReplyDirectory, ReplyDirectoryPlus};
use scalefs::{DataOperations, Errno, ObjectOperations, directories};

use super::Door;
use super::attributes::{GENERATION, file_attributes, file_type};
use super::view::{Look, View};

/// Cookies of names are this or larger; below are `.` and `..`.
const FIRST_NAME: u64 = 2;

impl<V: View> Door<V> {
    pub(super) fn list(&self, number: INodeNo, from: u64, reply: &mut ReplyDirectory) -> Result<(), Errno> {
        let held = self.nodes.get(number.0)?;
        self.call_for_kernel(|calls| {
            let objects = calls.objects();
            directories::read_directory(objects, held.node(objects), from, |entry| {
                let number = INodeNo(entry.number.0);
                !reply.add(number, entry.next_cookie, file_type(entry.kind), OsStr::from_bytes(entry.name))
            })
            .map(drop)
        })
    }

    pub(super) fn list_with_attributes(
        &self,
        number: INodeNo,
        from: u64,
        reply: &mut ReplyDirectoryPlus,
    ) -> Result<(), Errno> {
        let held = self.nodes.get(number.0)?;
        let believed = self.believed();
        self.call_for_kernel(|calls| {
            let objects = calls.objects();
            let directory = held.node(objects);
            if from < FIRST_NAME {
                for (cookie, name, node) in [(0, ".", directory), (1, "..", objects.parent(directory)?)] {
                    let told = file_attributes::<V>(objects, node, Look::InPassing)?;
                    // The kernel takes these two for names alone.
                    if cookie >= from && reply.add(told.ino, cookie + 1, name, &believed, &told, GENERATION) {
                        return Ok(());
                    }
                }
            }
            let mut outcome = Ok(());
            objects.list(directory, from.max(FIRST_NAME), &mut |item| {
                let told = file_attributes::<V>(objects, item.node, Look::InPassing).and_then(|told| {
                    let name = OsStr::from_bytes(item.name);
                    if reply.add(told.ino, item.next_cookie, name, &believed, &told, GENERATION) {
                        return Ok(false);
                    }
                    self.nodes.tell(objects, item.node, told.ino.0)?;
                    self.view.found(number.0, item.name, told.ino.0);
                    Ok(true)
                });
                told.unwrap_or_else(|error| {
                    outcome = Err(error);
                    false
                })
            })?;
            outcome
        })
    }
}
