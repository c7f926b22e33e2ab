//! Debug information that a stripped file has in a file of its own, by its build id: of a `-dbgsym` package, or what
//! `debuginfod-find` has downloaded (elfutils, debuginfod-client).

use std::path::PathBuf;

use object::Object;

/// Where debuggers look; the first file that there is, and is not empty: an empty one says that a server had none.
pub fn debug_file(file: &object::File<'_>) -> Option<PathBuf> {
    let id = file.build_id().ok()??;
    let hexadecimal: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let (first, rest) = hexadecimal.split_at_checked(2)?;
    let package = PathBuf::from(format!("/usr/lib/debug/.build-id/{first}/{rest}.debug"));
    let downloaded = cache_folder().map(|folder| folder.join(&hexadecimal).join("debuginfo"));
    let has_content = |path: &PathBuf| path.metadata().is_ok_and(|found| found.is_file() && found.len() > 0);
    [Some(package), downloaded].into_iter().flatten().find(has_content)
}

/// The cache of debuginfod's client.
fn cache_folder() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let user = || variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    variable("DEBUGINFOD_CACHE_PATH").or_else(|| Some(user()?.join("debuginfod_client")))
}
