//! mimalloc: a heap for each thread.
gallery::allocator_adapter! { libmimalloc_sys::mi_malloc, libmimalloc_sys::mi_free }
