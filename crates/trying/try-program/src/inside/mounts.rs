//! The mounts of a run: the recorded view, the overlay above it, and what is never part of the tree: `/proc`, `/sys`, `/dev`.

use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount, mount_bind,
    mount_bind_recursive, mount_change, mount_remount, move_mount, open_tree,
};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::control;
use crate::failure::Failure;
use crate::machine::Right;
use crate::mounting;
use crate::plan::Plan;
use crate::stops::planted;

/// Devices that hold nothing of the machine.
const DEVICES: [&str; 8] = ["null", "zero", "full", "random", "urandom", "tty", "ptmx", "fuse"];
/// Parts of `/proc` by which root changes the machine.
const SETTINGS: [&str; 5] = ["sys", "sysrq-trigger", "irq", "bus", "fs"];

fn configured(
    kind: &str,
    strings: &[(&str, &str)],
    flags: &[&str],
    attributes: MountAttrFlags,
    at: &Path,
) -> Result<(), Failure> {
    let mounted = mounting::made(kind, strings, flags, attributes)?;
    move_mount(&mounted, "", CWD, at, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
        .map_err(Failure::calling(format!("mounting {kind}")))
}

/// Lets no other process see what is mounted here.
///
/// In a chroot the root may be a directory of a mount and no mount itself. About such a root nothing can be said, and nobody can go
/// from it into another one for good. So it becomes a mount, and the only one of the run's namespace: what lies above it is let go.
fn keep_private() -> Result<(), Failure> {
    let failed = || Failure::calling("keeping mounts private");
    let make_private = || mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC);
    match make_private() {
        Err(Errno::INVAL) => {}
        made => return made.map_err(failed()),
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open("/", flags, Mode::empty()).map_err(failed())?;
    let namespace = File::open("/proc/self/ns/mnt").map_err(Failure::doing("/proc/self/ns/mnt"))?;
    // Who enters a namespace, be it its own, is at the root of that.
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Mount)).map_err(failed())?;
    make_private().map_err(failed())?;
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::AT_RECURSIVE | OpenTreeFlags::AT_EMPTY_PATH;
    let copy = open_tree(&root, "", flags | OpenTreeFlags::OPEN_TREE_CLOEXEC).map_err(failed())?;
    let both = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(&copy, "", &root, "", both).map_err(failed())?;
    rustix::process::fchdir(&copy).map_err(failed())?;
    if planted("try-program: what lies above a chroot stays") {
        return rustix::process::chroot(".").and_then(|()| rustix::process::chdir("/")).map_err(failed());
    }
    go_into_current().map_err(failed())
}

/// Makes the current directory, which is a mount, the root of the namespace, and lets go of what was the root.
fn go_into_current() -> rustix::io::Result<()> {
    rustix::process::pivot_root(".", ".")?;
    rustix::mount::unmount(".", UnmountFlags::DETACH)?;
    rustix::process::chdir("/")
}

/// Mounts all, below the workspace.
pub(super) fn make(plan: &Plan, control: &mut UnixStream) -> Result<(), Failure> {
    keep_private()?;
    let (view, root) = (plan.workspace.join("view"), plan.workspace.join("root"));
    let processes = made_processes(plan.right)?;
    mount_view(&view, control, processes.as_ref())?;
    mount_overlay(plan, &view, &root)?;
    mount_processes(plan.right, processes.as_ref(), &root.join("proc"))?;
    mount_devices(&root.join("dev"))?;
    mount_system(plan.right, &root.join("sys"))
}

fn mount_view(at: &Path, control: &mut UnixStream, processes: Option<&OwnedFd>) -> Result<(), Failure> {
    let device = File::options().read(true).write(true).open("/dev/fuse").map_err(Failure::doing("/dev/fuse"))?;
    let number = device.as_raw_fd().to_string();
    let (user, group) = (nix::unistd::geteuid().to_string(), nix::unistd::getegid().to_string());
    let strings = [
        ("source", "commutant-try"),
        ("fd", number.as_str()),
        ("rootmode", "40000"),
        ("user_id", user.as_str()),
        ("group_id", group.as_str()),
    ];
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY;
    configured("fuse", &strings, &["allow_other"], attributes, at)?;
    control::hand_over(control, &device, processes).map_err(Failure::doing("handing over the view"))
}

