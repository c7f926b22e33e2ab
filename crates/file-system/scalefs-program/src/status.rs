//! What is mounted, and how full it is.

use std::path::Path;

use nix::sys::statvfs::statvfs;

use crate::mount_point::canonical;
use crate::mounts;

/// `scalefs status`.
pub(crate) fn status(path: Option<&Path>) -> Result<(), String> {
    let all = match path {
        None => mounts::ours()?,
        Some(path) => {
            let shown = path.display();
            let known = canonical(path).map_err(|error| format!("{shown}: {error}"))?;
            vec![mounts::at(&known)?.ok_or_else(|| format!("{shown} is no ScaleFS"))?]
        }
    };
    if all.is_empty() {
        println!("no ScaleFS is mounted");
        return Ok(());
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
    Ok(())
}
