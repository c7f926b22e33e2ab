//! Headers for C, made from the calls in Rust that they declare, and programs in C that use them.
//!
//! A test makes the header from the sources and compares it with the one that is kept, so that the two cannot differ. What is
//! read is what such sources have: constants, structs of numbers, pointers to functions, and `pub unsafe extern "C" fn`, each
//! with its documentation, which becomes its comment.
#![forbid(unsafe_code)]

mod program;

use std::fmt::Write;
use std::path::Path;

pub use program::{Program, program};

/// A header: what stands before its declarations, and what names of types begin with that are its own.
#[derive(Clone, Copy, Debug)]
pub struct Header<'h> {
    /// Up to the first declaration, with the guard and, for C++, `extern "C" {`.
    pub head: &'h str,
    /// `olf_`, for example.
    pub prefix: &'h str,
}

const TYPES: [(&str, &str); 11] = [
    ("c_char", "char"),
    ("c_void", "void"),
    ("void", "void"),
    ("c_int", "int"),
    ("u8", "uint8_t"),
    ("u16", "uint16_t"),
    ("u32", "uint32_t"),
    ("i32", "int32_t"),
    ("u64", "uint64_t"),
    ("i64", "int64_t"),
    ("usize", "size_t"),
];

impl Header<'_> {
    /// The whole header.
    ///
    /// # Panics
    /// If the source has what this does not know.
    #[must_use]
    pub fn made(&self, source: &str) -> String {
        let mut made = String::from(self.head);
        let mut docs: Vec<String> = Vec::new();
        let mut is_for_c = false;
        let mut lines = source.lines();
        while let Some(line) = lines.next() {
            if let Some(text) = line.strip_prefix("///") {
                docs.push(text.trim().to_string());
                continue;
            }
            if line.starts_with("#[") {
                is_for_c |= line == "#[repr(C)]";
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
            } else if line.starts_with("pub struct ") && !is_for_c {
                lines.by_ref().take_while(|line| *line != "}").for_each(drop);
            } else if line.starts_with("pub struct ") {
                let name = line.trim_start_matches("pub struct ").trim_end_matches(" {");
                write!(made, "\n{}typedef struct {name} {{\n", comment(&docs)).unwrap();
                docs.clear();
                for field in lines.by_ref().take_while(|line| *line != "}").map(str::trim) {
                    if let Some(text) = field.strip_prefix("///") {
                        docs.push(text.trim().to_string());
                    } else if let Some((field, kind)) = field.trim_start_matches("pub ").split_once(": ") {
                        let declaration = self.declared(kind.trim_end_matches(','), field);
                        write!(made, "    {declaration}; {}", comment(&docs)).unwrap();
                        docs.clear();
                    }
                }
                writeln!(made, "}} {name};").unwrap();
            } else if let Some(rest) = line.strip_prefix("pub type ") {
                let (name, rest) =
                    rest.split_once(" = Option<unsafe extern \"C\" fn(").expect("a pointer to a function");
                let rest = rest.trim_end_matches(">;");
                let (list, result) = rest.split_once(") -> ").unwrap_or((rest.trim_end_matches(')'), "void"));
                let pointer = format!("(*{name})({})", self.arguments(list));
                write!(made, "\n{}typedef {};\n", comment(&docs), self.declared(result, &pointer)).unwrap();
            } else if line.starts_with("pub unsafe extern \"C\" fn ") {
                let mut head = line.to_string();
                while !head.ends_with('{') {
                    head.push(' ');
                    head.push_str(lines.next().expect("a body").trim());
                }
                write!(made, "\n{}{}", comment(&docs), self.function(head.trim_end_matches('{').trim())).unwrap();
            }
            docs.clear();
            is_for_c = false;
        }
        made.push_str("\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
        made
    }

    /// Compares the header at a path with what the source gives; writes it if the variable of this name is set.
    ///
    /// # Panics
    /// If they differ, or the file cannot be read.
    pub fn compare(&self, path: &Path, source: &str, variable: &str) {
        let made = self.made(source);
        if std::env::var_os(variable).is_some() {
            std::fs::write(path, &made).expect("a place for the header");
        }
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        assert!(kept == made, "{} is old: run this test with {variable}=1", path.display());
    }

    /// A type of C for one of Rust, with the name of what has it.
    fn declared(&self, rust: &str, name: &str) -> String {
        if let Some(target) = rust.strip_prefix("*mut ").filter(|target| target.starts_with("*mut ")) {
            return self.declared(target, &format!("*{name}"));
        }
        if let Some((kind, count)) = rust.strip_prefix('[').and_then(|array| array.strip_suffix(']')?.split_once("; "))
        {
            return self.declared(kind, &format!("{name}[{count}]"));
        }
        let (base, pointer) = match rust.split_once(' ') {
            Some(("*mut", target)) => (target.to_string(), "*"),
            Some(("*const", target)) => (format!("const {target}"), "*"),
            _ => (rust.to_string(), ""),
        };
        let (qualifier, bare) = base.strip_prefix("const ").map_or(("", base.as_str()), |bare| ("const ", bare));
        let known = TYPES.iter().find(|(from, _)| *from == bare).map(|(_, to)| *to);
        let to = known.unwrap_or_else(|| if bare.starts_with(self.prefix) { bare } else { panic!("type {rust:?}") });
        format!("{qualifier}{to} {pointer}{name}").trim_end().to_string()
    }

    fn arguments(&self, list: &str) -> String {
        let split = list.split(',').map(str::trim).filter(|argument| !argument.is_empty());
        let translated: Vec<String> = split
            .map(|argument| match argument.split_once(':') {
                Some((name, kind)) => self.declared(kind.trim(), name.trim()),
                None => self.declared(argument, ""),
            })
            .collect();
        if translated.is_empty() { "void".to_string() } else { translated.join(", ") }
    }

    /// The declaration of a function, from its head without the body.
    fn function(&self, head: &str) -> String {
        let head = head.split_whitespace().collect::<Vec<_>>().join(" ");
        let rest = head.strip_prefix("pub unsafe extern \"C\" fn ").expect("a function");
        let (name, rest) = rest.split_once('(').expect("arguments");
        let (list, result) = rest.rsplit_once(')').expect("an end of arguments");
        let result = result.trim().strip_prefix("->").map_or("void", str::trim).trim();
        let signature = format!("{name}({})", self.arguments(list));
        if result == "void" {
            format!("void {signature};\n")
        } else {
            format!("{};\n", self.declared(result, &signature))
        }
    }
}

fn comment(lines: &[String]) -> String {
    // What Rust asks of its callers is said once, at the head of the header.
    let lines: Vec<&str> = lines.iter().map(String::as_str).take_while(|line| *line != "# Safety").collect();
    let text = lines.join("\n").trim().replace('\n', "\n * ");
    format!("/* {text} */\n")
}

/// The functions that the header declares.
#[must_use]
pub fn functions(header: &str) -> Vec<&str> {
    let declared = header.lines().filter(|line| line.ends_with(");") && !line.starts_with("typedef"));
    declared.filter_map(|line| line.split('(').next()?.rsplit([' ', '*']).next()).collect()
}
