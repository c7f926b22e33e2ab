//! A header for C, made from the source of the calls.
//!
//! It reads what our own faces need of Rust: constants, structures of plain fields, types of callbacks and functions, each with its
//! comment. Anything else is a panic, so that a call cannot be left out.

use std::fmt::Write;

const TYPES: [(&str, &str); 10] = [
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
];

/// A type of C for one of Rust, with the name of what has it.
fn declared(prefix: &str, rust: &str, name: &str) -> String {
    if let Some(target) = rust.strip_prefix("*mut ").filter(|target| target.starts_with("*mut ")) {
        return declared(prefix, target, &format!("*{name}"));
    }
    if let Some((kind, count)) = rust.strip_prefix('[').and_then(|array| array.strip_suffix(']')?.split_once("; ")) {
        return declared(prefix, kind, &format!("{name}[{count}]"));
    }
    let (base, pointer) = match rust.split_once(' ') {
        Some(("*mut", target)) => (target.to_string(), "*"),
        Some(("*const", target)) => (format!("const {target}"), "*"),
        _ => (rust.to_string(), ""),
    };
    let (qualifier, bare) = base.strip_prefix("const ").map_or(("", base.as_str()), |bare| ("const ", bare));
    let known = TYPES.iter().find(|(from, _)| *from == bare).map(|(_, to)| *to);
    let to = known.unwrap_or_else(|| if bare.starts_with(prefix) { bare } else { panic!("type {rust:?}") });
    format!("{qualifier}{to} {pointer}{name}").trim_end().to_string()
}

fn comment(lines: &[String]) -> String {
    // What Rust asks of its callers is said once, at the head of the header.
    let lines: Vec<&str> = lines.iter().map(String::as_str).take_while(|line| *line != "# Safety").collect();
    let text = lines.join("\n").trim().replace('\n', "\n * ");
    format!("/* {text} */\n")
}

fn arguments(prefix: &str, list: &str) -> String {
    let split = list.split(',').map(str::trim).filter(|argument| !argument.is_empty());
    let translated: Vec<String> = split
        .map(|argument| match argument.split_once(':') {
            Some((name, kind)) => declared(prefix, kind.trim(), name.trim()),
            None => declared(prefix, argument, ""),
        })
        .collect();
    if translated.is_empty() { "void".to_string() } else { translated.join(", ") }
}

/// The declaration of a function, from its head without the body.
fn function(prefix: &str, head: &str) -> String {
    let head = head.split_whitespace().collect::<Vec<_>>().join(" ");
    let rest = head.strip_prefix("pub unsafe extern \"C\" fn ").expect("a function");
    let (name, rest) = rest.split_once('(').expect("arguments");
    let (list, result) = rest.rsplit_once(')').expect("an end of arguments");
    let result = result.trim().strip_prefix("->").map_or("void", str::trim).trim();
    let signature = format!("{name}({})", arguments(prefix, list));
    if result == "void" {
        format!("void {signature};\n")
    } else {
        format!("{};\n", declared(prefix, result, &signature))
    }
}

/// What is said once in a header.
#[derive(Clone, Copy, Debug)]
pub struct Face<'a> {
    /// What all of its names begin with.
    pub prefix: &'a str,
    /// The macro that says that the header was read.
    pub guard: &'a str,
    /// The comment at its head.
    pub opening: &'a str,
    /// Types that C has pointers to, and nothing else.
    pub handles: &'a [&'a str],
}

impl Face<'_> {
    /// The header of this source.
    ///
    /// # Panics
    /// If the source has what a header of ours cannot say.
    pub fn header(&self, source: &str) -> String {
        let Face { prefix, guard, opening, handles } = self;
        let mut made = format!(
            "/* {} */\n#ifndef {guard}\n#define {guard}\n\n#include <stddef.h>\n#include <stdint.h>\n\n#ifdef \
             __cplusplus\nextern \"C\" {{\n#endif\n\n",
            opening.trim().replace('\n', "\n * ").replace(" * \n", " *\n")
        );
        for handle in *handles {
            writeln!(made, "typedef struct {handle} {handle};").unwrap();
        }
        made.push('\n');
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
                        let declaration = declared(prefix, kind.trim_end_matches(','), field);
                        write!(made, "    {declaration}; {}", comment(&docs)).unwrap();
                        docs.clear();
                    }
                }
                writeln!(made, "}} {name};").unwrap();
            } else if let Some(rest) = line.strip_prefix("pub type ") {
                let (name, rest) =
                    rest.split_once(" = Option<unsafe extern \"C\" fn(").expect("a pointer to a function");
                let (list, result) = rest.split_once(") -> ").expect("a result");
                let pointer = format!("(*{name})({})", arguments(prefix, list));
                write!(
                    made,
                    "\n{}typedef {};\n",
                    comment(&docs),
                    declared(prefix, result.trim_end_matches(">;"), &pointer)
                )
                .unwrap();
            } else if line.starts_with("pub unsafe extern \"C\" fn ") {
                let mut head = line.to_string();
                while !head.ends_with('{') {
                    head.push(' ');
                    head.push_str(lines.next().expect("a body").trim());
                }
                write!(made, "\n{}{}", comment(&docs), function(prefix, head.trim_end_matches('{').trim())).unwrap();
            }
            docs.clear();
        }
        made.push_str("\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
        made
    }
}

/// The functions that a header declares.
pub fn functions(header: &str) -> Vec<&str> {
    let declared = header.lines().filter(|line| line.ends_with(");") && !line.starts_with("typedef"));
    declared.filter_map(|line| line.split('(').next()?.rsplit([' ', '*']).next()).collect()
}
