//! `include/pool.h` says what the calls in `src` say: it is made from it here. `POOL_WRITE_HEADER=1` writes it again.
#![cfg(all(unix, not(loom)))]

use std::path::Path;
use std::process::Command;

use c_header::{Header, functions};

const HEADER: Header<'static> = Header {
    head: "/* Memory that coherence domains share, for C: real, coherent, or emulated with old data, an adversary and a checker.\n *\n \
        * Made from crates/structures/pool-c/src; do not edit. Link with libpool_c.a.\n *\n * write - pool_write_back - \
        pool_drain - message -> pool_invalidate - read: all four steps lie between one domain's write and\n * another's read. A \
        call returns 0, or a negative error number of Linux: -EINVAL where a pointer is NULL, -ERANGE past the end,\n * -EIO where \
        the file has gone, -EOWNERDEAD where the domain has crashed; pool_reason says why. A view is used by one thread at a\n \
        * time, and not after it was given up. */\n#ifndef POOL_H\n#define POOL_H\n\n#include <stddef.h>\n#include \
        <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\ntypedef struct pool_memory pool_memory;\ntypedef \
        struct pool_emulated pool_emulated;\n\n",
    prefix: "pool_",
};

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_header_is_made_from_the_source() {
    let source = |name: &str| std::fs::read_to_string(folder().join("src").join(name)).unwrap();
    let source = ["files.rs", "memory.rs", "emulated.rs"].map(source).concat();
    HEADER.compare(&folder().join("include/pool.h"), &source, "POOL_WRITE_HEADER");
    assert_eq!(functions(&HEADER.made(&source)).len(), 26);
}

#[test]
fn the_page_has_every_call() {
    let (header, page) = (include_str!("../include/pool.h"), include_str!("../../../../docs/reference/pool.md"));
    let missing: Vec<_> = functions(header).into_iter().filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/reference/pool.md says nothing of {missing:?}");
}

#[test]
fn a_protocol_in_c_runs_on_emulated_memory() {
    let program =
        c_header::program("libpool_c", &folder().join("include"), "mailbox", &folder().join("tests/mailbox.c"), &[]);
    let ran = Command::new(program.path()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "");
}
