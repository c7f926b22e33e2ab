//! Walks along paths in the plain reference, component by component, as concurrent calls see them.

use scalefs::{Follow, Kind, ObjectOperations, OpenFlags};

use crate::reference::{Call, ROOT, Reference, Route, number_of};

/// Goes through one component of the first path that has more than its last one left, or follows the symbolic link at
/// the end of a path; `None` if there is nothing more to go through, or no way.
pub fn walk_on(reference: &Reference, call: &Call, routes: &[Route]) -> Option<Vec<Route>> {
    let mut each = routes.iter().enumerate();
    let (at, stepped) =
        each.find_map(|(at, route)| Some((at, step(reference, route, follows_last(call, at, route))?)))?;
    let mut routes = routes.to_vec();
    routes[at] = stepped;
    Some(routes)
}

/// Whether a call follows a symbolic link at the end of this path of its.
fn follows_last(call: &Call, at: usize, route: &Route) -> bool {
    let has_slash = route.rest.ends_with('/');
    match call.inner() {
        Call::Open(_, flags) if flags.contains(OpenFlags::CREATE) => {
            !has_slash && !flags.contains(OpenFlags::EXCLUSIVE) && !flags.contains(OpenFlags::NO_FOLLOW)
        }
        Call::Open(_, flags) => has_slash || !flags.contains(OpenFlags::NO_FOLLOW),
        Call::Stat(_, follow) => has_slash || *follow == Follow::Symlinks,
        Call::Access(_) | Call::List(..) | Call::ChangeDirectory(_) | Call::Hold(_) => true,
        Call::ReadLink(_) => has_slash,
        Call::Link(_, _, follow) => at == 0 && (has_slash || *follow == Follow::Symlinks),
        _ => false,
    }
}

fn step(reference: &Reference, Route { directory, rest, symlinks_left }: &Route, follows_last: bool) -> Option<Route> {
    let directory = if rest.starts_with('/') { ROOT } else { *directory };
    let rest = rest.trim_start_matches('/');
    let (component, behind) = rest.split_once('/').unwrap_or((rest, ""));
    let is_last = behind.chars().all(|other| other == '/');
    let Seen { number, kind, target } = look_up(reference, directory, component)?;
    match (kind, target) {
        (_, Some(target)) if !is_last || follows_last => {
            let rest = if rest == component { target } else { format!("{target}/{behind}") };
            Some(Route { directory, rest, symlinks_left: symlinks_left.checked_sub(1)? })
        }
        (Kind::Directory, _) if !is_last => {
            let rest = behind.trim_start_matches('/').to_string();
            Some(Route { directory: number, rest, symlinks_left: *symlinks_left })
        }
        _ => None,
    }
}

/// What a component of a path leads to.
pub struct Seen {
    number: u64,
    pub kind: Kind,
    /// Of a symbolic link.
    target: Option<String>,
}

/// What a component of a path leads to in a directory.
pub fn look_up(reference: &Reference, directory: u64, component: &str) -> Option<Seen> {
    let call = reference.looking();
    let directory = call.held(&reference.directories[&directory]);
    let node = match component {
        "" | "." => directory,
        ".." => call.parent(directory).unwrap(),
        name => call.look_up(directory, &call.key(name.as_bytes())?).unwrap()?,
    };
    let kind = call.kind(node);
    let target = || String::from_utf8(call.link_target(node).unwrap().to_vec()).unwrap();
    Some(Seen { number: number_of(&call, node), kind, target: (kind == Kind::Symlink).then(target) })
}
