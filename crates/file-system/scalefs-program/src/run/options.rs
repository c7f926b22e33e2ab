//! What is asked for on the command line of `scalefs run`, and where the tree may be seen.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::names;
use crate::arguments::{Arguments, DEFAULT_SIZE_BYTES, absolute, parse_size};
use crate::transaction::{TransactionOptions, parse_retries};

pub(crate) const RUN_HELP: &str = "\
scalefs run [OPTIONS] -- PROGRAM [ARGUMENTS]
Runs a program, and all that it starts, so that a directory is a new ScaleFS for them, and for them alone. It needs no rights, and
nothing is mounted. The program begins in that directory. All is lost in the end, unless --to says where it goes.

  --at DIR           the directory, which exists and is hidden for them (default: the present one)
  --size N           room for data: bytes, or K, M, G (default 1G); memory is taken as it is used
  --from DIR|TAR     begin with a copy of a directory, or with what an archive holds
  --to DIR|TAR       in the end copy all into a new or empty directory, or into a new archive
  --instance NAME    what the tree is called for scalefs status and stop (default: the number of this process)

scalefs run --transaction [--at DIR] [--retry N] -- PROGRAM [ARGUMENTS]
Runs a program, and all that it starts, on the ScaleFS that is mounted where DIR lies, by scalefs mount --no-cache. What they change there
happens at one moment, when all have ended and PROGRAM with 0; else nothing has changed. It is refused, with exit code 75, if others have
changed what they had seen. It takes root. What is outside of that ScaleFS is not undone: other files, sockets, what was printed.

  --at DIR           where the program begins (default: the present directory)
  --retry N          so often it begins again when it was refused (default 0)

Examples:
  scalefs run --from . -- make -j2
  scalefs run --transaction --at /mnt/build --retry 3 -- make install
  scalefs run --at /mnt/build --from . --to ../result -- sh -c './configure && make'

It ends with the program's exit code, or 128 and the number of the signal that ended it; with 127 if there is no such program, 126
if it cannot be run, and 1 if something else went wrong. It needs Linux 5.11 on x86-64.";

/// How a program is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunOptions {
    /// The directory at which the tree is seen.
    pub(crate) top: PathBuf,
    pub(crate) size_bytes: u64,
    pub(crate) from: Option<PathBuf>,
    pub(crate) to: Option<PathBuf>,
    pub(crate) instance: Option<String>,
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
}

/// What `run` is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// To run a program in a new tree.
    OfTree(RunOptions),
    /// Or in a transaction, on a ScaleFS that is mounted.
    OfTransaction(TransactionOptions),
}

pub(crate) fn parse_run(arguments: &[OsString]) -> Result<Asked, String> {
    let (given, program) = match arguments.iter().position(|argument| argument == "--") {
        Some(dashes) => (&arguments[..dashes], &arguments[dashes + 1..]),
        None => (arguments, &[][..]),
    };
    let (mut top, mut size_bytes, mut from, mut to, mut instance) = (None, DEFAULT_SIZE_BYTES, None, None, None);
    let (mut is_transaction, mut retries) = (false, None);
    let of_tree = ["--size", "--from", "--to", "--instance"];
    let of_new_tree = given.iter().find(|argument| of_tree.iter().any(|option| argument == option));
    let mut given = Arguments::of("run", given);
    while let Some((argument, _)) = given.next() {
        match argument.to_str() {
            Some("--at") => top = Some(absolute(given.value("--at")?)?),
            Some("--size") => size_bytes = parse_size(given.value("--size")?)?,
            Some("--from") => from = Some(absolute(given.value("--from")?)?),
            Some("--to") => to = Some(absolute(given.value("--to")?)?),
            Some("--instance") => instance = Some(name_of(given.value("--instance")?)?),
            Some("--transaction") => is_transaction = true,
            Some("--retry") => retries = Some(parse_retries(given.value("--retry")?)?),
            Some(option) if option.starts_with('-') => return Err(given.unknown(argument)),
            _ => {
                return Err(format!(
                    "{} stands before --: expected scalefs run [OPTIONS] -- PROGRAM",
                    argument.display()
                ));
            }
        }
    }
    let Some((program, arguments)) = program.split_first() else {
        return Err("expected a program after --: see scalefs run --help".to_owned());
    };
    let present = || std::env::current_dir().map_err(|error| format!("the present directory: {error}"));
    let top = top.map_or_else(present, Ok)?;
    let (program, arguments) = (program.clone(), arguments.to_vec());
    match (is_transaction, of_new_tree, retries) {
        (true, Some(option), _) => {
            Err(format!("{} is for a new tree: --transaction works on a ScaleFS that is mounted", option.display()))
        }
        (true, None, retries) => {
            let retries = retries.unwrap_or(0);
            Ok(Asked::OfTransaction(TransactionOptions { at: top, retries, program, arguments }))
        }
        (false, _, Some(_)) => Err("--retry is for --transaction".to_owned()),
        (false, _, None) => Ok(Asked::OfTree(RunOptions { top, size_bytes, from, to, instance, program, arguments })),
    }
}

