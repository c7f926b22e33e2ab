//! The file system under test: what the kernel lacks for it is loaded, its disk is made, and it is mounted.
//!
//! The host has put everything into the initramfs, since the guest reaches nothing else:
//!
//! ```text
//! /modules/NN-NAME.ko   kernel modules, to be loaded in the order of their numbers
//! /disk/OFFSET          what stands on the disk at that byte (hexadecimal); all else of it is zero
//! ```
//!
//! The disk is the RAM disk of the kernel's driver `brd`, which carries out a request at once, in the task that makes it:
//! there is no other thread whose accesses would be no one's. Overlay needs no disk: its layers are directories of a
//! tmpfs.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const MODULES: &str = "/modules";
const DISK_CONTENT: &str = "/disk";
const DISK: &str = "/dev/ram0";

/// Mount options that are no text of the file system's own but flags of mount(2).
const FLAGS: [(&str, libc::c_ulong); 8] = [
    ("noatime", libc::MS_NOATIME),
    ("relatime", libc::MS_RELATIME),
    ("strictatime", libc::MS_STRICTATIME),
    ("nodiratime", libc::MS_NODIRATIME),
    ("lazytime", MS_LAZYTIME),
    ("sync", libc::MS_SYNCHRONOUS),
    ("dirsync", libc::MS_DIRSYNC),
    ("silent", libc::MS_SILENT),
];
const MS_LAZYTIME: libc::c_ulong = 1 << 25;

/// What says when times of access are noted. Without any of these they are not: with the kernel's default (relatime) the
/// first read of a file that a set-up has just written notes one if the clock has ticked in between, which is luck.
const ACCESS_TIMES: libc::c_ulong = libc::MS_NOATIME | libc::MS_RELATIME | libc::MS_STRICTATIME;

/// Where the layers of overlay lie.
const LAYERS: &str = "/layers";
const LAYER_OPTIONS: &str = "lowerdir=/layers/lower,upperdir=/layers/upper,workdir=/layers/work";

/// Loads the modules that the host gave, and frees their memory. A module gets the parameters that the kernel's command
/// line has for it (`brd.rd_size=1024`), as the kernel's own parts and modprobe do.
///
/// # Errors
/// A module cannot be read or is refused; the text names it.
pub fn load_modules(command_line: &str) -> io::Result<()> {
    for file in sorted_files(MODULES)? {
        let parameters = CString::new(parameters(command_line, module_name(&file)))?;
        let module = File::open(&file)?;
        // SAFETY: a live descriptor and a live text.
        let result = unsafe { libc::syscall(libc::SYS_finit_module, module.as_raw_fd(), parameters.as_ptr(), 0) };
        if result != 0 {
            return Err(explain(&format!("loading the module {}", file.display()), &io::Error::last_os_error()));
        }
        fs::remove_file(&file)?;
    }
    Ok(())
}

/// Fills the disk, if the host gave any content, and mounts the file system on a new directory. Of overlay's layers the
/// upper one gets all that is made.
///
/// # Errors
/// There is no RAM disk, or the kernel does not mount the file system.
pub fn mount_under_test(kind: &str, options: &str, directory: &str) -> io::Result<()> {
    let has_disk = fill_disk()?;
    if kind != "overlay" {
        return mount(if has_disk { DISK } else { "windows" }, directory, kind, options);
    }
    mount("layers", LAYERS, "tmpfs", "")?;
    for layer in ["lower", "upper", "work"] {
        fs::create_dir(Path::new(LAYERS).join(layer))?;
    }
    let options = if options.is_empty() { LAYER_OPTIONS.to_owned() } else { format!("{LAYER_OPTIONS},{options}") };
    mount("windows", directory, kind, &options)
}

