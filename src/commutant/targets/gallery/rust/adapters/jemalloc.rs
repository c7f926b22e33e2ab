//! jemalloc: arenas for threads, with a cache in front of each.
gallery::allocator_adapter! { tikv_jemalloc_sys::malloc, tikv_jemalloc_sys::free }
