//! The C library's allocator.
gallery::allocator_adapter! { libc::malloc, libc::free }
