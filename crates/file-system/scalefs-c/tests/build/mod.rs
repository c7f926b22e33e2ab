//! Programs in C over the static library, built with the system's compiler.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A built program, which is removed in the end.
pub struct Program(PathBuf);

impl Program {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The static library that cargo has built for this test, beside it: the newest, if older builds are left.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = std::fs::read_dir(test.parent().unwrap()).unwrap();
    let built = folder.map(|entry| entry.unwrap()).filter(|entry| {
        let name = entry.file_name().into_string().unwrap_or_default();
        name.starts_with("libscalefs_c") && name.ends_with(".a")
    });
    let newest = built.max_by_key(|entry| entry.metadata().and_then(|data| data.modified()).ok());
    newest.expect("libscalefs_c.a is built").path()
}

/// Compiles a program over the library, with these options more.
pub fn program(name: &str, source: &Path, options: &[&str]) -> Program {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Program(std::env::temp_dir().join(format!("scalefs-c-{name}-{}", std::process::id())));
    let compiled = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(program.path())
        .arg("-I")
        .arg(folder.join("include"))
        .args(options)
        .arg(source)
        .arg(library())
        .args(["-lpthread", "-lm", "-ldl"])
        .output()
        .expect("expected a C compiler named cc");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    program
}
