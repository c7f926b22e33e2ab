//! The directory of a run: the layer of changes, the records of looks, and what a commit puts there.
//!
//! ```text
//! DIR/about              what it is of: version, user, hidden paths          one line each
//! DIR/upper  DIR/work    the overlay's layer of changes, and its own room
//! DIR/records/1, 2, …    the looks of each run                               record.rs
//! DIR/read/1, 2, …       with --merge: the bytes that it has read             record.rs
//! DIR/view   DIR/root    where the run's own mounts are made; empty outside of it
//! DIR/stage              what a commit publishes, and what it replaces       stage.rs
//! DIR/journal            a commit that is decided                            journal.rs
//! ```
//! It belongs to the user who ran the command, and others may not write into it: what is in it decides what a commit does.

use std::fs::{self, DirBuilder, File};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::escape;
use crate::failure::Failure;
use crate::machine::{Right, right};
use crate::place::Place;
use crate::stops::planted;

const FIRST_LINE: &str = "commutant-try workspace 1";
const ABOUT: &str = "about";
/// Its folders.
pub(crate) const FOLDERS: [&str; 7] = ["upper", "work", "records", READ, "view", "root", "stage"];
const READ: &str = "read";

/// A workspace that this process alone uses.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) path: PathBuf,
    /// The open directory; its lock ends with it.
    pub(crate) directory: OwnedFd,
    pub(crate) place: Place,
    pub(crate) hidden: Vec<Place>,
    /// The command of the last run, for messages.
    pub(crate) command: String,
    /// By which right its layer was made: it says which attributes are the overlay's own.
    pub(crate) right: Right,
}

