//! An instance in memory, made again from its records.

use std::collections::{BTreeMap, HashMap};
use std::io;

use posix_calls::attributes::{self, NewTime};
use posix_calls::{
    DataOperations, Errno, InodeNumber, Kind, NewObject, ObjectOperations, OperationError, PermissionChange, WriteAt,
};
use posix_calls::{Start, handles};
use scalefs::{FileSystem, InProcess, OpenNode, Outside};

use crate::error::OpenError;
use crate::image::Image;
use crate::object::{Object, ROOT};
use crate::page_file::PAGE;
use crate::store::Store;

type Call<'c> = InProcess<'c, Outside>;

/// Gives an empty file system all that the records have; says which object has which number there.
///
/// # Errors
/// The memory is too small, or a page is not what was written.
pub(crate) fn rebuild(
    files: &FileSystem,
    store: &Store,
    image: &Image,
) -> Result<HashMap<InodeNumber, u64>, OpenError> {
    let mut kept: BTreeMap<u64, OpenNode> = BTreeMap::new();
    kept.insert(ROOT, files.act(|call| Ok(call.objects().retain(call.objects().root())?)).map_err(full)?);
    let mut open = vec![ROOT];
    while let Some(directory) = open.pop() {
        for (name, number) in image.names_of(directory) {
            let (object, directory) = (&image.objects[&number], &kept[&directory]);
            if let Some(known) = kept.get(&number) {
                files.act(|call| link(&call, known, (directory, name))).map_err(full)?;
                continue;
            }
            let made = files.act(|call| make(&call, object, (directory, name))).map_err(full)?;
            match object.kind {
                Kind::Regular => fill(files, (store, image), number, &made)?,
                Kind::Directory => open.push(number),
                _ => {}
            }
            kept.insert(number, made);
        }
    }
    let mut numbers = HashMap::new();
    for (number, node) in kept {
        // Only now: names that come into a directory are changes of it.
        let known = files.act(|call| finish(&call, &image.objects[&number], &node)).map_err(full)?;
        numbers.insert(known, number);
        release(files, node).map_err(full)?;
    }
    Ok(numbers)
}

/// Memory that does not hold all there is, or something else that was refused.
fn full(error: io::Error) -> OpenError {
    match error.raw_os_error() {
        Some(number) if number == Errno::ENOSPC.number() || number == Errno::ENOMEM.number() => {
            OpenError::TooSmall(error)
        }
        _ => OpenError::System { action: "make the instance in memory".into(), error },
    }
}

fn refused<F: Into<Errno>>(refusal: OperationError<F>) -> Errno {
    match refusal {
        OperationError::NoSpace => Errno::ENOSPC,
        OperationError::Exists => Errno::EEXIST,
        OperationError::NotEmpty => Errno::ENOTEMPTY,
        OperationError::Changed | OperationError::Dead => Errno::ENOENT,
        OperationError::Fault(fault) => fault.into(),
    }
}

/// Makes an object with its first name, and keeps it.
fn make(call: &Call<'_>, object: &Object, (directory, name): (&OpenNode, &[u8])) -> Result<OpenNode, Errno> {
    let objects = call.objects();
    let key = objects.key(name).ok_or(Errno::ENAMETOOLONG)?;
    let new = match object.kind {
        Kind::Regular => NewObject::File,
        Kind::Directory => NewObject::Directory,
        Kind::Symlink => NewObject::Symlink(&object.target),
        kind => NewObject::Outside(kind, object.device),
    };
    let node = objects.create(objects.held(directory), &key, new, object.permissions).map_err(refused)?;
    Ok(objects.retain(node)?)
}

/// Gives an object another name.
fn link(call: &Call<'_>, known: &OpenNode, (directory, name): (&OpenNode, &[u8])) -> Result<(), Errno> {
    let objects = call.objects();
    handles::link_object(objects, objects.held(known), (Start::Handle(objects.held(directory)), name))
}

/// Gives a file its bytes.
fn fill(files: &FileSystem, (store, image): (&Store, &Image), number: u64, node: &OpenNode) -> Result<(), OpenError> {
    for ((_, index), content) in image.pages.range((number, 0)..=(number, u64::MAX)) {
        let read = store.page(content).map_err(OpenError::system("read the page file"))?;
        let bytes =
            read.ok_or_else(|| OpenError::damaged(format!("page {index} of object {number} is another one")))?;
        let write = |call: Call<'_>| {
            let written = call.write_range(call.objects().held(node), WriteAt::Offset(index * PAGE as u64), &bytes)?;
            if written.length == PAGE { Ok(()) } else { Err(Errno::ENOSPC) }
        };
        files.act(write).map_err(full)?;
    }
    let size_bytes = image.objects[&number].size_bytes;
    files.act(|call| call.resize(call.objects().held(node), size_bytes).map_err(refused)).map_err(full)
}

/// Gives an object what else its record has, and says which number it has in memory.
fn finish(call: &Call<'_>, object: &Object, node: &OpenNode) -> Result<InodeNumber, Errno> {
    let objects = call.objects();
    let node = objects.held(node);
    if node == objects.root() {
        let (user, group) = (Some(object.permissions.user), Some(object.permissions.group));
        objects.change_permissions(node, PermissionChange::Owner { user, group })?;
        objects.change_permissions(node, PermissionChange::Mode(object.permissions.mode))?;
    }
    let [accessed, modified, _] = object.times_ns.map(NewTime::At);
    attributes::set_times_of(objects, node, (accessed, modified))?;
    Ok(objects.number(node)?)
}

fn release(files: &FileSystem, node: OpenNode) -> io::Result<()> {
    let mut node = Some(node);
    files.act(|call| {
        node.take().into_iter().for_each(|node| call.objects().release(node));
        Ok(())
    })
}
