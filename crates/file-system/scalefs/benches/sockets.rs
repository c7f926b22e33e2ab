//! A datagram of 64 bytes, sent and received by descriptors on one core, against the host's sockets in the same run:
//! `cargo bench -p scalefs --bench sockets [-- ROUNDS] [PART OF A TITLE]`. Maintenance every 64 calls is counted.

mod compare;

use std::os::unix::net::UnixDatagram;

use compare::{Options, huge_pages, print_head};
use pages::{PAGE_BYTES, PagePool};
use percpu::{Arena, ArenaConfig, HeapRegion, OwnerId};
use scalefs::data::DescriptorOptions;
use scalefs::{Credentials, Process, ScaleFs, ScaleFsConfig, SocketOrder, sockets};
use sync::Spin;

const POOL_PAGES: u32 = 256;

fn main() {
    let options = Options::from_arguments();
    let mut region = HeapRegion::new(16 << 20).unwrap();
    let (base, _) = huge_pages((POOL_PAGES as usize + 1) * PAGE_BYTES);
    let arena = Arena::create(&mut region, ArenaConfig::new(2)).unwrap();
    let core = arena.claim(0, OwnerId::new(1).unwrap()).unwrap();
    // SAFETY: the memory is the pool's alone until the end.
    let pool = unsafe { PagePool::create(arena, base, POOL_PAGES) }.unwrap();
    let fs = ScaleFs::create_with_pages(&core, pool, ScaleFsConfig::default()).unwrap();
    let process = Process::new(fs, &core, Credentials::SUPERUSER).unwrap();
    let (there, here) = UnixDatagram::pair().unwrap();
    let message = [7; 64];
    print_head("ns per call, host");
    for (title, order) in
        [("send+receive, ordered", SocketOrder::Ordered), ("send+receive, unordered", SocketOrder::Unordered)]
    {
        let enter = || fs.enter(&core, &process, &Spin);
        let (from, to) = sockets::pair(&enter(), order, DescriptorOptions::PLAIN).unwrap();
        options.compare(
            title,
            |number| {
                let mut bytes = [0; 64];
                assert_eq!(sockets::send(&enter(), from, None, &message), Ok(64));
                assert_eq!(sockets::receive(&enter(), to, &mut bytes).map(|received| received.length_bytes), Ok(64));
                if number.is_multiple_of(32) {
                    fs.maintain(&core, &Spin);
                }
            },
            |_| {
                let mut bytes = [0; 64];
                assert!(there.send(&message).is_ok() && here.recv(&mut bytes).is_ok());
            },
        );
    }
}
