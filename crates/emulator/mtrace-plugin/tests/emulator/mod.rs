//! Where the emulator is.

use std::path::PathBuf;

/// The emulator of programs: the one in PATH, or the one that `commutant prepare --emulator` has fetched.
pub fn emulator() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if let Some(found) = std::env::split_paths(&path).map(|folder| folder.join("qemu-x86_64")).find(|one| one.is_file())
    {
        return vec![found];
    }
    let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache");
    let cache = std::env::var_os("XDG_CACHE_HOME").map_or(home, PathBuf::from).join("commutant/emulator");
    let mut kept = std::fs::read_dir(&cache).into_iter().flatten().flatten().map(|entry| entry.path());
    let folder = kept.find(|folder| folder.join("qemu-x86_64").is_file()).expect("run `commutant prepare --emulator`");
    let emulator = folder.join("qemu-x86_64");
    vec!["/lib64/ld-linux-x86-64.so.2".into(), "--library-path".into(), folder, emulator]
}
