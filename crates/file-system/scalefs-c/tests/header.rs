//! `include/scalefs.h` says what the calls in `src` say: it is made from it here. `SCALEFS_WRITE_HEADER=1` writes it anew.

use std::path::Path;

use c_header::{Header, functions};

/// In the order of the header.
const FILES: [&str; 13] = [
    "flags.rs",
    "calls.rs",
    "descriptors.rs",
    "at.rs",
    "open_files.rs",
    "listing.rs",
    "polling.rs",
    "locks.rs",
    "extended.rs",
    "processes.rs",
    "sockets.rs",
    "memory.rs",
    "transactions.rs",
];

const HEADER: Header<'static> = Header {
    head: "/* ScaleFS for C: a POSIX file system in memory that shares no cache line where POSIX commutes.\n *\n * Made from \
         crates/file-system/scalefs-c/src; do not edit. pkg-config --cflags --libs scalefs says how to build with it.\n *\n * A thread handle is \
         used by one thread at a time. Paths end with NUL. A call returns what it returns in POSIX,\n * or a negative error \
         number of Linux: -EINVAL where a path, a buffer or an answer is NULL, or a size is above\n * SSIZE_MAX, where a \
         handle is NULL, was given up, or is of another instance, and in a child of fork,\n * which makes an instance of its own. \
         scalefs_reason says which. An instance that was destroyed must not be used. */\n#ifndef SCALEFS_H\n#define SCALEFS_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n#ifdef \
         __cplusplus\nextern \"C\" {\n#endif\n\ntypedef struct scalefs_instance scalefs_instance;\ntypedef struct \
         scalefs_thread scalefs_thread;\ntypedef struct scalefs_process scalefs_process;\n\n",
    prefix: "scalefs_",
};

#[test]
fn the_header_is_made_from_the_source() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = |name: &str| std::fs::read_to_string(folder.join("src").join(name)).unwrap();
    HEADER.compare(&folder.join("include/scalefs.h"), &FILES.map(source).concat(), "SCALEFS_WRITE_HEADER");
}

#[test]
fn the_reference_has_every_call() {
    let (header, page) =
        (include_str!("../include/scalefs.h"), include_str!("../../../../docs/reference/scalefs-c.md"));
    let functions = functions(header);
    assert!(functions.len() > 80, "{functions:?}");
    let missing: Vec<_> = functions.iter().filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/reference/scalefs-c.md says nothing of {missing:?}");
}
