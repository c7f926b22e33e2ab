//! What paths of source files tell: whose code they are.

/// Namespaces of the libraries that come with compilers: rustc says of no type which file it is from.
pub(super) const LIBRARY_NAMESPACES: [&str; 6] = ["std", "core", "alloc", "hashbrown", "__gnu_cxx", "__detail"];

/// What source files tell by their paths.
pub(crate) struct SourceFiles;

impl SourceFiles {
    /// Whether a file comes with a compiler or its library: of Rust's, C++'s or the C library.
    pub fn is_of_library(path: &str) -> bool {
        path.starts_with("/rustc/")
            || path.contains("/rustlib/src/")
            || path.starts_with("/usr/include/")
            || path.starts_with("/usr/lib/")
            || path.contains("/libstdc++-v3/")
            || path.contains("/hashbrown-")
    }

    /// Whether types of a file, or of a Rust crate, come with a compiler or the C library. Packages of a system have their
    /// headers in the same folder, but they are libraries like any other.
    pub fn come_with_compiler(origin: &str) -> bool {
        const FOLDERS: [&str; 5] = ["/bits/", "/sys/", "/asm/", "/asm-generic/", "/linux/"];
        let of_c_library = || {
            let rest = origin.strip_prefix("/usr/include");
            let rest = rest.map(|rest| rest.strip_prefix("/x86_64-linux-gnu").unwrap_or(rest));
            rest.is_some_and(|rest| FOLDERS.iter().any(|folder| rest.starts_with(folder)))
        };
        LIBRARY_NAMESPACES.contains(&origin)
            || origin.contains("/include/c++/")
            || origin.starts_with("/usr/lib/")
            || of_c_library()
    }
}
