//! What a transaction has seen that is not so any more, so that it can be said why it did not happen.

use alloc::boxed::Box;

use posix_calls::InodeNumber;

use crate::question::{About, AboutData, Question};

/// Something that a transaction has seen, and that others have changed since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The object of which it was asked; of what belongs to the process, the root.
    pub object: InodeNumber,
    /// What was asked.
    pub about: Subject,
}

/// What can be asked of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// What a name in this directory leads to, or whether it is there.
    Name(Box<[u8]>),
    /// Which names this directory has.
    Names,
    /// Where this directory is, or whether it is there.
    Place,
    /// The bytes of this file, or where it ends; or what waits in this pipe.
    Data,
    /// Owner, group, mode, or what follows from them.
    Permissions,
    /// Size, times, or how many names it has.
    Status,
    /// What belongs to the process: descriptors, offsets, where it works.
    Process,
}

impl Conflict {
    pub(crate) fn of(Question { subject, about }: &Question) -> Conflict {
        let about = match about {
            About::LeadsTo(name) | About::Existence(name) | About::Exists(name) => Subject::Name(name[..].into()),
            About::Next(_) | About::HasBeside(_) => Subject::Names,
            About::Parent | About::IsUnder(_) | About::IsRemoved => Subject::Place,
            About::Permissions(..) => Subject::Permissions,
            About::LinkCount | About::SizeBytes | About::AccessedNs | About::ChangedNs => Subject::Status,
            About::WorkingDirectory => Subject::Process,
            About::Data(about) => match about {
                AboutData::Bytes(..)
                | AboutData::EndsAt(_)
                | AboutData::IsShorterThan(_)
                | AboutData::PipeBytes(_)
                | AboutData::PipeRoom(_)
                | AboutData::PipeIsAlone(_) => Subject::Data,
                AboutData::Descriptor(_)
                | AboutData::MayServe(..)
                | AboutData::Offset(_)
                | AboutData::Reaches(..)
                | AboutData::Status(_) => Subject::Process,
            },
        };
        Conflict { object: *subject, about }
    }
}
