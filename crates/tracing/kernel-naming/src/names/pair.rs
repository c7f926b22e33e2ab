//! The name of a shared line: what both cores touched.

use super::usage::Use;
use super::{Namer, ObjectName};
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
        Use::of(self.function)
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
    /// The field; both, joined by ` | `, with false sharing, and by ` / ` where the two use common bytes for different
    /// things.
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
            let name = |used| self.name_used(capture, start, end - start, used);
            let name = match [first.used(), second.used()] {
                [one, other] if one == other => name(one),
                [Use::Unknown, known] | [known, Use::Unknown] => name(known),
                // A free object is called by its cache; who uses it knows better what it is.
                [Use::FreeObject, other] | [other, Use::FreeObject] => {
                    used_for_both(name(other), name(Use::FreeObject))
                }
                [one, other] => {
                    let names = [name(one), name(other)];
                    let [low, high] = sorted(names);
                    used_for_both(low, high)
                }
            };
            return PairName { object: name.object, field: name.field, sharing: Sharing::True, known: name.known };
        }
        let name = |side: Side<'_>| self.name_used(side.capture, side.address, side.size_bytes, side.used());
        let names = [first, second].map(name);
        let known = names.iter().all(|name| name.known);
        let [low, high] = sorted(names);
        // A variable without fields has none to set next to the other's.
        let whole = low.field.is_empty() && low.full_field.is_empty() && !high.full_field.is_empty();
        let (object, field) = if low.object == high.object && whole {
            (format!("{} | {}{}", low.object, high.object, high.full_field), String::new())
        } else if low.object == high.object {
            (low.object.clone(), joined_fields(&low, &high))
        } else {
            (format!("{} | {}", qualified(&low), qualified(&high)), String::new())
        };
        PairName { object, field, sharing: Sharing::False, known }
    }
}

fn sorted([low, high]: [ObjectName; 2]) -> [ObjectName; 2] {
    if (&high.object, &high.full_field) < (&low.object, &low.full_field) { [high, low] } else { [low, high] }
}

/// Common bytes that one side uses for something else than the other.
fn used_for_both(one: ObjectName, other: ObjectName) -> ObjectName {
    let known = one.known && other.known;
    if (&one.object, &one.field) == (&other.object, &other.field) {
        return ObjectName { known, ..one };
    }
    // Fields of two structures may have one name and be two things: the slots of a tree's node, and of one that is spare.
    if one.object == other.object || (other.field == super::tables::FREE_LIST_LINK && !one.field.is_empty()) {
        let field = format!("{} / {}", one.field, other.field);
        return ObjectName { object: one.object, full_field: field.clone(), field, known };
    }
    let object = format!("{} / {}", qualified(&one), qualified(&other));
    ObjectName { object, field: String::new(), full_field: String::new(), known }
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
