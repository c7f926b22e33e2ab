//! How threads of the system sleep until a word changes.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use sync::atomic::{AtomicU32, Ordering};
use sync::{Wait, WaitReason};

/// The host of domains where there is a standard library: threads sleep, and are woken by changes of what they wait for; at
/// the latest after 100 ms they look by themselves.
#[derive(Clone, Copy, Debug)]
pub struct Parked;

/// Longest sleep. No one is waited for who has stopped between a change and a wake-up.
const LONGEST: Duration = Duration::from_millis(100);

/// Where threads sleep whose words have addresses of one remainder.
struct Room {
    // Held between the last look at the word and the sleep, and by who wakes.
    door: Mutex<()>,
    woken: Condvar,
}

static ROOMS: [Room; 16] = [const { Room { door: Mutex::new(()), woken: Condvar::new() } }; 16];

impl Room {
    fn of(word: &AtomicU32) -> &'static Room {
        &ROOMS[(core::ptr::from_ref(word).addr() >> 7) % ROOMS.len()]
    }
}

impl Wait for Parked {
    fn wait(&self, _: WaitReason, round: u32) {
        if round < 64 { core::hint::spin_loop() } else { std::thread::yield_now() }
    }

    fn wait_while(&self, word: &AtomicU32, value: u32, _: WaitReason, _: u32) {
        let room = Room::of(word);
        let door = room.door.lock().unwrap_or_else(PoisonError::into_inner);
        // Acquire pairs with the release of who has moved it on.
        if word.load(Ordering::Acquire) == value {
            // Others of the room may be meant: who waits looks again in any case.
            drop(room.woken.wait_timeout(door, LONGEST));
        }
    }

    fn wake(&self, word: &AtomicU32) {
        let room = Room::of(word);
        drop(room.door.lock().unwrap_or_else(PoisonError::into_inner));
        room.woken.notify_all();
    }
}
