//! Planted sharing in Rust, each fault with a twin that differs in that alone; see canaries.c. A name that ends with * is a beginning.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicI64};
use std::sync::{Arc, Mutex, RwLock};

use commutant_adapter::Arguments;

#[derive(Default)]
#[repr(align(128))]
pub struct Padded<T>(T);

type Slots = [Padded<AtomicI64>; 2];

// FAULT locks_side_by_side: Locks.all[]*
#[derive(Default)]
#[repr(align(128))]
pub struct Locks {
    all: [Mutex<i64>; 4],
}

// FAULT fields_side_by_side: Fields.left | right
#[derive(Default)]
#[repr(C)]
pub struct Fields {
    left: AtomicI64,
    right: AtomicI64,
    rest: [i64; 6],
}

#[derive(Default)]
pub struct FieldsApart {
    left: Padded<AtomicI64>,
    right: Padded<AtomicI64>,
}

// FAULT arc_cloned: ArcInner<*
// FAULT vector_of_counters: AtomicI64[]
// FAULT statistics_counted: canaries::STATISTICS.0.hits
pub struct Statistics {
    hits: AtomicI64,
}
static STATISTICS: Padded<Statistics> = Padded(Statistics { hits: AtomicI64::new(0) });
static STATISTICS_OF_CORES: Slots = [const { Padded(AtomicI64::new(0)) }; 2];

// FAULT readers_take_a_lock: Guarded.value.inner.state
#[derive(Default)]
#[repr(align(128))]
pub struct Guarded {
    value: RwLock<i64>,
}

// FAULT count_of_elements: Bag.count
#[derive(Default)]
#[repr(C)]
pub struct Bag {
    elements: Slots,
    count: AtomicI64,
}

// FAULT entry_touched_on_get: (i64, canaries::Recent)[].1.used
#[derive(Default)]
pub struct Recent {
    used: AtomicI64,
}

// FAULT reads_write_a_flag: Session.is_used
#[derive(Default)]
#[repr(align(128))]
pub struct Session {
    is_used: AtomicBool,
}

// FAULT swap_that_fails: Gate.owner
#[derive(Default)]
#[repr(align(128))]
pub struct Gate {
    owner: AtomicI64,
}

// FAULT log_tail: Journal.tail
#[derive(Default)]
#[repr(C)]
pub struct Journal {
    entries: Slots,
    tail: AtomicI64,
}

// FAULT id_drawn: canaries::NEXT_ID.0
static NEXT_ID: Padded<AtomicI64> = Padded(AtomicI64::new(1));

// FAULT ring_indices: Ring.head | tail
#[derive(Default)]
#[repr(C, align(128))]
pub struct Ring {
    head: AtomicI64,
    tail: AtomicI64,
}

pub struct Canaries {
    fields: Box<Fields>,
    fields_apart: Box<FieldsApart>,
    document: Arc<[i64; 8]>,
    counters: Vec<AtomicI64>,
    counters_apart: Vec<Padded<AtomicI64>>,
    locks: Box<Locks>,
    locks_apart: Vec<Padded<Mutex<i64>>>,
    guarded: Box<Guarded>,
    bag: Box<Bag>,
    recent: HashMap<i64, Recent>,
    session: Box<Session>,
    gate: Box<Gate>,
    journal: Box<Journal>,
    ring: Box<Ring>,
    rings_apart: Box<FieldsApart>,
}

impl Canaries {
    fn new() -> Self {
        Self {
            fields: Box::default(),
            fields_apart: Box::default(),
            document: Arc::new([0; 8]),
            counters: (0..8).map(AtomicI64::new).collect(),
            counters_apart: (0..8).map(|number| Padded(AtomicI64::new(number))).collect(),
            locks: Box::default(),
            locks_apart: (0..4).map(|number| Padded(Mutex::new(number))).collect(),
            guarded: Box::default(),
            bag: Box::default(),
            recent: HashMap::from([(1, Recent::default())]),
            session: Box::default(),
            gate: Box::default(),
            journal: Box::default(),
            ring: Box::default(),
            rings_apart: Box::default(),
        }
    }
}

