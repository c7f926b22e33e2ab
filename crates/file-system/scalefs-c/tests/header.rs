//! `include/scalefs.h` says what the calls in `src` say: it is made from it here. `SCALEFS_WRITE_HEADER=1` writes it anew.

use std::fmt::Write;
use std::path::Path;

/// In the order of the header.
const FILES: [&str; 11] = [
    "flags.rs",
    "calls.rs",
    "descriptors.rs",
    "at.rs",
    "open_files.rs",
    "listing.rs",
    "polling.rs",
    "processes.rs",
    "sockets.rs",
    "memory.rs",
    "transactions.rs",
];

const TYPES: [(&str, &str); 11] = [
    ("c_char", "char"),
    ("c_void", "void"),
    ("c_int", "int"),
    ("u8", "uint8_t"),
    ("u16", "uint16_t"),
    ("u32", "uint32_t"),
    ("i32", "int32_t"),
    ("u64", "uint64_t"),
    ("i64", "int64_t"),
    ("usize", "size_t"),
    ("scalefs_each", "scalefs_each"),
];

/// A type of C for one of Rust, with the name of what has it.
fn declared(rust: &str, name: &str) -> String {
    if let Some(target) = rust.strip_prefix("*mut ").filter(|target| target.starts_with("*mut ")) {
        return declared(target, &format!("*{name}"));
    }
    if let Some((kind, count)) = rust.strip_prefix('[').and_then(|array| array.strip_suffix(']')?.split_once("; ")) {
        return declared(kind, &format!("{name}[{count}]"));
    }
    let (base, pointer) = match rust.split_once(' ') {
        Some(("*mut", target)) => (target.to_string(), "*"),
        Some(("*const", target)) => (format!("const {target}"), "*"),
        _ => (rust.to_string(), ""),
    };
    let (qualifier, bare) = base.strip_prefix("const ").map_or(("", base.as_str()), |bare| ("const ", bare));
    let known = TYPES.iter().find(|(from, _)| *from == bare).map(|(_, to)| *to);
    let to = known.unwrap_or_else(|| if bare.starts_with("scalefs_") { bare } else { panic!("type {rust:?}") });
    format!("{qualifier}{to} {pointer}{name}").trim_end().to_string()
}

fn comment(lines: &[String]) -> String {
    // What Rust asks of its callers is said once, at the head of the header.
    let lines: Vec<&str> = lines.iter().map(String::as_str).take_while(|line| *line != "# Safety").collect();
    let text = lines.join("\n").trim().replace('\n', "\n * ");
    format!("/* {text} */\n")
}

fn arguments(list: &str) -> String {
    let split = list.split(',').map(str::trim).filter(|argument| !argument.is_empty());
    let translated: Vec<String> = split
        .map(|argument| match argument.split_once(':') {
            Some((name, kind)) => declared(kind.trim(), name.trim()),
            None => declared(argument, ""),
        })
        .collect();
    if translated.is_empty() { "void".to_string() } else { translated.join(", ") }
}

/// The declaration of a function, from its head without the body.
fn function(head: &str) -> String {
    let head = head.split_whitespace().collect::<Vec<_>>().join(" ");
    let rest = head.strip_prefix("pub unsafe extern \"C\" fn ").expect("a function");
    let (name, rest) = rest.split_once('(').expect("arguments");
    let (list, result) = rest.rsplit_once(')').expect("an end of arguments");
    let result = result.trim().strip_prefix("->").map_or("void", str::trim).trim();
    let signature = format!("{name}({})", arguments(list));
    if result == "void" { format!("void {signature};\n") } else { format!("{};\n", declared(result, &signature)) }
}

