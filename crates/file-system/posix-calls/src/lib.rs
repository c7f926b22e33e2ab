//! POSIX's rules for files, directories, descriptors and pipes, over any implementation of operations on objects.
//!
//! **Calls above, objects below.** The call layer ([`names`], [`directories`], [`attributes`], [`data`], [`locks`], [`allocation`], [`extended`], [`sockets`], [`memory`], [`processes`]) holds the rules:
//! which checks, in which order, with which errno. It reaches objects only through [`ObjectOperations`] and
//! [`DataOperations`], each operation on one object (or a compound one, with its steps written beside it). What runs the
//! operations is chosen by type, so that a call costs nothing for it.
//!
//! ```text
//! open link unlink rename ...     names.rs       ┐
//! mkdir rmdir readdir chdir ...   directories.rs │ rules, errno, order of checks, paths (walk.rs), rights (rights.rs)
//! stat access chmod chown ...     attributes.rs  │
//! read write lseek dup pipe ...   data.rs        │     the same by path: path_data.rs
//! O_PATH O_TMPFILE linkat by handle  handles.rs  │
//! fcntl(F_SETLK) flock            locks.rs       │
//! fallocate                       allocation.rs  │
//! getxattr setxattr listxattr ... extended.rs    │
//! socketpair bind send receive    sockets.rs     │
//! mmap munmap mprotect            memory.rs      │
//! posix_spawn wait                processes.rs   ┘
//!        │ ObjectOperations       object_operations.rs     every operation may fail: fault.rs
//!        │ DataOperations         data_operations.rs
//!        │ LockOperations         lock_operations.rs
//!        │ AllocationOperations, ExtendedOperations    where their calls are
//!        │ MemoryOperations       memory_operations.rs
//!        │ ProcessOperations      process_operations.rs
//!        │ NameChanges            name_changes.rs          many names at one moment: for transactions
//!        │ DataChanges            data_changes.rs          and data
//! objects in shared memory (crate `scalefs`), in ordinary maps (crate `plain`), ...
//! ```
//!
//! **What an implementation may rely on**: one value of the traits' types is one call of one process; a fault ends the call;
//! an operation takes data, never code that runs under a lock. **What it must give**: each operation is one step for all
//! others, and the rechecks ([`ObjectOperations::still_same`] and its like) answer for all the time since the first look.
//!
//! No memory is allocated here, and no clock, scheduler or thread is known.
#![warn(clippy::missing_errors_doc)]
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "std")]
extern crate std;

pub mod allocation;
pub mod attributes;
mod credentials;
pub mod data;
mod data_changes;
mod data_operations;
mod descriptors;
pub mod directories;
mod errno;
pub mod extended;
mod fault;
mod fields;
pub mod handles;
mod kind;
mod lock_operations;
pub mod locks;
pub mod memory;
mod memory_operations;
mod name_changes;
pub mod names;
mod object_operations;
pub mod path_data;
mod process;
mod process_operations;
pub mod processes;
mod rights;
mod socket;
pub mod sockets;
mod walk;

pub use credentials::{Credentials, MAX_GROUPS};
pub use data_changes::{DataChanges, FileChanges, PAGE_BYTES, PreparedOf, ReservedPages, WriteChange};
pub use data_operations::{AnswerOf, Calls, DataOperations, FaultOf, HandleOf, NodeOf, PipeState, WriteAt, Written};
pub use descriptors::{
    AccessMode, DESCRIPTOR_LIMIT, Extent, NumberChoice, Offset, OnExec, PipeEnd, Sought, StatusFlags, Use, Whence,
};
pub use errno::Errno;
pub use fault::{Failed, OperationError};
pub use fields::{Attributes, Fields};
pub use kind::{InodeNumber, Kind, Permissions, SET_GROUP, SET_USER, STICKY};
pub use lock_operations::{
    ForeignLock, LockKind, LockMode, LockOperations, LockRange, LockRefusal, LockRequest, LockWait, Patience,
};
pub use memory_operations::{AccessError, Growth, MemoryOperations, Place, Protection, SPACE_PAGES, Sharing, Source};
pub use name_changes::{
    AttributeChange, AttributeChanges, Claim, Claimed, Decision, Moment, NameChange, NameChanges, Precedence, Stance,
    Touched, Urgency,
};
pub use names::{OpenFlags, Opened};
pub use object_operations::{
    Answer, Existence, Item, NamedNode, NewObject, ObjectOperations, Outcome, ParentLink, Space, TargetName,
};
pub use process::{Ended, FileAction, Inherited, ProcessNumber, SpawnOptions, Which};
pub use process_operations::{ChildState, ProcessOperations};
pub use rights::{Need, PermissionChange, TimesRight};
pub use socket::{MAX_MESSAGE_BYTES, MAX_SOCKET_NAME_BYTES, Received, SocketName, SocketOrder, SocketState};
pub use walk::{Follow, MAX_PATH_BYTES, Start};
