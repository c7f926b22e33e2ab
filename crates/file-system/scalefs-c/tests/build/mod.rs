//! Programs in C over the static library, built with the system's compiler.

use std::path::Path;

pub use c_header::Program;

/// Compiles a program over the library, with these options more.
pub fn program(name: &str, source: &Path, options: &[&str]) -> Program {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    c_header::program("libscalefs_c", &include, name, source, options)
}
