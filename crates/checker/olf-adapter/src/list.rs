//! The interface `lists-ends` on doubly linked lists of `olf`.

use commutant_adapter::{Arguments, Errno, Handle};
use olf::{Arc, List, ListLink, links};

use crate::things::{domain, here};

/// An item, which knows its handle.
struct Entry {
    handle: std::sync::OnceLock<i64>,
    link: ListLink,
}

links! {
    /// Entries by their link.
    ByLink: Entry { list: link }
}

type Lists = [List<'static, ByLink>; 2];

/// Keeps a count of an item for good, since its handle may be asked for after it was taken out.
fn keep(item: &Arc<'static, Entry>) -> Handle {
    let number = std::ptr::from_ref(Box::leak(Box::new(item.clone()))) as i64;
    item.handle.set(number).expect("a new item");
    handle(item)
}

fn handle(item: &Entry) -> Handle {
    Handle { sort: "Item", number: *item.handle.get().expect("an item with a handle") }
}

fn kept(arguments: Arguments, place: usize) -> &'static Arc<'static, Entry> {
    // SAFETY: the number is one of `keep`, whose memory is never freed.
    unsafe { &*(arguments.number(place) as *const Arc<'static, Entry>) }
}

fn list<'l>(lists: &'l Lists, arguments: Arguments<'_>) -> &'l List<'static, ByLink> {
    &lists[usize::from(arguments.truth(0))]
}

fn push(lists: &Lists, arguments: Arguments) -> Handle {
    let item = Arc::new(domain(), Entry { handle: std::sync::OnceLock::new(), link: ListLink::new() });
    let handle = keep(&item);
    let (list, front) = (list(lists, arguments), arguments.truth(1));
    here(|here| if front { list.push_front(here, item) } else { list.push_back(here, item) }).expect("a new item");
    handle
}

fn pop(lists: &Lists, arguments: Arguments) -> Result<Handle, Errno> {
    let (list, front) = (list(lists, arguments), arguments.truth(1));
    here(|here| {
        let item = if front { list.pop_front(here) } else { list.pop_back(here) }.ok_or(Errno::EAGAIN)?;
        let handle = handle(&item);
        item.end(here);
        Ok(handle)
    })
}

fn look(lists: &Lists, arguments: Arguments) -> Result<Handle, Errno> {
    let (list, front) = (list(lists, arguments), arguments.truth(1));
    here(|here| {
        let guard = here.pin();
        let item = if front { list.front(&guard) } else { list.back(&guard) };
        item.map(|item| handle(&item)).ok_or(Errno::EAGAIN)
    })
}

fn take(lists: &Lists, arguments: Arguments) -> bool {
    here(|here| list(lists, arguments).remove(here, kept(arguments, 1)).map(|item| item.end(here)).is_some())
}

fn pass_on(lists: &Lists, arguments: Arguments) -> bool {
    let (from, to) = (list(lists, arguments), &lists[usize::from(!arguments.truth(0))]);
    let (item, front) = (kept(arguments, 1), arguments.truth(2));
    here(|here| if front { from.move_to_front(to, here, item) } else { from.move_to_back(to, here, item) }.is_ok())
}

fn reset(lists: &Lists) {
    here(|here| lists.iter().for_each(|list| while list.pop_front(here).map(|item| item.end(here)).is_some() {}));
}

fn settle(_: &Lists) {
    here(|here| (0..crate::things::SETTLED).for_each(|_| _ = here.maintain()));
}

fn make() -> Lists {
    [0, 1].map(|_| List::new(domain()).expect("a number for a list"))
}

commutant_adapter::library! { commutant_adapter_list => Lists: make, reset = reset, settle = settle;
    "push(second, front)" => push,
    "pop(second, front)" => pop,
    "look(second, front)" => look,
    "take(second, item)" => take,
    "pass_on(second, item, front)" => pass_on,
}
