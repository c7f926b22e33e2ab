//! `include/pool.h` says what the calls in `src` say: it is made from it here. `POOL_WRITE_HEADER=1` writes it anew.
#![cfg(all(unix, not(loom)))]

use std::path::Path;
use std::process::Command;

use c_face::{Face, Program, functions};

const OPENING: &str = "\
Memory that coherence domains share, for C: real, coherent, or emulated with old data, an adversary and a checker.

Made from crates/structures/pool-c/src; do not edit. Link with libpool_c.a.

write - pool_write_back - pool_drain - message -> pool_invalidate - read: all four steps lie between one domain's write and
another's read. A call returns 0, or a negative error number of Linux: -EINVAL where a pointer is NULL, -ERANGE past the end,
-EIO where the file has gone, -EOWNERDEAD where the domain has crashed; pool_reason says why. A view is used by one thread at a
time, and not after it was given up.";

const FACE: Face =
    Face { prefix: "pool_", guard: "POOL_H", opening: OPENING, handles: &["pool_memory", "pool_emulated"] };

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_header_is_made_from_the_source() {
    let source = |name: &str| std::fs::read_to_string(folder().join("src").join(name)).unwrap();
    let made = FACE.header(&["files.rs", "memory.rs", "emulated.rs"].map(source).concat());
    let path = folder().join("include/pool.h");
    if std::env::var_os("POOL_WRITE_HEADER").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    assert!(kept == made, "include/pool.h is old: POOL_WRITE_HEADER=1 cargo test -p pool-c --test header");
    assert_eq!(functions(&made).len(), 26, "{:?}", functions(&made));
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
        Program::build("pool_c", &folder().join("include"), "mailbox", &folder().join("tests/mailbox.c"), &[]);
    let ran = Command::new(program.path()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "");
}
