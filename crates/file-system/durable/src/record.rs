//! What a transaction has done, as it waits for the disk.

use posix_calls::{AttributeChange, InodeNumber, Touched};
use transact::{Changes, Made};

/// All changes of one transaction, copied out of it.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) moment_ns: i64,
    pub(crate) names: Vec<NameRecord>,
    pub(crate) objects: Vec<ObjectRecord>,
    /// Of all it has, for who bounds what waits.
    pub(crate) size_bytes: usize,
}

#[derive(Debug)]
pub(crate) struct NameRecord {
    pub(crate) directory: InodeNumber,
    pub(crate) name: Box<[u8]>,
    pub(crate) before: Option<InodeNumber>,
    pub(crate) after: Option<InodeNumber>,
}

#[derive(Debug)]
pub(crate) struct ObjectRecord {
    pub(crate) number: InodeNumber,
    pub(crate) made: Option<Made>,
    pub(crate) cut_to: Option<u64>,
    pub(crate) writes: Vec<(u64, Box<[u8]>)>,
    pub(crate) size_bytes: Option<u64>,
    pub(crate) touched: Option<Touched>,
    pub(crate) attributes: Vec<AttributeChange>,
}

impl Record {
    pub(crate) fn of(changes: &Changes<'_>) -> Record {
        let mut record = Record { moment_ns: changes.moment_ns().unwrap_or(0) as i64, ..Record::default() };
        for changed in changes.names() {
            record.size_bytes += size_of::<NameRecord>() + changed.name.len();
            record.names.push(NameRecord {
                directory: changed.directory,
                name: changed.name[..].into(),
                before: changed.before,
                after: changed.after,
            });
        }
        for changed in changes.objects() {
            let writes: Vec<(u64, Box<[u8]>)> =
                changed.data.writes().map(|(offset, bytes)| (offset, bytes.into())).collect();
            record.size_bytes += size_of::<ObjectRecord>() + size_of_val(changed.attributes) + size_of_val(&writes[..]);
            record.size_bytes += writes.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
            record.objects.push(ObjectRecord {
                number: changed.number,
                made: changed.made.cloned(),
                cut_to: changed.data.cut_to(),
                writes,
                size_bytes: changed.data.size_bytes(),
                touched: changed.touched,
                attributes: changed.attributes.to_vec(),
            });
        }
        record
    }

    /// Whether it changes nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty() && self.objects.is_empty()
    }
}
