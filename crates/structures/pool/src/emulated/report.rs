//! What the checker says: one line a fault, with the seed that shows it again.

use core::fmt;
use core::panic::Location;

use crate::line::LINE_BYTES;

/// A place in the source of the memory's user.
pub type Place = &'static Location<'static>;

/// What was done wrong with a line.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// It is read, and its writer has not written it back.
    MissingWriteBack,
    /// It is read, and its writer wrote it back before it wrote it the last time.
    EarlyWriteBack,
    /// It is read, and its writer has begun to write it back and not waited for the end.
    MissingDrain,
    /// It is read, and its write-back ended after the message that the reader relies on.
    LateWriteBack,
    /// It is read without being invalidated.
    MissingInvalidate,
    /// It is read, and was invalidated before the message arrived.
    EarlyInvalidate,
    /// It is invalidated by a domain that has written it and not written it back.
    InvalidatedWhileDirty,
    /// Two domains write it, and no message orders them.
    TwoWriters,
    /// One domain reads it and another writes it, no message orders them, and it is not declared.
    Race,
    /// A domain waits for others, and a line that they may read at any time has not reached memory.
    LeftUnwritten,
    /// It is overwritten before its reader has taken what was there.
    OverwrittenUnread,
    /// A mixture of versions is taken for whole.
    TornAccepted,
    /// Another version is taken than the one that is there, or one that was taken before.
    OtherVersionAccepted,
    /// It is written back with nothing to write.
    NeedlessWriteBack,
    /// It is invalidated, and no other domain has written it since the last time.
    NeedlessInvalidate,
}

impl Kind {
    /// Whether it costs time alone, and no value.
    pub fn is_waste(self) -> bool {
        matches!(self, Kind::NeedlessWriteBack | Kind::NeedlessInvalidate)
    }

    /// A word for it, for tests and for C.
    pub fn name(self) -> &'static str {
        match self {
            Kind::MissingWriteBack => "missing write-back",
            Kind::EarlyWriteBack => "early write-back",
            Kind::MissingDrain => "missing drain",
            Kind::LateWriteBack => "late write-back",
            Kind::MissingInvalidate => "missing invalidate",
            Kind::EarlyInvalidate => "early invalidate",
            Kind::InvalidatedWhileDirty => "invalidated while dirty",
            Kind::TwoWriters => "two writers",
            Kind::Race => "undeclared race",
            Kind::LeftUnwritten => "left unwritten",
            Kind::OverwrittenUnread => "overwritten unread",
            Kind::TornAccepted => "torn line accepted",
            Kind::OtherVersionAccepted => "other version accepted",
            Kind::NeedlessWriteBack => "needless write-back",
            Kind::NeedlessInvalidate => "needless invalidate",
        }
    }
}

/// One fault; the same one again only raises its count.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was done wrong.
    pub kind: Kind,
    /// Seed of the adversary.
    pub seed: u64,
    /// Step of the run at which it was first found.
    pub step: u64,
    /// Number of the domain that did the last access.
    pub domain: usize,
    /// Its line.
    pub line: usize,
    /// The access, where it is known.
    pub place: Option<Place>,
    /// The other domain, and where it wrote or read the line last.
    pub other: Option<(usize, Option<Place>)>,
    /// How often it was found.
    pub count: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: line at {}, domain {}", self.kind.name(), self.line * LINE_BYTES, self.domain)?;
        if let Some(place) = self.place {
            write!(f, " at {}:{}", place.file(), place.line())?;
        }
        if let Some((other, place)) = self.other {
            write!(f, ", domain {other}")?;
            if let Some(place) = place {
                write!(f, " at {}:{}", place.file(), place.line())?;
            }
        }
        write!(f, " (seed {}, step {}", self.seed, self.step)?;
        if self.count > 1 {
            write!(f, ", {} times", self.count)?;
        }
        f.write_str(")")
    }
}
