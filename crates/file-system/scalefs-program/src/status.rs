//! What is mounted, which trees are run, and how full they are; or whether a tree is whole.

use std::process::ExitCode;

use nix::sys::statvfs::statvfs;

use crate::mount_point::canonical;
use crate::mounts::{self, Mounted};
use crate::options::StatusOptions;
use crate::run::names::{self, Request, Silence};
use crate::run::{DAMAGED, WHOLE};

/// `scalefs status`.
pub(crate) fn status(options: &StatusOptions) -> Result<ExitCode, String> {
    match options {
        StatusOptions::Mounted(path) => {
            let shown = path.display();
            let known = canonical(path).map_err(|error| format!("{shown}: {error}"))?;
            list(vec![mounts::at(&known)?.ok_or_else(|| format!("{shown} is no ScaleFS"))?]);
            Ok(ExitCode::SUCCESS)
        }
        StatusOptions::Trees { name, checks } => {
            let named = || name.clone().map_or_else(names::all, |name| Ok(vec![name]));
            let (trees, mounted) = (named()?, if name.is_none() && !checks { mounts::ours()? } else { Vec::new() });
            if trees.is_empty() && mounted.is_empty() {
                let what =
                    if *checks { "no tree is run by this user" } else { "no ScaleFS is mounted, and no tree is run" };
                println!("{what}");
                return Ok(ExitCode::SUCCESS);
            }
            if *checks {
                return check(&trees, name.is_some());
            }
            list(mounted);
            list_trees(&trees, name.is_some()).map(|()| ExitCode::SUCCESS)
        }
    }
}

/// Asks a tree; nothing comes of one that is only listed and has ended since, or is no one's whom we ask.
fn ask(name: &str, request: Request, is_named: bool) -> Result<Option<String>, Silence> {
    match names::ask(name, request) {
        Err(Silence::NoTree | Silence::Foreign { .. }) if !is_named => Ok(None),
        said => said.map(Some),
    }
}

/// Looks whether trees are whole.
fn check(trees: &[String], is_named: bool) -> Result<ExitCode, String> {
    let mut code = ExitCode::SUCCESS;
    for name in trees {
        let said = match ask(name, Request::Check, is_named) {
            Ok(Some(said)) => said,
            Ok(None) => continue,
            Err(silence) if is_named => return Err(silence.of(name)),
            Err(silence) => {
                code = ExitCode::FAILURE;
                println!("{name}: not looked at: {}", silence.of(name));
                continue;
            }
        };
        let mut lines: Vec<&str> = said.lines().collect();
        let end = lines.pop().unwrap_or_default();
        let is_to_its_end = [WHOLE, DAMAGED].contains(&end);
        if end == WHOLE {
            println!("{name}: whole: {}", lines.join("; "));
            continue;
        }
        code = ExitCode::FAILURE;
        lines.iter().for_each(|line| println!("{name}: {line}"));
        match is_to_its_end {
            true => println!("{name}: damaged"),
            false => println!("{name}: damaged: the look was not ended, as if what it met were anything {end}"),
        }
    }
    Ok(code)
}

fn list_trees(trees: &[String], is_named: bool) -> Result<(), String> {
    if trees.is_empty() {
        return Ok(());
    }
    println!(
        "{:>10} {:>10} {:>10} {:>10} {:>10}  {:<16} seen at",
        "supervisor", "size MiB", "used MiB", "files", "processes", "name"
    );
    for name in trees {
        let said = match ask(name, Request::Status, is_named) {
            Ok(Some(said)) => said,
            Ok(None) => continue,
            Err(silence) if is_named => return Err(silence.of(name)),
            Err(silence) => {
                println!("{0:>10} {0:>10} {0:>10} {0:>10} {0:>10}  {name:<16} {1}", "-", silence.of(name));
                continue;
            }
        };
        let fields: Vec<&str> = said.splitn(6, ' ').collect();
        let [supervisor, size, used, files, processes, top] = fields[..] else {
            return Err(format!(
                "the tree {name}: expected six fields of its supervisor, got {said:?}: it is of another build"
            ));
        };
        println!("{supervisor:>10} {size:>10} {used:>10} {files:>10} {processes:>10}  {name:<16} {top}");
    }
    Ok(())
}

fn list(all: Vec<Mounted>) {
    if all.is_empty() {
        return;
    }
    println!("{:>10} {:>10} {:>10} {:>10}  mounted at", "server", "size MiB", "used MiB", "files");
    for mounted in all {
        let at = mounted.mount_point.display();
        match statvfs(&mounted.mount_point) {
            Ok(space) => {
                let mebibytes = |blocks: u64| (u128::from(blocks) * u128::from(space.fragment_size())) >> 20;
                let (size, used) = (mebibytes(space.blocks()), mebibytes(space.blocks() - space.blocks_free()));
                let files = space.files() - space.files_free();
                println!("{:>10} {size:>10} {used:>10} {files:>10}  {at}", mounted.server);
            }
            Err(error) => {
                println!("{:>10} {:>10} {:>10} {:>10}  {at}: {}", mounted.server, "-", "-", "-", error.desc())
            }
        }
    }
}
