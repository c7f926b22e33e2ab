//! sharded-slab: a slab with a part for each thread.
use commutant_adapter::{Arguments, Errno, Handle, Member};
use sharded_slab::Slab;

fn insert(slab: &Slab<i64>, arguments: Arguments) -> Handle {
    let place = slab.insert(arguments.number(0)).expect("there is room");
    Handle { sort: "Place", number: place as i64 }
}

fn get(slab: &Slab<i64>, arguments: Arguments) -> Result<Member, Errno> {
    slab.get(arguments.number(0) as usize).map(|entry| Member(*entry)).ok_or(Errno::ENOENT)
}

fn remove(slab: &Slab<i64>, arguments: Arguments) -> bool {
    slab.remove(arguments.number(0) as usize)
}

commutant_adapter::library! { Slab<i64>: Slab::new;
"insert(value)" => insert, "get(place)" => get, "remove(place)" => remove }