impl Workspace {
    /// A new workspace in the user's folder of state.
    pub(crate) fn create_anywhere() -> Result<Workspace, Failure> {
        let above = state_folder()?;
        let above = if is_on_overlay(&above) { folder_in_memory() } else { above };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&above)
            .map_err(Failure::doing(format!("making {}", above.display())))?;
        for _ in 0..64 {
            let path = above.join(random_name());
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Workspace::prepare(&path),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Failure::doing(format!("making {}", path.display()))(error)),
            }
        }
        Err(Failure::Run(format!("no free name was found in {}", above.display())))
    }

    /// Takes an empty directory, or a workspace of before, for a run.
    pub(crate) fn prepare(path: &Path) -> Result<Workspace, Failure> {
        let (path, directory) = open(path)?;
        if !path.join(ABOUT).exists() {
            let shown = path.display();
            let mut names = fs::read_dir(&path).map_err(Failure::doing(shown))?;
            if names.next().is_some() {
                return Err(Failure::input(format!(
                    "{} is neither empty nor a workspace of commutant try: take an empty directory",
                    path.display()
                )));
            }
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).map_err(Failure::doing(path.display()))?;
            for folder in FOLDERS {
                DirBuilder::new()
                    .mode(0o700)
                    .create(path.join(folder))
                    .map_err(Failure::doing(format!("making {}", path.join(folder).display())))?;
            }
            let place = place_of(&path)?;
            let made = Workspace { path, directory, place, hidden: Vec::new(), command: String::new(), right: right() };
            made.write_about()?;
            return Ok(made);
        }
        Workspace::of(path, directory)
    }

    /// A workspace of a run, to look at or to commit.
    pub(crate) fn existing(path: &Path) -> Result<Workspace, Failure> {
        let (path, directory) = open(path)?;
        if !path.join(ABOUT).exists() {
            return Err(Failure::input(format!(
                "{} is no workspace: expected a directory that commutant try has made (-n prints it) or was given (-N)",
                path.display()
            )));
        }
        Workspace::of(path, directory)
    }

    fn of(path: PathBuf, directory: OwnedFd) -> Result<Workspace, Failure> {
        let about = path.join(ABOUT);
        let text = fs::read_to_string(&about).map_err(Failure::doing(about.display()))?;
        let wrong = |line: &str| {
            Failure::input(format!(
                "{}: expected what commutant try writes, got `{}`",
                about.display(),
                escape::shown(line.as_bytes())
            ))
        };
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        if first != FIRST_LINE {
            return Err(Failure::input(format!(
                "{}: expected `{FIRST_LINE}`, got `{}`: use the version that made it",
                about.display(),
                escape::shown(first.as_bytes())
            )));
        }
        let place = place_of(&path)?;
        let mut made = Workspace {
            path: path.clone(),
            directory,
            place,
            hidden: Vec::new(),
            command: String::new(),
            right: right(),
        };
        for line in lines {
            let (key, value) = line.split_once(' ').ok_or_else(|| wrong(line))?;
            let bytes = escape::bytes_of(value).ok_or_else(|| wrong(line))?;
            match key {
                "hidden" => made.hidden.push(Place::of_bytes(&bytes).ok_or_else(|| wrong(line))?),
                "right" => {
                    made.right =
                        std::str::from_utf8(&bytes).ok().and_then(Right::of_name).ok_or_else(|| wrong(line))?;
                }
                "command" => made.command = escape::shown(&bytes),
                _ => return Err(wrong(line)),
            }
        }
        for folder in FOLDERS {
            let folder = path.join(folder);
            let is_own = folder.symlink_metadata().is_ok_and(|found| found.is_dir());
            if !is_own {
                return Err(Failure::input(format!("{}: expected a directory of the workspace", folder.display())));
            }
        }
        Ok(made)
    }

    /// Writes what the workspace is of.
    pub(crate) fn write_about(&self) -> Result<(), Failure> {
        let mut text = format!("{FIRST_LINE}\n");
        for place in &self.hidden {
            text.push_str(&format!("hidden {}\n", escape::word(&place.absolute())));
        }
        text.push_str(&format!("right {}\n", self.right.name()));
        text.push_str(&format!("command {}\n", escape::word(self.command.as_bytes())));
        self.replace(ABOUT, text.as_bytes())
    }

    /// Replaces a file of the workspace in one step that outlives a power cut.
    pub(crate) fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        let path = self.path.join(name);
        let failed = || Failure::doing(format!("writing {}", path.display()));
        let new = self.path.join(format!("{name}.new"));
        let written = File::create(&new).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        });
        written.and_then(|()| fs::rename(&new, &path)).map_err(failed())?;
        self.sync()
    }

    /// Makes names in the workspace outlive a power cut.
    pub(crate) fn sync(&self) -> Result<(), Failure> {
        File::open(&self.path).and_then(|folder| folder.sync_all()).map_err(Failure::doing(self.path.display()))
    }

    /// All that the command does not see: the workspace, and what it was to be hidden from.
    pub(crate) fn unseen(&self) -> Vec<Place> {
        self.hidden.iter().cloned().chain([self.place.clone()]).collect()
    }

    /// The records of its runs, the first one first.
    pub(crate) fn records(&self) -> Result<Vec<PathBuf>, Failure> {
        let folder = self.path.join("records");
        let failed = || Failure::doing(folder.display());
        let mut numbers = Vec::new();
        for entry in fs::read_dir(&folder).map_err(failed())? {
            let name = entry.map_err(failed())?.file_name();
            let number = name.to_str().and_then(|name| name.parse::<u32>().ok());
            numbers
                .push(number.ok_or_else(|| Failure::input(format!("{}: a file that is no record", folder.display())))?);
        }
        numbers.sort_unstable();
        Ok(numbers.into_iter().map(|number| folder.join(number.to_string())).collect())
    }

    /// Whether an earlier run has left anything in it.
    pub(crate) fn holds_changes(&self) -> Result<bool, Failure> {
        let upper = self.path.join("upper");
        let mut changed = fs::read_dir(&upper).map_err(Failure::doing(upper.display()))?;
        Ok(!self.records()?.is_empty() || changed.next().is_some())
    }

    /// The path of the next run's record.
    pub(crate) fn next_record(&self) -> Result<PathBuf, Failure> {
        let number =
            self.records()?.last().and_then(|path| path.file_name()?.to_str()?.parse::<u32>().ok()).unwrap_or(0);
        Ok(self.path.join("records").join((number + 1).to_string()))
    }

    /// The path of what the run of a record has read.
    pub(crate) fn read_of(&self, record: &Path) -> PathBuf {
        self.path.join(READ).join(record.file_name().unwrap_or_default())
    }

    /// The same, for a run that begins; a workspace of an earlier version has no folder for it.
    pub(crate) fn place_for_read(&self, record: &Path) -> Result<PathBuf, Failure> {
        let folder = self.path.join(READ);
        let made = DirBuilder::new().mode(0o700).recursive(true).create(&folder);
        made.map_err(Failure::doing(format!("making {}", folder.display())))?;
        Ok(self.read_of(record))
    }

    /// Removes it with all that is in it.
    pub(crate) fn remove(self) -> Result<(), Failure> {
        let name = self.path.file_name().map(|name| name.as_encoded_bytes().to_vec()).unwrap_or_default();
        let above = self.path.parent().unwrap_or(Path::new("/"));
        let above = rustix::fs::open(above, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        above
            .and_then(|above| crate::tree::remove_all(&above, &name))
            .map_err(Failure::calling(format!("removing {}", self.path.display())))
    }

    /// Takes away all changes and records: the workspace is as a new one.
    pub(crate) fn empty(&self) -> Result<(), Failure> {
        for folder in ["upper", "work", "records", READ, "stage"] {
            crate::tree::remove_all(&self.directory, folder.as_bytes())
                .and_then(|()| rustix::fs::mkdirat(&self.directory, folder, Mode::RWXU))
                .map_err(Failure::calling(format!("emptying {}", self.path.join(folder).display())))?;
        }
        Ok(())
    }
}

