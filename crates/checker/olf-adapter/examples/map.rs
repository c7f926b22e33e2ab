//! The interface `lists` on maps of `olf`.

use olf::Map;
use olf_adapter::{ByKey, domain, here};

/// So many items a map has room for: else growth is all that one sees.
const ROOM: usize = 1024;

fn map() -> Map<'static, ByKey> {
    let map = Map::new(domain()).expect("a number for a map");
    here(|here| map.reserve(here, ROOM)).expect("memory for a map");
    map
}

olf_adapter::lists_adapter! { Map<'static, ByKey>: map() }
