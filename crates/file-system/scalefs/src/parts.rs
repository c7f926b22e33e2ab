//! What the memory of an instance is called, for tools that look at it from outside.
//!
//! Objects lie in chunks of their kind (`percpu::ObjectKind`), of which the arena keeps a map; the tables that are made
//! with an instance are told of by their owners.
#![allow(unsafe_code)]

use address_space::{Mapping, SharedPage};
pub use percpu::Part;
use percpu::{Arena, ArenaObject, ArenaRoot, AttachError, Layout, ObjectKind};

use crate::instance::{self, ScaleFs};
use crate::process::{self, ProcessObject};
use crate::{annex, attribute_block, description, directory, family, file, inode, lock_list, lock_waits, pipe, socket};

/// The kinds of objects that have chunks of their own.
pub const OBJECT_KINDS: [&ObjectKind; 18] = [
    &hashdir::ENTRY,
    &hashdir::BUCKET,
    &hashdir::LONG_NAME,
    &radix::SLOT,
    &radix::INNER,
    &description::DESCRIPTION,
    &file::FILE,
    &annex::ANNEX,
    &pipe::PIPE,
    &socket::SOCKET_INODE,
    &sockets::ENDPOINT,
    &sockets::RING,
    &directory::DIRECTORY,
    &family::FAMILY,
    &process::PROCESS,
    &address_space::MAPPING,
    &address_space::SHARED_PAGE,
    &address_space::TABLE,
];

/// What tools call the root directory.
const ROOT: ObjectKind = ObjectKind { name: "root directory", ..directory::DIRECTORY };

/// Where everything is in an instance, in this build.
pub const LAYOUT: Layout = Layout::BUILD
    .and_type::<ScaleFs>()
    .and_layout(hashdir::LAYOUT)
    .and_layout(radix::LAYOUT)
    .and_layout(description::Description::LAYOUT)
    .and_layout(file::File::LAYOUT)
    .and_layout(annex::Annex::LAYOUT)
    .and_type::<attribute_block::Head>()
    .and_type::<lock_list::HeldLock>()
    .and_type::<lock_waits::LockWaits>()
    .and_layout(pipe::Pipe::LAYOUT)
    .and_layout(socket::SocketInode::LAYOUT)
    .and_layout(sockets::LAYOUT)
    .and_layout(directory::Directory::LAYOUT)
    .and_layout(family::Family::LAYOUT)
    .and_layout(ProcessObject::LAYOUT)
    .and_type::<inode::Symlink>()
    .and_layout(Mapping::LAYOUT)
    .and_layout(SharedPage::LAYOUT)
    .and_layout(address_space::TABLE_LAYOUT)
    .and_layout(refcache::SLOT.layout())
    .and_type::<refcache::Noted>()
    .and_layout(maxima::SLOT.layout())
    .and_type::<maxima::Maximum<2>>()
    .and_type::<pages::PagePool>()
    .and_type::<epoch::Retired>();

const ARRAY_OWNERS: [(&str, &str); 4] = [
    ("crates/file-system/address-space/", "an address space"),
    ("crates/file-system/scalefs/src/process", "a process's descriptors"),
    ("crates/file-system/scalefs/src/lives", "the table of processes"),
    ("crates/file-system/scalefs/src/file", "a file's pages"),
];
const PAGE_OWNERS: [(&str, &str); 4] = [
    ("crates/file-system/address-space/", "an address space"),
    ("crates/file-system/scalefs/src/file", "a file"),
    ("crates/file-system/scalefs/src/pipe", "a pipe"),
    ("crates/file-system/sockets/", "a socket"),
];

/// Whose the objects of that kind are, if several have such: told by how the path of the source begins that reaches one.
pub fn owners(kind: &ObjectKind) -> &'static [(&'static str, &'static str)] {
    match kind.name {
        name if name == radix::SLOT.name || name == radix::INNER.name => &ARRAY_OWNERS,
        name if name == pages::PAGE.name => &PAGE_OWNERS,
        _ => &[],
    }
}

// SAFETY: an instance is made for cores of several processes, and placed for good (`ScaleFs::create` alone makes one). The
// layout is of all that is reached from it, and no other type of root is made of the same parts.
unsafe impl ArenaRoot for ScaleFs {
    const LAYOUT: Layout = LAYOUT;
}

impl ScaleFs {
    /// The first instance that was made in an arena, by whichever process.
    ///
    /// # Errors
    /// [`AttachError::Empty`] if there is none, [`AttachError::OtherBuild`] if the process that made it runs a program that
    /// lays out an instance in another way.
    pub fn attach(arena: &Arena) -> Result<&ScaleFs, AttachError> {
        arena.root()
    }

    /// The tables that were made with the instance.
    pub fn tables(&self) -> impl Iterator<Item = Part> {
        let own = [
            Part::of(self, &instance::FILE_SYSTEM),
            Part { memory: self.own.memory(), kind: &instance::OWN },
            self.inodes.table(),
            self.decisions().table(),
            self.claims.table(),
            self.lock_waits().table(),
        ];
        let parts = own.into_iter().chain(self.epochs().tables()).chain(self.pages().tables());
        parts
            .chain(self.counts().tables())
            .chain(self.stamps().tables())
            .chain(self.directory_stamps().tables())
            .chain(self.sizes().tables())
    }

    /// Where the root directory lies: in memory of directories.
    pub fn root_directory(&self) -> Part {
        // SAFETY: the root is there as long as the instance is.
        Part::of(unsafe { self.root.as_ref() }, &ROOT)
    }
}

/// The list of what lies where that tools read:
///
/// ```text
/// kind <stride in bytes> <name>                 what the lines that follow speak of
/// field <offset in bytes> <name>
/// whose <beginning of paths> <owner>          objects that code of these sources reaches are this one's
/// memory <first address> <first address behind>       hexadecimal; objects lie at multiples of the stride
/// table <first address> <first address behind>        as well; objects lie one after the other from the start
/// ```
/// A kind is told again for each part of it.
#[cfg(feature = "std")]
pub fn listing(parts: impl IntoIterator<Item = Part>) -> std::string::String {
    use std::fmt::Write;

    let mut text = std::string::String::new();
    // Writing to a string does not fail.
    for Part { memory, kind } in parts {
        let _ = writeln!(text, "kind {} {}", kind.stride_bytes, kind.name);
        for (offset, name) in kind.fields {
            let _ = writeln!(text, "field {offset} {name}");
        }
        for (paths, owner) in owners(kind) {
            let _ = writeln!(text, "whose {paths} {owner}");
        }
        let what = if kind.number == 0 { "table" } else { "memory" };
        let _ = writeln!(text, "{what} {:x} {:x}", memory.start, memory.end);
    }
    text
}

/// The chunks of an arena whose kind is known so far, by address. A part never changes; later there may be more.
pub fn chunks(arena: &Arena) -> impl Iterator<Item = Part> {
    arena.kinds().filter_map(|(memory, number)| {
        let kind = OBJECT_KINDS.iter().find(|kind| kind.number == number)?;
        Some(Part { memory, kind })
    })
}
