//! Builds the loader of `scalefs run`, a program without a library, which this one carries in itself.
//!
//! It is built apart, so that the crates that both use come without the standard library there. Its assertions are on where this
//! program's are: both look at the same memory, and are refused if they would lay it out in other ways.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the crates lie that the loader may use.
const SOURCES: [&str; 2] = ["../../structures", ".."];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let target = env::var("TARGET").unwrap_or_default();
    let loader = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says where")).join("loader");
    // Elsewhere `run` says that it is not there.
    if target != "x86_64-unknown-linux-gnu" || env::var_os("CARGO_CFG_MIRI").is_some() {
        std::fs::write(&loader, b"").expect("the folder is cargo's");
        return;
    }
    watch_sources();
    let built = build(&loader.with_extension("target"));
    std::fs::copy(built, loader).expect("the loader was built");
}

/// The loader is built again where it or a crate that it uses has changed, and for none of those that lie next to them: its lock
/// file says which these are.
fn watch_sources() {
    watch(Path::new("shim"));
    println!("cargo:rerun-if-changed=shim/Cargo.lock");
    let lock = std::fs::read_to_string("shim/Cargo.lock").expect("our sources");
    let own = lock.split("[[package]]").filter(|package| !package.contains("\nsource = "));
    for name in own.filter_map(|package| package.split("name = \"").nth(1)?.split('"').next()) {
        for folder in SOURCES.map(|source| Path::new(source).join(name)) {
            if folder.is_dir() {
                watch(&folder);
            }
        }
    }
}

fn watch(folder: &Path) {
    for part in ["src", "Cargo.toml", "build.rs"] {
        if folder.join(part).exists() {
            println!("cargo:rerun-if-changed={}", folder.join(part).display());
        }
    }
}

fn build(folder: &Path) -> PathBuf {
    let mut command = Command::new(env::var_os("CARGO").expect("cargo says where it is"));
    command.args(["build", "--release", "--locked", "--offline", "--manifest-path", "shim/Cargo.toml"]);
    command.arg("--target-dir").arg(folder);
    let has_assertions = env::var_os("CARGO_CFG_DEBUG_ASSERTIONS").is_some();
    command.arg("--config").arg(format!("profile.release.debug-assertions={has_assertions}"));
    if env::var_os("CARGO_FEATURE_PLANTED_FAULTS").is_some() {
        command.args(["--features", "planted-faults"]);
    }
    // What checks or measures this program is not for the other one.
    for name in
        ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "CARGO_BUILD_TARGET"]
    {
        command.env_remove(name);
    }
    // The system's linker: that of the toolchain takes no address.
    command.env("RUSTFLAGS", "-Clinker-features=-lld");
    let status = command.status().expect("cargo is there");
    assert!(status.success(), "the loader was not built: see above");
    folder.join("release/scalefs-shim")
}
