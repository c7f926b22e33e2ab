//! What domains see of each other's data, and when.

/// How fresh data of files must be. All domains of a file system have the same level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// POSIX: what is written is read by anyone from then on. Data of files lie with their owners.
    #[default]
    Posix,
    /// What a domain has written is read by others that open the file after it was closed or synchronised; until then they read
    /// this or what was there before. A domain keeps copies of what it has open, and writes them.
    CloseToOpen,
}
