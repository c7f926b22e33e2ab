//! What is kept of an object, and the bytes that say it.

use posix_calls::{AttributeChange, Credentials, Kind, Permissions, Touched};
use transact::Made;

/// The number of the root.
pub(crate) const ROOT: u64 = 1;
/// Bytes of an object before its target.
const FIXED_BYTES: usize = 57;

/// An object, as its record has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// What it is.
    pub kind: Kind,
    /// Owner and permission bits.
    pub permissions: Permissions,
    /// Names that lead to it.
    pub links: u32,
    /// Of a file: its size.
    pub size_bytes: u64,
    /// Of a name for a device: the device.
    pub device: u64,
    /// Times of the last access, the last modification, and the last change, in nanoseconds since 1970.
    pub times_ns: [i64; 3],
    /// Of a symbolic link: what it leads to.
    pub target: Box<[u8]>,
}

impl Object {
    /// An object that was made at a moment, and has no name yet.
    pub(crate) fn made(made: &Made, moment_ns: i64) -> Object {
        let Made { kind, permissions, ref target, device } = *made;
        Object { kind, permissions, links: 0, size_bytes: 0, device, times_ns: [moment_ns; 3], target: target.clone() }
    }

    /// Moves times to a moment, unless they are later.
    pub(crate) fn touch(&mut self, touched: Touched, moment_ns: i64) {
        let [_, modified, changed] = &mut self.times_ns;
        *changed = moment_ns.max(*changed);
        if touched == Touched::Data {
            *modified = moment_ns.max(*modified);
        }
    }

    /// Changes permissions or times, as the superuser may: who made the call was asked for his rights then.
    pub(crate) fn change(&mut self, change: &AttributeChange) {
        match *change {
            AttributeChange::Permissions(change) => {
                let changed = change.of(&Credentials::SUPERUSER, self.kind, self.permissions);
                self.permissions = changed.unwrap_or(self.permissions);
            }
            AttributeChange::Times(_, (accessed, modified)) => {
                let [of_access, of_modification, _] = &mut self.times_ns;
                *of_access = accessed.unwrap_or(*of_access);
                *of_modification = modified.unwrap_or(*of_modification);
            }
        }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FIXED_BYTES + self.target.len());
        let Permissions { mode, user, group } = self.permissions;
        bytes.push(self.kind as u8);
        [mode, user, group, self.links].iter().for_each(|field| bytes.extend(field.to_le_bytes()));
        [self.size_bytes, self.device].iter().for_each(|field| bytes.extend(field.to_le_bytes()));
        self.times_ns.iter().for_each(|field| bytes.extend(field.to_le_bytes()));
        bytes.extend_from_slice(&self.target);
        bytes
    }

    /// Nothing, if no object has such bytes.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Object> {
        let (fixed, target) = bytes.split_at_checked(FIXED_BYTES)?;
        let (&kind, fixed) = fixed.split_first()?;
        let (small, large) = fixed.split_at(16);
        let small = |index: usize| Some(u32::from_le_bytes(small.get(4 * index..4 * index + 4)?.try_into().ok()?));
        let large = |index: usize| Some(u64::from_le_bytes(large.get(8 * index..8 * index + 8)?.try_into().ok()?));
        let object = Object {
            kind: Kind::from_number(kind),
            permissions: Permissions { mode: small(0)?, user: small(1)?, group: small(2)? },
            links: small(3)?,
            size_bytes: large(0)?,
            device: large(1)?,
            times_ns: [large(2)? as i64, large(3)? as i64, large(4)? as i64],
            target: target.into(),
        };
        let has_target = object.kind == Kind::Symlink;
        let is_kept = !matches!(object.kind, Kind::Pipe | Kind::Socket) && object.kind as u8 == kind;
        (is_kept && has_target != target.is_empty()).then_some(object)
    }
}

#[cfg(test)]
mod tests {
    use posix_calls::{Kind, Permissions};

    use super::Object;

    #[test]
    fn objects_are_their_bytes_and_no_others() {
        let file = Object {
            kind: Kind::Regular,
            permissions: Permissions { mode: 0o4751, user: 3, group: u32::MAX },
            links: 2,
            size_bytes: 1 << 62,
            device: 0,
            times_ns: [-1, 0, i64::MAX],
            target: Box::default(),
        };
        let link = Object { kind: Kind::Symlink, target: b"../there".as_slice().into(), ..file.clone() };
        for object in [file, link] {
            let bytes = object.to_bytes();
            assert_eq!(Object::from_bytes(&bytes).as_ref(), Some(&object));
            let all_but_target = bytes.len() - object.target.len();
            assert!((0..all_but_target).all(|length| Object::from_bytes(&bytes[..length]).is_none()));
        }
        assert_eq!(Object::from_bytes(&[5; 57]), None, "no kind has this number");
    }
}
