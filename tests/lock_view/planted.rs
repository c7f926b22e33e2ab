//! The pattern of planted.c under Rust's mutex: `planted PERCENT`.

use std::hint::black_box;
use std::sync::{Barrier, Mutex};

const THREADS: usize = 3;
const ROUNDS: usize = 600;

#[repr(align(64))]
struct Place(u64);

struct Places {
    own: [Place; THREADS],
    common: Place,
}

static PLANTED_MUTEX: Mutex<Places> =
    Mutex::new(Places { own: [const { Place(0) }; THREADS], common: Place(0) });

fn main() {
    let percent: usize = std::env::args().nth(1).and_then(|text| text.parse().ok()).expect("a number");
    let ready = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for own in 0..THREADS {
            let ready = &ready;
            scope.spawn(move || {
                ready.wait();
                for round in 0..ROUNDS {
                    let mut places = PLANTED_MUTEX.lock().expect("no thread panics");
                    let place = if round * 37 % 100 < percent { &mut places.own[own] } else { &mut places.common };
                    place.0 = black_box(place.0 + 1);
                }
            });
        }
    });
}
