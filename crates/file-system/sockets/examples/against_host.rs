//! The time of a message of 64 bytes, sent and received on one core, here and by the host's kernel, in turns of one run.
//!
//! ```text
//! cargo run --release -p sockets --example against_host
//! ```

use std::error::Error;
use std::os::unix::net::UnixDatagram;
use std::ptr::NonNull;
use std::time::Instant;

use pages::{PAGE_BYTES, PagePool};
use percpu::{Arena, ArenaConfig, HeapRegion, OwnerId};
use sockets::{Order, Sockets, SocketsConfig};
use sync::Spin;

const MESSAGES: u32 = 20_000;
const ROUNDS: usize = 15;

/// Nanoseconds of one of `MESSAGES` turns.
fn time_ns(mut turn: impl FnMut()) -> f64 {
    let begin = Instant::now();
    (0..MESSAGES).for_each(|_| turn());
    begin.elapsed().as_secs_f64() * 1e9 / f64::from(MESSAGES)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut region = HeapRegion::new(16 << 20)?;
    let mut memory = HeapRegion::new(256 * PAGE_BYTES)?;
    let arena = Arena::create(&mut region, ArenaConfig::new(8))?;
    let base = NonNull::new(memory.as_mut_ptr()).ok_or("no memory")?;
    let core = arena.claim(0, OwnerId::new(1).ok_or("no owner")?)?;
    // SAFETY: the memory is the pool's alone until the program ends.
    let sockets = unsafe { Sockets::create(&core, PagePool::create(arena, base, 256)?, SocketsConfig::default()) }?;
    let (there, here) = UnixDatagram::pair()?;
    let (message, mut bytes) = ([7; 64], [0; 64]);
    for order in [Order::Ordered, Order::Unordered] {
        let [one, other] = sockets.pair(&core, order)?;
        let mut best = [f64::INFINITY; 2];
        for _ in 0..ROUNDS {
            let ours = time_ns(|| {
                let sent = sockets.send(&core, &one, &message, &Spin);
                let received = sockets.receive(&core, &other, &mut bytes, &Spin);
                assert!(sent.is_ok() && received.is_ok());
            });
            let hosts = time_ns(|| {
                assert!(there.send(&message).is_ok() && here.recv(&mut bytes).is_ok());
            });
            best = [best[0].min(ours), best[1].min(hosts)];
        }
        println!("{order:?}: {:.0} ns, the host {:.0} ns: {:.2} of its time", best[0], best[1], best[0] / best[1]);
        sockets.close(&core, one, &Spin);
        sockets.close(&core, other, &Spin);
    }
    Ok(())
}