/// Mounts a file system on a directory, which is made if it is missing.
///
/// # Errors
/// As the kernel says; the text names both.
pub fn mount(source: &str, directory: &str, kind: &str, options: &str) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let (flags, data) = flags_and_data(options);
    let [source, target, kind_text, data] = [source, directory, kind, &data].map(CString::new);
    let (source, target, kind_text, data) = (source?, target?, kind_text?, data?);
    // SAFETY: four live texts.
    let result =
        unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind_text.as_ptr(), flags, data.as_ptr().cast()) };
    if result == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    let with = if options.is_empty() { String::new() } else { format!(" with {options}") };
    Err(explain(&format!("mounting {kind} on {directory}{with}"), &error))
}

/// Writes what the host gave to the disk; whether it gave anything.
fn fill_disk() -> io::Result<bool> {
    let parts = sorted_files(DISK_CONTENT)?;
    if parts.is_empty() {
        return Ok(false);
    }
    let disk = OpenOptions::new().write(true).open(DISK).map_err(|error| explain(DISK, &error))?;
    for file in parts {
        let offset = file.file_name().and_then(|name| u64::from_str_radix(name.to_str()?, 16).ok());
        let offset = offset.ok_or_else(|| io::Error::other(format!("{}: expected an offset", file.display())))?;
        disk.write_all_at(&fs::read(&file)?, offset).map_err(|error| explain(DISK, &error))?;
        fs::remove_file(&file)?;
    }
    disk.sync_all()?;
    Ok(true)
}

/// Mount options as mount(2) wants them: the flags, and what is left for the file system.
fn flags_and_data(options: &str) -> (libc::c_ulong, String) {
    let (mut flags, mut data) = (0, Vec::new());
    for option in options.split(',').filter(|option| !option.is_empty()) {
        match FLAGS.iter().find(|(name, _)| *name == option) {
            Some((_, flag)) => flags |= flag,
            None => data.push(option),
        }
    }
    if flags & ACCESS_TIMES == 0 {
        flags |= libc::MS_NOATIME;
    }
    (flags, data.join(","))
}

fn explain(what: &str, error: &io::Error) -> io::Error {
    io::Error::other(format!("{what}: {error}"))
}

/// The files of a directory by name; none if it does not exist.
fn sorted_files(directory: &str) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut files = entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}

/// The name in `NN-NAME.ko`.
fn module_name(file: &Path) -> &str {
    let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    stem.split_once('-').map_or(stem, |(_, name)| name)
}

/// What a command line says to a module, as one text.
fn parameters(command_line: &str, module: &str) -> String {
    let own = command_line.split_whitespace().filter_map(|word| word.strip_prefix(module)?.strip_prefix('.'));
    own.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_gets_what_the_command_line_has_for_it() {
        assert_eq!(module_name(Path::new("/modules/07-crc32c_generic.ko")), "crc32c_generic");
        let command_line = "quiet brd.rd_size=1024 brd.rd_nr=1 brdx.a=1 xbrd.b=2";
        assert_eq!(parameters(command_line, "brd"), "rd_size=1024 rd_nr=1");
        assert_eq!(parameters(command_line, "ext4"), "");
    }

    #[test]
    fn mount_options_are_flags_or_the_file_system_s() {
        let none = libc::MS_NOATIME;
        assert_eq!(flags_and_data(""), (none, String::new()));
        assert_eq!(
            flags_and_data("data=journal,sync,size=1m"),
            (none | libc::MS_SYNCHRONOUS, "data=journal,size=1m".into())
        );
        assert_eq!(flags_and_data("relatime,lazytime"), (libc::MS_RELATIME | MS_LAZYTIME, String::new()));
    }

    #[test]
    fn files_come_by_name_and_a_missing_directory_holds_none() {
        assert_eq!(sorted_files("/nowhere/at/all").unwrap(), Vec::<PathBuf>::new());
        let directory = std::env::temp_dir().join(format!("commutant-runner-{}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        for name in ["10-b.ko", "02-a.ko", "00-c.ko"] {
            File::create(directory.join(name)).unwrap();
        }
        let names: Vec<_> = sorted_files(directory.to_str().unwrap())
            .unwrap()
            .iter()
            .map(|file| module_name(file).to_owned())
            .collect();
        fs::remove_dir_all(&directory).unwrap();
        assert_eq!(names, ["c", "a", "b"]);
    }
}