fn mount_overlay(plan: &Plan, view: &Path, root: &Path) -> Result<(), Failure> {
    let text = |path: &Path| {
        let text = path.to_str().ok_or_else(|| {
            Failure::input(format!("{}: an overlay takes no layer whose path is no UTF-8", path.display()))
        });
        text.map(str::to_owned)
    };
    // A colon would separate layers, and a backslash takes that meaning away.
    let escaped = |path: &Path| text(path).map(|text| text.replace('\\', "\\\\").replace(':', "\\:"));
    let mut lower = Vec::new();
    for layer in plan.between.iter().map(|workspace| workspace.join("upper")) {
        lower.push(escaped(&layer)?);
    }
    lower.push(escaped(view)?);
    let (lower, upper, work) =
        (lower.join(":"), text(&plan.workspace.join("upper"))?, text(&plan.workspace.join("work"))?);
    // A layer that was in use when the machine went down would be refused: a run that was killed is not committed anyway.
    let _ = fs::remove_dir_all(plan.workspace.join("work/work/incompat"));
    let mut strings = vec![
        ("source", "commutant-try"),
        ("lowerdir", lower.as_str()),
        ("upperdir", upper.as_str()),
        ("workdir", work.as_str()),
        // A directory of the tree that is renamed would be a reference into it, and no questions about that were asked.
        ("redirect_dir", "nofollow"),
        ("index", "off"),
        ("metacopy", "off"),
        ("xino", "off"),
    ];
    // The layer is made durable when it is committed.
    let mut flags = vec!["volatile"];
    if plan.right == Right::User {
        flags.push("userxattr");
        strings.retain(|(key, _)| !matches!(*key, "redirect_dir" | "metacopy"));
    }
    configured("overlay", &strings, &flags, MountAttrFlags::MOUNT_ATTR_NODEV, root).map_err(|failure| {
        let line = failure.line();
        Failure::Run(format!("{line}: if no changes can lie there, take a directory on another file system with -N"))
    })
}

/// `/proc` of the run's own processes; `None` where the outer one hides parts of itself, as in a container or in another run, and a
/// user may only have that one.
fn made_processes(right: Right) -> Result<Option<OwnedFd>, Failure> {
    let attributes =
        MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    match mounting::made("proc", &[("source", "proc")], &[], attributes) {
        Err(_) if right == Right::User => Ok(None),
        made => made.map(Some),
    }
}

fn mount_processes(right: Right, made: Option<&OwnedFd>, at: &Path) -> Result<(), Failure> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    match made {
        Some(made) => move_mount(made, "", CWD, at, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH),
        None => mount_bind_recursive("/proc", at),
    }
    .map_err(Failure::calling("mounting /proc"))?;
    if right == Right::User {
        return Ok(());
    }
    for name in SETTINGS {
        let path = at.join(name);
        if path.exists() {
            mount_bind(&path, &path)
                .and_then(|()| mount_remount(&path, MountFlags::BIND | MountFlags::RDONLY | flags, c""))
                .map_err(Failure::calling(format!("protecting /proc/{name}")))?;
        }
    }
    Ok(())
}

fn mount_devices(at: &Path) -> Result<(), Failure> {
    let failed = || Failure::doing("making /dev");
    // What a root of the run makes there is no device; those below are mounts, which keep their own flags.
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", at, "tmpfs", flags, c"mode=755").map_err(Failure::calling("mounting /dev"))?;
    for name in DEVICES {
        let (from, to) = (Path::new("/dev").join(name), at.join(name));
        if from.exists() {
            File::create(&to).map_err(failed())?;
            mount_bind(&from, &to).map_err(Failure::calling(format!("mounting /dev/{name}")))?;
        }
    }
    if Path::new("/dev/pts").is_dir() {
        fs::create_dir(at.join("pts")).map_err(failed())?;
        mount_bind("/dev/pts", at.join("pts")).map_err(Failure::calling("mounting /dev/pts"))?;
    }
    fs::create_dir(at.join("shm")).map_err(failed())?;
    fs::set_permissions(at.join("shm"), fs::Permissions::from_mode(0o1777)).map_err(failed())?;
    let links = [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ];
    links.iter().try_for_each(|(name, target)| std::os::unix::fs::symlink(target, at.join(name))).map_err(failed())
}

fn mount_system(right: Right, at: &Path) -> Result<(), Failure> {
    if !(at.is_dir() && Path::new("/sys").is_dir()) {
        return Ok(());
    }
    let failed = || Failure::calling("mounting /sys");
    match right {
        Right::Root => {
            mount_bind("/sys", at).map_err(failed())?;
            let flags =
                MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
            mount_remount(at, flags, c"").map_err(failed())
        }
        // What is mounted below it may not be uncovered, and a user changes nothing there.
        Right::User => mount_bind_recursive("/sys", at).map_err(failed()),
    }
}

/// Makes the overlay the root of the run, and lets go of the real tree.
pub(super) fn go_in(plan: &Plan) -> Result<(), Failure> {
    let root = plan.workspace.join("root");
    std::env::set_current_dir(&root).map_err(Failure::doing(root.display()))?;
    go_into_current().map_err(Failure::calling("going into the view"))
}
