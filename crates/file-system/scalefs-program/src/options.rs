//! What is asked for on the command line.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::arguments::{Arguments, DEFAULT_SIZE_BYTES, absolute, parse_size};
use crate::door::Caching;
use crate::run::{Asked, CHECK, Follows, HEIR, RUN_HELP, RunOptions, name_of, parse_run};
use crate::transaction::TransactionOptions;

const HELP: &str = "\
scalefs: a POSIX file system in memory, as a directory for all programs

  scalefs run -- PROGRAM   run a program, and all that it starts, with a directory that is a ScaleFS; or, with --transaction, so that
                           all it changes on a mounted ScaleFS happens at one moment, or nothing does
  scalefs mount DIR        make DIR a new, empty ScaleFS, until it is unmounted
  scalefs unmount DIR      end it
  scalefs status           list what is mounted and which trees are run; look whether they are whole
  scalefs stop             end all processes of a tree of scalefs run

Examples:
  scalefs run --from . -- make -j2
  scalefs mount --no-cache /mnt/build
  scalefs run --transaction --at /mnt/build --retry 3 -- make install

`scalefs VERB --help` says more. Exit codes: 0 done, 1 it could not be done, 2 the command line is wrong.";

const MOUNT_HELP: &str = "\
scalefs mount [OPTIONS] DIR
Makes the empty directory DIR a ScaleFS. Its files are in memory, and are lost when it ends, unless --to says where they go.

  --size N           room for data: bytes, or K, M, G (default 1G); memory is taken as it is used
  --from DIR|TAR     begin with a copy of a directory, or with what an archive holds
  --to DIR|TAR       in the end copy all into a new or empty directory, or into a new archive
  --foreground       stay until it is unmounted; ctrl-C unmounts
  --no-cache         let the kernel cache nothing: each call is a request; for scalefs run --transaction
  --suid             obey set-id bits of programs in DIR
  --dev              obey devices in DIR

Examples:
  mkdir /mnt/build && scalefs mount --size 2G /mnt/build
  scalefs mount --from . --to ../result /mnt/build && make -C /mnt/build && scalefs unmount /mnt/build
  scalefs mount --from sources.tar --foreground /mnt/build

It needs /dev/fuse, and the rights of root or the program fusermount3 (Debian: package fuse3).";

const UNMOUNT_HELP: &str = "\
scalefs unmount [--lazy] DIR
Ends a ScaleFS, and waits until its server has ended: what `mount --to` asked for is there then.

  --lazy    also while DIR is in use: it is gone at once, and ends when its last file is closed

Example:
  scalefs unmount /mnt/build";

const STATUS_HELP: &str = "\
scalefs status [DIR]
scalefs status [--check] [--instance NAME]
Lists each ScaleFS that is mounted, or that at DIR, and each tree of scalefs run of this user, or that of this name: where, its server's
or supervisor's process, room and used room, files.

  --check            look whether each tree is whole: names, inodes, pages, locks. Its calls wait meanwhile. Exit code 1 if one is not
  --instance NAME    the tree of this name alone";

const STOP_HELP: &str = "\
scalefs stop [--instance NAME]
Ends all processes of a tree of scalefs run, by TERM, and by KILL after two seconds. Waits until it has ended, and was copied out if
scalefs run was asked for that. NAME can be left out where there is one tree alone.";

/// How a ScaleFS is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MountOptions {
    pub(crate) mount_point: PathBuf,
    pub(crate) size_bytes: u64,
    pub(crate) from: Option<PathBuf>,
    pub(crate) to: Option<PathBuf>,
    pub(crate) is_in_foreground: bool,
    pub(crate) caching: Caching,
    pub(crate) obeys_set_ids: bool,
    pub(crate) obeys_devices: bool,
}

/// What is unmounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnmountOptions {
    pub(crate) mount_point: PathBuf,
    pub(crate) is_lazy: bool,
}

/// What the program is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Say(&'static str),
    Mount(MountOptions),
    /// `mount`, as the process that outlives the command.
    Guard(MountOptions),
    /// `mount`, as the process that answers.
    Serve(MountOptions),
    Unmount(UnmountOptions),
    Run(RunOptions),
    /// `run`, on a ScaleFS that is mounted.
    Transaction(TransactionOptions),
    /// `run`, as the process that takes the place of a supervisor.
    Follow(Follows),
    /// `status --check`, as the process that looks.
    Check,
    Status(StatusOptions),
    /// The name of a tree, if one is given.
    Stop(Option<String>),
}

