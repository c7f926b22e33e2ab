//! The name of a shared line: what both cores touched.

use super::{Namer, ObjectName, Use, tables};
use crate::capture::ObjectCapture;

/// What one core touched of a shared line.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// The object at `address`.
    pub capture: &'a ObjectCapture,
    /// First byte touched.
    pub address: u64,
    /// Bytes touched.
    pub size_bytes: u64,
    /// The function that touched them ([`FunctionName::identity`](super::FunctionName)), empty where unknown.
    pub function: &'a str,
}

impl Side<'_> {
    fn used(&self) -> Use {
        if tables::is_slab_function(self.function) {
            Use::FreeObject
        } else if tables::is_deferring_function(self.function) {
            Use::Deferred
        } else {
            Use::Plain
        }
    }
}

/// Whether two cores touched common bytes or only a common line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Bytes overlap.
    True,
    /// They do not.
    False,
}

/// The name of what two cores share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairName {
    /// The object; both, joined by ` | `, where they differ.
    pub object: String,
    /// The field; both, joined by ` | `, with false sharing.
    pub field: String,
    /// Whether the bytes overlap.
    pub sharing: Sharing,
    /// Whether each side has a name (see [`ObjectName::known`]).
    pub known: bool,
}

impl Namer {
    /// Names what two cores share. The order of the sides does not matter: names are joined in alphabetical order, so that
    /// one conflict has one name whichever core came first.
    #[must_use]
    pub fn name_pair(&self, first: Side<'_>, second: Side<'_>) -> PairName {
        let start = first.address.max(second.address);
        let end = first.address.saturating_add(first.size_bytes).min(second.address.saturating_add(second.size_bytes));
        if start < end {
            // The common bytes; they lie in both objects, so either capture will do. The one that is further in begins at
            // the common bytes.
            let capture = if first.address >= second.address { first.capture } else { second.capture };
            // Where the two use the bytes for different things, what the object is for names them best.
            let used = if first.used() == second.used() { first.used() } else { Use::Plain };
            let name = self.name_used(capture, start, end - start, used);
            return PairName { object: name.object, field: name.field, sharing: Sharing::True, known: name.known };
        }
        let name = |side: Side<'_>| self.name_used(side.capture, side.address, side.size_bytes, side.used());
        let names = [first, second].map(name);
        let known = names.iter().all(|name| name.known);
        let [mut low, mut high] = names;
        if (&high.object, &high.full_field) < (&low.object, &low.full_field) {
            std::mem::swap(&mut low, &mut high);
        }
        let (object, field) = if low.object == high.object {
            (low.object.clone(), joined_fields(&low, &high))
        } else {
            (format!("{} | {}", qualified(&low), qualified(&high)), String::new())
        };
        PairName { object, field, sharing: Sharing::False, known }
    }
}

/// Two fields of one object: short where that tells them apart.
fn joined_fields(low: &ObjectName, high: &ObjectName) -> String {
    if low.field != high.field {
        let part = |name: &ObjectName| if name.field.is_empty() { &name.full_field } else { &name.field }.clone();
        return format!("{} | {}", part(low), part(high));
    }
    if low.full_field == high.full_field {
        low.field.clone()
    } else {
        format!("{} | {}", low.full_field, high.full_field)
    }
}

/// Object and field, for two different objects.
fn qualified(name: &ObjectName) -> String {
    if name.field.is_empty() { name.object.clone() } else { format!("{}.{}", name.object, name.field) }
}