/// The name of a tree.
pub(crate) fn name_of(given: &OsStr) -> Result<String, String> {
    let name = given.to_string_lossy().into_owned();
    names::check(&name).map(|()| name)
}

/// The true path of the directory at which a tree can be seen, or why it cannot.
pub(super) fn check_top(path: &Path) -> Result<PathBuf, String> {
    let shown = path.display();
    let top = path.canonicalize().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("--at {shown} does not exist: make it first, mkdir {shown}"),
        _ => format!("--at {shown}: {error}"),
    })?;
    if !top.is_dir() {
        return Err(format!("--at {shown} is no directory: a ScaleFS is seen at a directory"));
    }
    if top.parent().is_none() {
        return Err("--at /: the tree cannot hide all files: take a directory below".to_owned());
    }
    if ["/proc", "/sys", "/dev"].iter().any(|hidden| top.starts_with(hidden)) {
        return Err(format!("--at {shown}: the kernel's own files are there: take a directory elsewhere"));
    }
    Ok(top)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Asked, String> {
        parse_run(&arguments.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn what_follows_the_dashes_is_the_programs() {
        let command = parsed(&["--size", "5M", "--", "ls", "--size", "--", "x"]);
        let Ok(Asked::OfTree(options)) = command else { panic!("{command:?}") };
        assert_eq!(options.size_bytes, 5 << 20);
        assert_eq!((options.program.to_str(), options.arguments.len()), (Some("ls"), 3));
        assert!(options.top.is_absolute());
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (arguments, expected) in [
            (vec!["--"], "expected a program after --"),
            (vec![], "expected a program after --"),
            (vec!["ls"], "ls stands before --"),
            (vec!["--att", "/", "--", "ls"], "--att is no option of run"),
            (vec!["--size"], "--size needs a value"),
            (vec!["--instance", "a/b", "--", "ls"], "expected up to 64 letters"),
            (vec!["--retry", "3", "--", "ls"], "--retry is for --transaction"),
            (vec!["--transaction", "--retry", "few", "--", "ls"], "expected a number, got few"),
            (vec!["--transaction", "--retry", "-1", "--", "ls"], "expected a number, got -1"),
            (vec!["--transaction", "--size", "1G", "--", "ls"], "--size is for a new tree"),
            (vec!["--transaction"], "expected a program after --"),
        ] {
            let said = parsed(&arguments).expect_err("it is wrong");
            assert!(said.contains(expected) && said.lines().count() == 1, "{said}");
        }
    }

    #[test]
    fn a_tree_is_seen_at_a_directory_alone() {
        for (path, expected) in [
            ("/no/such/place", "does not exist: make it first"),
            ("/proc/self/status", "is no directory"),
            ("/", "cannot hide all files"),
            ("/proc", "the kernel's own files"),
        ] {
            let said = check_top(Path::new(path)).expect_err("it is wrong");
            assert!(said.contains(expected), "{said}");
        }
    }
}
