//! `include/olf.h` says what the calls in `src` say: it is made from them here. `OLF_WRITE_HEADER=1` writes it again.

use std::path::Path;

use c_header::{Header, functions};

/// In the order of the header.
const FILES: [&str; 7] = ["reason.rs", "domain.rs", "link.rs", "lists.rs", "keyed.rs", "ends.rs", "steps.rs"];

const HEADER: Header<'static> = Header {
    head: "/* Lists and maps whose operations compose, without locks and without allocation: links are fields of your structs.\n *\n \
        * Made from crates/structures/olf-c/src; do not edit. docs/reference/olf.md says what is promised.\n *\n * A thread \
        handle is used by one thread at a time. A call returns 0, or a negative error number of Linux, of which\n * \
        olf_reason says a line: -EINVAL where a handle is NULL, was given up, or is of another domain, and where a link\n * \
        was not initialised. Who inserts an item gives the list a count of it; who removes it gets that count back. */\n\
        #ifndef OLF_H\n#define OLF_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" \
        {\n#define OLF_ALIGNED alignas(OLF_ALIGN)\n#else\n#define OLF_ALIGNED _Alignas(OLF_ALIGN)\n#endif\n\n/* The \
        struct whose field a link is. */\n#define OLF_CONTAINER_OF(link, type, field) ((type *)((char *)(link) - \
        offsetof(type, field)))\n/* Links, and so the structs that have them, lie at multiples of this. */\n#define \
        OLF_ALIGN 32\n\n/* A field of an item by which it can stand in one map or list in order, and in one doubly linked \
        list. Its\n * content is the library's. */\ntypedef struct olf_link {\n    OLF_ALIGNED uint64_t room[20];\n} \
        olf_link;\n\ntypedef struct olf_domain olf_domain; /* What lists and items share between which items move. */\n\
        typedef struct olf_thread olf_thread; /* A thread of a domain. */\ntypedef struct olf_list olf_list; /* A list or a \
        map of a domain. */\ntypedef struct olf_steps olf_steps; /* What olf_atomically gives to its body. */\n\n",
    prefix: "olf_",
};

#[test]
fn the_header_is_made_from_the_source() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = |name: &str| std::fs::read_to_string(folder.join("src").join(name)).unwrap();
    HEADER.compare(&folder.join("include/olf.h"), &FILES.map(source).concat(), "OLF_WRITE_HEADER");
}

#[test]
fn the_reference_has_every_call() {
    let (header, page) = (include_str!("../include/olf.h"), include_str!("../../../../docs/reference/olf.md"));
    let functions = functions(header);
    assert!(functions.len() > 20, "{functions:?}");
    let missing: Vec<_> = functions.iter().filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/reference/olf.md says nothing of {missing:?}");
}
