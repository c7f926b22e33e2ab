//! The interface `lists` on maps of `olf`:
//!
//!     cargo build --release -p olf --example maps
//!     commutant check lists --target library:path=target/release/examples/libmaps.so

mod shared;

use olf::Map;

/// So many items a map has room for: else growth is all that one sees.
const ROOM: usize = 1024;

fn map() -> Map<'static, shared::ByKey> {
    let map = Map::new(shared::domain()).expect("a number for a map");
    shared::here(|here| map.reserve(here, ROOM)).expect("memory for a map");
    map
}

shared::lists_adapter! { Map<'static, shared::ByKey>: map() }
