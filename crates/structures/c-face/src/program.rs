//! Programs in C over a static library, built with the system's compiler.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A built program, which is removed in the end.
#[derive(Debug)]
pub struct Program(PathBuf);

impl Program {
    /// Compiles `source` over the library that cargo has built beside this test (`NAME` for `libNAME.a`), with the headers of a
    /// folder and with these options more.
    ///
    /// # Panics
    /// If there is no compiler, or it refuses the program.
    pub fn build(library: &str, headers: &Path, name: &str, source: &Path, options: &[&str]) -> Program {
        let program = Program(std::env::temp_dir().join(format!("{library}-{name}-{}", std::process::id())));
        let compiled = Command::new("cc")
            .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-o"])
            .arg(program.path())
            .arg("-I")
            .arg(headers)
            .args(options)
            .arg(source)
            .arg(archive(library))
            .args(["-lpthread", "-lm", "-ldl"])
            .output()
            .expect("expected a C compiler named cc");
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        program
    }

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
fn archive(library: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = std::fs::read_dir(test.parent().unwrap()).unwrap();
    let built = folder.map(|entry| entry.unwrap()).filter(|entry| {
        let name = entry.file_name().into_string().unwrap_or_default();
        name.starts_with(&format!("lib{library}")) && name.ends_with(".a")
    });
    let newest = built.max_by_key(|entry| entry.metadata().and_then(|data| data.modified()).ok());
    newest.unwrap_or_else(|| panic!("lib{library}.a is not built")).path()
}