/// What is asked for by `status`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StatusOptions {
    /// What is mounted at a directory.
    Mounted(PathBuf),
    /// The tree of a name, or all of them, and then also all that is mounted; whether they are whole.
    Trees { name: Option<String>, checks: bool },
}

pub(crate) const GUARD: &str = "mount-guard";
pub(crate) const SERVE: &str = "mount-server";

impl MountOptions {
    /// The same as arguments, with absolute paths.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["--size".into(), self.size_bytes.to_string().into()];
        for (name, path) in [("--from", &self.from), ("--to", &self.to)] {
            if let Some(path) = path {
                arguments.extend([name.into(), path.clone().into()]);
            }
        }
        let flags = [
            ("--foreground", self.is_in_foreground),
            ("--no-cache", self.caching == Caching::Nothing),
            ("--suid", self.obeys_set_ids),
            ("--dev", self.obeys_devices),
        ];
        arguments.extend(flags.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| OsString::from(name)));
        arguments.extend(["--".into(), self.mount_point.clone().into()]);
        arguments
    }
}

/// What the arguments ask for, or why they cannot be.
pub(crate) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Command, String> {
    let arguments: Vec<OsString> = arguments.collect();
    let Some((verb, rest)) = arguments.split_first() else { return Ok(Command::Say(HELP)) };
    let wants_help = rest.iter().take_while(|argument| *argument != "--").any(|a| a == "--help" || a == "-h");
    match verb.to_str() {
        Some("--help" | "-h" | "help") => Ok(Command::Say(HELP)),
        Some("--version") => Ok(Command::Say(concat!("scalefs ", env!("CARGO_PKG_VERSION")))),
        Some("run") if wants_help => Ok(Command::Say(RUN_HELP)),
        Some("run") => parse_run(rest).map(|asked| match asked {
            Asked::OfTree(options) => Command::Run(options),
            Asked::OfTransaction(options) => Command::Transaction(options),
        }),
        Some("mount") if wants_help => Ok(Command::Say(MOUNT_HELP)),
        Some("unmount") if wants_help => Ok(Command::Say(UNMOUNT_HELP)),
        Some("status") if wants_help => Ok(Command::Say(STATUS_HELP)),
        Some("mount") => parse_mount(rest).map(Command::Mount),
        Some(GUARD) => parse_mount(rest).map(Command::Guard),
        Some(SERVE) => parse_mount(rest).map(Command::Serve),
        Some("unmount") => parse_unmount(rest).map(Command::Unmount),
        Some("status") => parse_status(rest).map(Command::Status),
        Some("stop") if wants_help => Ok(Command::Say(STOP_HELP)),
        Some("stop") => parse_stop(rest).map(Command::Stop),
        Some(HEIR) => parse_heir(rest).map(Command::Follow),
        Some(CHECK) => Ok(Command::Check),
        _ => Err(format!("expected run, mount, unmount, status or stop, got {}: see scalefs --help", verb.display())),
    }
}

fn parse_mount(arguments: &[OsString]) -> Result<MountOptions, String> {
    let mut options = MountOptions {
        mount_point: PathBuf::new(),
        size_bytes: DEFAULT_SIZE_BYTES,
        from: None,
        to: None,
        is_in_foreground: false,
        caching: Caching::Full,
        obeys_set_ids: false,
        obeys_devices: false,
    };
    let (mut arguments, mut paths) = (Arguments::of("mount", arguments), Vec::new());
    while let Some((argument, is_option)) = arguments.next() {
        match argument.to_str() {
            _ if !is_option => paths.push(argument),
            Some("--size") => options.size_bytes = parse_size(arguments.value("--size")?)?,
            Some("--from") => options.from = Some(absolute(arguments.value("--from")?)?),
            Some("--to") => options.to = Some(absolute(arguments.value("--to")?)?),
            Some("--foreground") => options.is_in_foreground = true,
            Some("--no-cache") => options.caching = Caching::Nothing,
            Some("--suid") => options.obeys_set_ids = true,
            Some("--dev") => options.obeys_devices = true,
            _ => return Err(arguments.unknown(argument)),
        }
    }
    options.mount_point = arguments.only(&paths)?;
    Ok(options)
}

fn parse_unmount(arguments: &[OsString]) -> Result<UnmountOptions, String> {
    let (mut arguments, mut paths, mut is_lazy) = (Arguments::of("unmount", arguments), Vec::new(), false);
    while let Some((argument, is_option)) = arguments.next() {
        match argument.to_str() {
            _ if !is_option => paths.push(argument),
            Some("--lazy") => is_lazy = true,
            _ => return Err(arguments.unknown(argument)),
        }
    }
    Ok(UnmountOptions { mount_point: arguments.only(&paths)?, is_lazy })
}

