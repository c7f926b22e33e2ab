//! What a transaction will do, as data: its commit does it, a [`Journal`](crate::Journal) keeps it, and whoever merges
//! compares it.
//!
//! Objects are named by their numbers, which no other object ever gets, and names by their directory. So a file that was
//! renamed and then written is one object with one name fewer and one more, whatever becomes of the directories above.

use posix_calls::{AttributeChange, InodeNumber, Touched};

use crate::file::OwnData;
use crate::layer::Layer;
use crate::name::Name;
use crate::own::Made;

/// All that a transaction changes, up to now. It happens at one moment; where the order matters, it is that of the fields of
/// [`ObjectChange`], after all names.
#[derive(Debug)]
pub struct Changes<'t> {
    pub(crate) layer: &'t Layer,
    pub(crate) moment_ns: Option<u64>,
}

/// What becomes of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameBecomes<'t> {
    /// The directory of the name.
    pub directory: InodeNumber,
    /// The name.
    pub name: &'t Name,
    /// What it led to before the transaction.
    pub before: Option<InodeNumber>,
    /// What it leads to after it.
    pub after: Option<InodeNumber>,
}

/// What becomes of an object, other than of its names.
#[derive(Clone, Copy, Debug)]
pub struct ObjectChange<'t> {
    /// The object.
    pub number: InodeNumber,
    /// How it was made, if the transaction has made it.
    pub made: Option<&'t Made>,
    /// What becomes of its data.
    pub data: DataBecomes<'t>,
    /// Which of its times become [`Changes::moment_ns`], unless they are later. Of an object that was made, all do.
    pub touched: Option<Touched>,
    /// What becomes of permissions and times, one after the other.
    pub attributes: &'t [AttributeChange],
}

/// What becomes of a file's data, in this order: it is cut, written, and made as long as it is to be.
#[derive(Clone, Copy, Debug)]
pub struct DataBecomes<'t>(pub(crate) &'t OwnData);

impl<'t> Changes<'t> {
    /// When it happens, as times tell it: nanoseconds since 1970. Nothing, if neither a call has asked nor a commit begun.
    pub fn moment_ns(&self) -> Option<u64> {
        self.moment_ns
    }

    /// The moment of a commit that has begun.
    pub(crate) fn moment(&self) -> u64 {
        self.moment_ns.expect("a commit has a moment")
    }

    /// The names that change, in the order in which they did first.
    pub fn names(&self) -> impl Iterator<Item = NameBecomes<'t>> + use<'t> {
        let changed = self.layer.names().filter(|(_, _, own)| own.before != own.leads_to);
        changed.map(|(directory, name, own)| NameBecomes { directory, name, before: own.before, after: own.leads_to })
    }

    /// The objects that change, in the order in which they did first.
    pub fn objects(&self) -> impl Iterator<Item = ObjectChange<'t>> + use<'t> {
        self.layer.objects().map(|(number, own)| ObjectChange {
            number,
            made: own.made.as_ref(),
            data: DataBecomes(&own.data),
            touched: own.touched(),
            attributes: &own.attributes,
        })
    }
}

impl<'t> DataBecomes<'t> {
    /// Whether it is another one.
    pub fn is_changed(&self) -> bool {
        self.0.is_changed()
    }

    /// The file is cut to this size first, if it is longer.
    pub fn cut_to(&self) -> Option<u64> {
        self.0.cut_to
    }

    /// Bytes that are written, by offset, none twice.
    pub fn writes(&self) -> impl Iterator<Item = (u64, &'t [u8])> + use<'t> {
        self.0.writes()
    }

    /// The size that it gets in the end; of others, the end of what is written last, if that is more.
    pub fn size_bytes(&self) -> Option<u64> {
        self.0.exact_size()
    }
}
