//! Debug information that a stripped file has in a file of its own, by its build id: of a `-dbgsym` package, or what
//! `debuginfod-find` has downloaded (elfutils, debuginfod-client).

use std::path::{Path, PathBuf};

use object::Object;

/// What there is for a file.
#[derive(Debug, Default)]
pub(crate) struct Separate {
    /// Its debug information.
    pub file: Option<PathBuf>,
    /// What lies where it would, but is of another build, so that its names would be wrong ones.
    pub of_other_build: Option<PathBuf>,
}

/// Looks where debuggers do, for the first file that there is and is not empty: an empty one says that a server had none.
pub(crate) fn debug_file(file: &object::File<'_>) -> Separate {
    find(file).unwrap_or_default()
}

fn find(file: &object::File<'_>) -> Option<Separate> {
    let id = file.build_id().ok()??;
    let hexadecimal: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let (first, rest) = hexadecimal.split_at_checked(2)?;
    let package = PathBuf::from(format!("/usr/lib/debug/.build-id/{first}/{rest}.debug"));
    let downloaded = cache_folder().map(|folder| folder.join(&hexadecimal).join("debuginfo"));
    let has_content = |path: &PathBuf| path.metadata().is_ok_and(|found| found.is_file() && found.len() > 0);
    let found = [Some(package), downloaded].into_iter().flatten().find(has_content)?;
    Some(if is_of_build(&found, id) {
        Separate { file: Some(found), of_other_build: None }
    } else {
        Separate { file: None, of_other_build: Some(found) }
    })
}

/// Whether a file is of a build, as far as it says.
fn is_of_build(path: &Path, id: &[u8]) -> bool {
    let Ok(bytes) = std::fs::read(path) else { return false };
    let file = object::File::parse(&*bytes);
    file.is_ok_and(|file| file.build_id().ok().flatten().is_none_or(|own| own == id))
}

/// The cache of debuginfod's client.
fn cache_folder() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let user = || variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    variable("DEBUGINFOD_CACHE_PATH").or_else(|| Some(user()?.join("debuginfod_client")))
}