fn parse_status(arguments: &[OsString]) -> Result<StatusOptions, String> {
    let (mut arguments, mut paths) = (Arguments::of("status", arguments), Vec::new());
    let (mut name, mut checks) = (None, false);
    while let Some((argument, is_option)) = arguments.next() {
        match argument.to_str() {
            _ if !is_option => paths.push(argument),
            Some("--check") => checks = true,
            Some("--instance") => name = Some(name_of(arguments.value("--instance")?)?),
            _ => return Err(arguments.unknown(argument)),
        }
    }
    match paths.is_empty() {
        true => Ok(StatusOptions::Trees { name, checks }),
        false if checks || name.is_some() => {
            Err("--check and --instance are for trees of scalefs run, which have no directory here".to_owned())
        }
        false => arguments.only(&paths).map(StatusOptions::Mounted),
    }
}

fn parse_stop(arguments: &[OsString]) -> Result<Option<String>, String> {
    let (mut arguments, mut name) = (Arguments::of("stop", arguments), None);
    while let Some((argument, _)) = arguments.next() {
        match argument.to_str() {
            Some("--instance") => name = Some(name_of(arguments.value("--instance")?)?),
            _ => return Err(arguments.unknown(argument)),
        }
    }
    Ok(name)
}

fn parse_heir(arguments: &[OsString]) -> Result<Follows, String> {
    let (process, to) = match arguments {
        [process, dashes] if dashes == "--" => (process, None),
        [process, dashes, to] if dashes == "--" => (process, Some(PathBuf::from(to))),
        _ => return Err(format!("{HEIR} is not for users")),
    };
    let process = process.to_str().and_then(|digits| digits.parse().ok());
    Ok(Follows { process: process.ok_or(format!("{HEIR} is not for users"))?, to })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Command, String> {
        parse(arguments.iter().map(OsString::from))
    }

    #[test]
    fn arguments_say_the_same_again() {
        let command = parsed(&["mount", "--to", "out.tar", "--size", "5M", "--suid", "--no-cache", "--", "--place"]);
        let Ok(Command::Mount(options)) = command else { panic!("{command:?}") };
        assert!(options.mount_point.is_absolute() && options.mount_point.ends_with("--place"));
        assert_eq!(parse_mount(&options.arguments()), Ok(options));
    }

    #[test]
    fn an_heir_is_asked_for_what_it_follows() {
        let command = parsed(&["run-heir", "7", "--", "--to"]);
        assert_eq!(command, Ok(Command::Follow(Follows { process: 7, to: Some(PathBuf::from("--to")) })));
        assert_eq!(parsed(&["run-heir", "7", "--"]), Ok(Command::Follow(Follows { process: 7, to: None })));
        let both = Command::Status(StatusOptions::Trees { name: Some("a".to_owned()), checks: true });
        assert_eq!(parsed(&["status", "--check", "--instance", "a"]), Ok(both));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (arguments, expected) in [
            (vec!["mount"], "expected one directory, got 0"),
            (vec!["mount", "a", "b"], "expected one directory, got 2"),
            (vec!["mount", ""], "expected one directory, got 1"),
            (vec!["mount", "--size"], "--size needs a value"),
            (vec!["mount", "--siez", "1G", "a"], "--siez is no option of mount"),
            (vec!["mout", "a"], "expected run, mount, unmount, status or stop, got mout"),
            (vec!["unmount", "--to", "a"], "--to is no option of unmount"),
            (vec!["status", "a", "b"], "expected one directory, got 2"),
            (vec!["status", "--check", "a"], "are for trees of scalefs run"),
            (vec!["status", "--instance"], "--instance needs a value"),
            (vec!["stop", "a"], "a is no option of stop"),
            (vec!["stop", "--instance", ""], "expected up to 64 letters"),
            (vec!["run-heir"], "is not for users"),
        ] {
            let said = parsed(&arguments).expect_err("it is wrong");
            assert!(said.contains(expected) && said.lines().count() == 1, "{said}");
        }
    }

    #[test]
    fn each_verb_has_help() {
        for verb in ["run", "mount", "unmount", "status", "stop"] {
            let Ok(Command::Say(text)) = parsed(&[verb, "--help"]) else { panic!("{verb}") };
            assert!(text.starts_with(&format!("scalefs {verb}")));
        }
        assert!(matches!(parsed(&["mount", "--", "--help"]), Ok(Command::Mount(_))));
    }
}
