//! A vector of places behind a lock, as slabs are; a place is never used again.
use std::sync::Mutex;

use commutant_adapter::{Arguments, Errno, Handle, Member};

type Slab = Mutex<Vec<Option<i64>>>;

fn insert(slab: &Slab, arguments: Arguments) -> Handle {
    let mut places = slab.lock().unwrap();
    places.push(Some(arguments.number(0)));
    Handle { sort: "Place", number: places.len() as i64 }
}

fn get(slab: &Slab, arguments: Arguments) -> Result<Member, Errno> {
    slab.lock().unwrap()[arguments.number(0) as usize - 1].map(Member).ok_or(Errno::ENOENT)
}

fn remove(slab: &Slab, arguments: Arguments) -> bool {
    slab.lock().unwrap()[arguments.number(0) as usize - 1].take().is_some()
}

commutant_adapter::library! { Slab: || Slab::new(Vec::with_capacity(gallery::ROOM));
"insert(value)" => insert, "get(place)" => get, "remove(place)" => remove }
