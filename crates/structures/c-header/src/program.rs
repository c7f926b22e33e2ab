//! Programs in C over a static library, built with the system's compiler.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A built program, which is removed in the end.
#[derive(Debug)]
pub struct Program(PathBuf);

impl Program {
    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The static library that cargo has built for the calling test, in its folder: the newest, if older builds are left.
fn built(library: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a program");
    let folder = std::fs::read_dir(test.parent().expect("a folder")).expect("a folder");
    let built = folder.filter_map(Result::ok).filter(|entry| {
        let name = entry.file_name().into_string().unwrap_or_default();
        name.starts_with(library) && name.ends_with(".a")
    });
    let newest = built.max_by_key(|entry| entry.metadata().and_then(|data| data.modified()).ok());
    newest.unwrap_or_else(|| panic!("expected {library}.a to be built")).path()
}

/// Compiles a program over a library such as `libolf_c`, with the folder of its header and these options more.
///
/// # Panics
/// If the compiler is not there, or finds anything.
#[must_use]
pub fn program(library: &str, include: &Path, name: &str, source: &Path, options: &[&str]) -> Program {
    let program = Program(std::env::temp_dir().join(format!("{library}-{name}-{}", std::process::id())));
    let compiled = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(program.path())
        .arg("-I")
        .arg(include)
        .args(options)
        .arg(source)
        .arg(built(library))
        .args(["-lpthread", "-lm", "-ldl"])
        .output()
        .expect("expected a C compiler named cc");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    program
}
