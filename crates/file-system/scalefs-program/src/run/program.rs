//! The program that is run first: where it lies, and whether it can be.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use scalefs::{Fields, FileSystem, Follow, Kind, Start, attributes};

use super::Failure;

const NOT_FOUND: u8 = 127;
const CANNOT_BE_RUN: u8 = 126;
/// What starts programs that lie in the tree, and scripts, as `exec` does.
const STARTER: &str = "/usr/bin/env";
const SET_IDS: u32 = 0o6000;

/// What is loaded first, and the arguments before those of the program.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) loaded: PathBuf,
    pub(super) arguments: Vec<OsString>,
}

/// Finds a program as a shell would, with the tree as the present directory.
pub(super) fn find(name: &OsStr, top: &Path, files: &FileSystem) -> Result<Program, Failure> {
    let shown = name.display();
    let missing = || Failure { code: NOT_FOUND, why: format!("{shown}: there is no such program") };
    if name.as_bytes().contains(&b'/') {
        let path = plain(&top.join(name));
        return match path.starts_with(top) {
            true if is_in_tree(&path, files) => by_starter(path.into_os_string()),
            true => Err(missing()),
            false => outside(&path, name).unwrap_or_else(|| Err(missing())),
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let candidates = std::env::split_paths(&path).map(|folder| folder.join(name));
    let mut refusal = None;
    for candidate in candidates {
        match outside(&candidate, name) {
            Some(Ok(program)) => return Ok(program),
            Some(Err(why)) => refusal = refusal.or(Some(why)),
            None => {}
        }
    }
    Err(refusal.unwrap_or_else(missing))
}

/// A path without `.` and `..`, which go up as text does.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, component| {
        match component {
            Component::ParentDir => _ = plain.pop(),
            Component::CurDir => {}
            other => plain.push(other),
        }
        plain
    })
}

fn is_in_tree(path: &Path, files: &FileSystem) -> bool {
    let path = path.as_os_str().as_bytes();
    let found =
        files.act(|calls| attributes::stat(&*calls, Start::WorkingDirectory, path, Follow::Nothing, Fields::IDENTITY));
    found.is_ok_and(|status| status.kind != Kind::Directory)
}

fn by_starter(path: OsString) -> Result<Program, Failure> {
    let loaded = PathBuf::from(STARTER);
    if !loaded.is_file() {
        let why = format!("{STARTER} is not there, which starts scripts and programs of the tree");
        return Err(Failure { code: CANNOT_BE_RUN, why });
    }
    Ok(Program { loaded, arguments: vec!["env".into(), "--".into(), path] })
}

/// A program of the system; nothing if there is none.
fn outside(path: &Path, name: &OsStr) -> Option<Result<Program, Failure>> {
    let metadata = std::fs::metadata(path).ok()?;
    let shown = path.display();
    let refused = |why: String| Some(Err(Failure { code: CANNOT_BE_RUN, why }));
    if metadata.is_dir() {
        return None;
    }
    if !metadata.is_file() || metadata.permissions().mode() & 0o111 == 0 {
        return refused(format!("{shown} is no program: it is no file that may be executed"));
    }
    if metadata.mode() & SET_IDS != 0 && !nix::unistd::geteuid().is_root() {
        return refused(format!("{shown} acts as another user, which needs the kernel: use scalefs mount for it"));
    }
    let mut head = [0_u8; 20];
    let read = File::open(path).and_then(|mut file| file.read(&mut head));
    match read {
        Err(error) => refused(format!("{shown}: {error}")),
        Ok(_) if head.starts_with(b"\x7fELF") && (head[4] != 2 || head[18] != 62) => {
            refused(format!("{shown} is a program for another processor: expected 64 bits of x86-64"))
        }
        Ok(_) if head.starts_with(b"\x7fELF") => Some(
            path.canonicalize()
                .map_err(|error| format!("{shown}: {error}").into())
                .map(|loaded| Program { loaded, arguments: vec![name.to_owned()] }),
        ),
        Ok(_) if head.starts_with(b"#!") => Some(by_starter(path.as_os_str().to_owned())),
        Ok(_) => refused(format!("{shown} is no program: it begins neither as one nor with #!")),
    }
}
