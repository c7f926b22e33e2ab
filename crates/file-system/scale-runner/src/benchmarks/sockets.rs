//! Datagrams through one pair of sockets that all cores use.

use scalefs::{SocketOrder, sockets};

use super::{ANY, again};
use crate::benchmark::{Benchmark, Operation};
use crate::world::World;

pub const BENCHMARKS: [Benchmark; 2] = [
    Benchmark {
        name: "send",
        operation: "a datagram sent and one received, in order, by one pair of sockets for all cores",
        maintains: true,
        prepare: |world| datagrams(world, SocketOrder::Ordered),
    },
    Benchmark {
        name: "send-any",
        operation: "as send, in any order",
        maintains: true,
        prepare: |world| datagrams(world, SocketOrder::Unordered),
    },
];

fn datagrams(world: &World, order: SocketOrder) -> Operation<'_> {
    let (from, to) = sockets::pair(&world.enter(0), order, ANY).expect("a pair of sockets");
    Box::new(move |core, _| {
        again(|| sockets::send(&world.enter(core), from, None, &[7; 64]).map(|_| ()));
        again(|| sockets::receive(&world.enter(core), to, &mut [0; 64]).map(|_| ()));
    })
}