/// Calls that each do one thing on the core that is their argument.
macro_rules! canaries {
    ($($name:ident |$all:ident, $core:ident| $body:block)+) => {
        $(
            #[inline(never)]
            fn $name($all: &Canaries, arguments: Arguments) -> i64 {
                let $core = black_box(arguments.number(0) as usize);
                $body;
                0
            }
        )+
        commutant_adapter::library! { Canaries: Canaries::new; $(concat!(stringify!($name), "(core)") => $name),+ }
    };
}

canaries! {
    fields_side_by_side |all, core| {
        if core == 0 {
            all.fields.left.store(1, Relaxed); // at fields_side_by_side
        } else {
            all.fields.right.store(1, Relaxed); // at fields_side_by_side
        }
    }
    fields_side_by_side_twin |all, core| {
        if core == 0 { all.fields_apart.left.0.store(1, Relaxed) } else { all.fields_apart.right.0.store(1, Relaxed) }
    }
    arc_cloned |all, _core| {
        let own = black_box(Arc::clone(&all.document)); // at arc_cloned
        black_box(own[3]); // at arc_cloned
    } // at arc_cloned
    arc_cloned_twin |all, _core| { black_box(all.document[3]) }
    vector_of_counters |all, core| {
        all.counters[core].fetch_add(1, Relaxed) // at vector_of_counters
    }
    vector_of_counters_twin |all, core| { all.counters_apart[core].0.fetch_add(1, Relaxed) }
    locks_side_by_side |all, core| {
        *all.locks.all[core].lock().unwrap() += 1 // at locks_side_by_side
    }
    locks_side_by_side_twin |all, core| { *all.locks_apart[core].0.lock().unwrap() += 1 }
    statistics_counted |_all, _core| {
        STATISTICS.0.hits.fetch_add(1, Relaxed) // at statistics_counted
    }
    statistics_counted_twin |_all, core| { STATISTICS_OF_CORES[core].0.fetch_add(1, Relaxed) }
    readers_take_a_lock |all, _core| {
        black_box(*all.guarded.value.read().unwrap()); // at readers_take_a_lock
    }
    readers_take_a_lock_twin |all, _core| { black_box(&all.guarded.value) }
    count_of_elements |all, core| {
        all.bag.elements[core].0.store(1, Relaxed);
        all.bag.count.fetch_add(1, Relaxed) // at count_of_elements
    }
    count_of_elements_twin |all, core| { all.bag.elements[core].0.store(1, Relaxed) }
    entry_touched_on_get |all, core| {
        all.recent[&1].used.store(core as i64, Relaxed) // at entry_touched_on_get
    }
    entry_touched_on_get_twin |all, _core| { all.recent[&1].used.load(Relaxed) }
    reads_write_a_flag |all, _core| {
        all.session.is_used.store(true, Relaxed) // at reads_write_a_flag
    }
    reads_write_a_flag_twin |all, _core| { black_box(all.session.is_used.load(Relaxed)) }
    swap_that_fails |all, _core| {
        let _ = all.gate.owner.compare_exchange(7, 1, Relaxed, Relaxed); // at swap_that_fails
    }
    swap_that_fails_twin |all, _core| { black_box(all.gate.owner.load(Relaxed) == 7) }
    log_tail |all, core| {
        let place = all.journal.tail.fetch_add(1, Relaxed) >> 40; // at log_tail
        all.journal.entries[place as usize + core].0.store(1, Relaxed)
    }
    log_tail_twin |all, core| { all.journal.entries[core].0.store(1, Relaxed) }
    id_drawn |_all, _core| {
        NEXT_ID.0.fetch_add(1, Relaxed) // at id_drawn
    }
    id_drawn_twin |_all, core| { STATISTICS_OF_CORES[core].0.fetch_add(2, Relaxed) }
    ring_indices |all, core| {
        if core == 0 {
            all.ring.head.fetch_add(1, Relaxed); // at ring_indices
        } else {
            all.ring.tail.store(1, Relaxed) // at ring_indices
        }
    }
    ring_indices_twin |all, core| {
        if core == 0 { all.rings_apart.left.0.fetch_add(1, Relaxed) } else { all.rings_apart.right.0.fetch_add(1, Relaxed) }
    }
}
