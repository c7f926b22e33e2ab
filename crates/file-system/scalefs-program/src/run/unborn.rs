//! Seats whose processes never say that they are there: whoever has taken a seat for a child has died before the child was made, or the
//! child has died before its first call.
//!
//! A child says its number first of all. One that has lost its parent is a child of the supervisor, if that has not been followed by
//! another. So a seat is lost whose taker has died, where no such child is.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

use shared_instance::{Seat, SharedInstance};

/// So long is waited for a child that is no one's here.
const PATIENCE: Duration = Duration::from_secs(5);

/// Seats without a process, and since when their takers have been dead.
#[derive(Default)]
pub(super) struct Unborn(HashMap<(usize, u64), Instant>);

impl Unborn {
    /// Whether no one will ever sit on a seat that was taken.
    pub(super) fn is_lost(&mut self, instance: &SharedInstance, (number, seat): (usize, &Seat)) -> bool {
        let Some(owner) = seat.owner() else { return false };
        let seats = instance.control().seats.all();
        if seat.taker().is_some_and(|taker| seats.iter().any(|seat| seat.owner() == Some(taker))) {
            return false;
        }
        let since = *self.0.entry((number, owner.number())).or_insert_with(Instant::now);
        // The taker was seen to be dead before: so its children have come to us.
        let is_lost = !has_unknown_child(seats) || since.elapsed() > PATIENCE;
        if is_lost {
            self.0.remove(&(number, owner.number()));
        }
        // It may have said so just now.
        is_lost && seat.process().is_none()
    }
}

/// Whether some child of this process has no seat. The heir is one, and who looks at the tree; they have programs of their own.
fn has_unknown_child(seats: &[Seat]) -> bool {
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return true };
    let list_of = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children")).ok();
    let lists: Vec<String> = threads.filter_map(|thread| list_of(thread.ok()?)).collect();
    if lists.is_empty() {
        return true;
    }
    let mut children = lists.iter().flat_map(|list| list.split_whitespace()).filter_map(|number| number.parse().ok());
    let has_seat = |child: &i32| seats.iter().any(|seat| seat.process() == Some(*child));
    children.any(|child| !has_seat(&child) && runs(child))
}

/// Whether a process has not ended, and runs another program than this one.
fn runs(process: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let has_ended =
        status.rsplit(')').next().is_none_or(|rest| matches!(rest.split_whitespace().next(), None | Some("Z" | "X")));
    let program = |process: &str| fs::read_link(format!("/proc/{process}/exe")).ok();
    !has_ended && program(&process.to_string()) != program("self")
}