fn header(source: &str) -> String {
    let mut made = String::from(
        "/* ScaleFS for C: a POSIX file system in memory that shares no cache line where POSIX commutes.\n *\n * Made from \
         crates/file-system/scalefs-c/src; do not edit. pkg-config --cflags --libs scalefs says how to build with it.\n *\n * A thread handle is \
         used by one thread at a time. Paths end with NUL. A call returns what it returns in POSIX,\n * or a negative error \
         number of Linux: -EINVAL where a path, a buffer or an answer is NULL, or a size is above\n * SSIZE_MAX, where a \
         handle is NULL, was given up, or is of another instance, and in a child of fork,\n * which makes an instance of its own. \
         scalefs_reason says which. An instance that was destroyed must not be used. */\n#ifndef SCALEFS_H\n#define SCALEFS_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n#ifdef \
         __cplusplus\nextern \"C\" {\n#endif\n\ntypedef struct scalefs_instance scalefs_instance;\ntypedef struct \
         scalefs_thread scalefs_thread;\ntypedef struct scalefs_process scalefs_process;\n\n",
    );
    let mut docs: Vec<String> = Vec::new();
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        if let Some(text) = line.strip_prefix("///") {
            docs.push(text.trim().to_string());
            continue;
        }
        if line.starts_with("#[") {
            continue;
        }
        if let Some(constant) = line.strip_prefix("pub const ") {
            let (name, value) = constant.split_once(" = ").expect("a value");
            let value = value.trim_end_matches(';');
            match name.split_once(": ").expect("a type") {
                (name, "u32") => writeln!(made, "{}#define {name} {value}u", comment(&docs)).unwrap(),
                (name, "i32") => writeln!(made, "{}#define {name} ({value})", comment(&docs)).unwrap(),
                (name, other) => panic!("{name}: type {other:?}"),
            }
        } else if line.starts_with("pub struct ") {
            let name = line.trim_start_matches("pub struct ").trim_end_matches(" {");
            write!(made, "\n{}typedef struct {name} {{\n", comment(&docs)).unwrap();
            docs.clear();
            for field in lines.by_ref().take_while(|line| *line != "}").map(str::trim) {
                if let Some(text) = field.strip_prefix("///") {
                    docs.push(text.trim().to_string());
                } else if let Some((field, kind)) = field.trim_start_matches("pub ").split_once(": ") {
                    let declaration = declared(kind.trim_end_matches(','), field);
                    write!(made, "    {declaration}; {}", comment(&docs)).unwrap();
                    docs.clear();
                }
            }
            writeln!(made, "}} {name};").unwrap();
        } else if let Some(rest) = line.strip_prefix("pub type ") {
            let (name, rest) = rest.split_once(" = Option<unsafe extern \"C\" fn(").expect("a pointer to a function");
            let (list, result) = rest.split_once(") -> ").expect("a result");
            let pointer = format!("(*{name})({})", arguments(list));
            write!(made, "\n{}typedef {};\n", comment(&docs), declared(result.trim_end_matches(">;"), &pointer))
                .unwrap();
        } else if line.starts_with("pub unsafe extern \"C\" fn ") {
            let mut head = line.to_string();
            while !head.ends_with('{') {
                head.push(' ');
                head.push_str(lines.next().expect("a body").trim());
            }
            write!(made, "\n{}{}", comment(&docs), function(head.trim_end_matches('{').trim())).unwrap();
        }
        docs.clear();
    }
    made.push_str("\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    made
}

#[test]
fn the_header_is_made_from_the_source() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = folder.join("include/scalefs.h");
    let source = |name: &str| std::fs::read_to_string(folder.join("src").join(name)).unwrap();
    let made = header(&FILES.map(source).concat());
    if std::env::var_os("SCALEFS_WRITE_HEADER").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    assert!(kept == made, "include/scalefs.h is old: SCALEFS_WRITE_HEADER=1 cargo test -p scalefs-c --test header");
}

/// The functions that the header declares.
fn functions(header: &str) -> Vec<&str> {
    let declared = header.lines().filter(|line| line.ends_with(");") && !line.starts_with("typedef"));
    declared.filter_map(|line| line.split('(').next()?.rsplit([' ', '*']).next()).collect()
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