/// Opens a directory as a workspace of this user, and locks it.
fn open(path: &Path) -> Result<(PathBuf, OwnedFd), Failure> {
    let shown = path.display();
    let path = path.canonicalize().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            Failure::input(format!("{shown} does not exist: expected the directory of a workspace"))
        }
        _ => Failure::doing(shown)(error),
    })?;
    let shown = path.display().to_string();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::open(&path, flags, Mode::empty()).map_err(|error| match error {
        Errno::NOTDIR => Failure::input(format!("{shown} is no directory: expected that of a workspace")),
        _ => Failure::calling(&shown)(error),
    })?;
    if path == Path::new("/") {
        return Err(Failure::input("/ is no workspace: expected a directory of its own for the changes"));
    }
    let metadata = File::from(directory.try_clone().map_err(Failure::doing(&shown))?).metadata();
    let metadata = metadata.map_err(Failure::doing(&shown))?;
    let user = rustix::process::geteuid().as_raw();
    if metadata.uid() != user && !planted("try-program: a layer of anyone is committed") {
        return Err(Failure::input(format!(
            "{shown} belongs to user {}, who decides what is in it: commit it as that user, not as user {user}",
            metadata.uid()
        )));
    }
    if metadata.mode() & 0o022 != 0 {
        return Err(Failure::input(format!(
            "others may write into {shown}, and so decide what is committed: chmod go-w it first, if you know what is in it"
        )));
    }
    rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
        Errno::WOULDBLOCK => {
            Failure::Run(format!("{shown} is in use by another commutant try: wait until that has ended"))
        }
        _ => Failure::calling(format!("locking {shown}"))(error),
    })?;
    Ok((path, directory))
}

fn place_of(path: &Path) -> Result<Place, Failure> {
    Place::of_path(path).ok_or_else(|| Failure::input(format!("{}: expected an absolute path", path.display())))
}

/// `$XDG_STATE_HOME/commutant/try`, or that of the user's home.
fn state_folder() -> Result<PathBuf, Failure> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = set("XDG_STATE_HOME").or_else(|| set("HOME").map(|home| home.join(".local/state")));
    let state = state.ok_or_else(|| {
        Failure::input(
            "neither XDG_STATE_HOME nor HOME is an absolute path: give a directory for the changes with -N DIR",
        )
    })?;
    Ok(state.join("commutant").join("try"))
}

/// Whether a folder lies, or will lie, on an overlay, as in a container or in another run: none takes layers of another.
fn is_on_overlay(folder: &Path) -> bool {
    const OVERLAYFS: u64 = 0x794c_7630;
    let existing = folder.ancestors().find(|above| above.exists()).unwrap_or(Path::new("/"));
    rustix::fs::statfs(existing).is_ok_and(|found| found.f_type as u64 == OVERLAYFS)
}

/// Changes of such a run are kept in memory until they are committed.
fn folder_in_memory() -> PathBuf {
    PathBuf::from(format!("/dev/shm/commutant-try-{}", rustix::process::geteuid().as_raw()))
}

/// A name that no other process takes by chance.
pub(crate) fn random_name() -> String {
    use std::hash::{BuildHasher, Hasher};
    let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    format!("{:016x}", hasher.finish())
}
