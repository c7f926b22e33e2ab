//! Walks along paths in the plain reference, component by component, as concurrent calls see them.

use scalefs::{Follow, OpenFlags};

use crate::reference::{Call, Object, ROOT, Reference, Route};

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
    let object = reference.look_up(directory, component).ok()?;
    match &reference.objects[&object] {
        Object::Symlink { target, .. } if !is_last || follows_last => {
            let rest = if rest == component { target.clone() } else { format!("{target}/{behind}") };
            Some(Route { directory, rest, symlinks_left: symlinks_left.checked_sub(1)? })
        }
        Object::Directory { .. } if !is_last => {
            let rest = behind.trim_start_matches('/').to_string();
            Some(Route { directory: object, rest, symlinks_left: *symlinks_left })
        }
        _ => None,
    }
}
