//! The interface `lists` on maps of `olf`.

use olf::Map;

use crate::things::{ByKey, domain, here, lists_adapter};

/// A map has room for this many items: else growth is all that one sees.
const ROOM: usize = 1024;

fn map() -> Map<'static, ByKey> {
    let map = Map::new(domain()).expect("a number for a map");
    here(|here| map.reserve(here, ROOM)).expect("memory for a map");
    map
}

lists_adapter! { commutant_adapter_map => Map<'static, ByKey>: map() }
