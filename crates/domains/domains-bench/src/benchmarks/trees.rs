//! Trees that are searched and removed.

use posix_calls::Errno;

use crate::client::Client;
use crate::system::{How, System};

/// A tree: directories at the top, directories in each of those above the last level, levels below the top, and files
/// in each.
#[derive(Clone, Copy, Debug)]
pub struct Tree {
    top: usize,
    inside: usize,
    levels: usize,
    files: usize,
}

/// The paper's has 2, 10 and 3, with 2,000 files; it takes minutes to make.
pub const DENSE: Tree = Tree { top: 2, inside: 10, levels: 1, files: 100 };
/// The paper's has 14 levels.
pub const SPARSE: Tree = Tree { top: 1, inside: 2, levels: 9, files: 0 };

/// In which steps all programs go through the tree together: its paths by level, the top first.
fn levels<S: System>(client: &Client<'_, S>, tree: Tree) -> Vec<Vec<String>> {
    let below = |path: &String, count: usize| (0..count).map(move |number| format!("{path}/d{number}")).collect();
    let first: Vec<String> = below(&client.path("tree"), tree.top);
    let mut levels = vec![first];
    for _ in 0..if is_small(client) { 1 } else { tree.levels } {
        let next = levels[levels.len() - 1].iter().flat_map(|path| -> Vec<String> { below(path, tree.inside) });
        levels.push(next.collect());
    }
    levels
}

/// A tree is as large in each run, but for those that only show that it runs.
fn is_small<S: System>(client: &Client<'_, S>) -> bool {
    client.percent < 10
}

/// The files of each directory; they are those of all programs together.
fn file_count<S: System>(client: &Client<'_, S>, tree: Tree) -> usize {
    if is_small(client) { tree.files.min(3) } else { tree.files }
}

pub fn make<S: System>(client: &Client<'_, S>, tree: Tree) -> Result<(), Errno> {
    client.make_directory(&client.path("tree"))?;
    for path in levels(client, tree).iter().flatten() {
        client.make_directory(path)?;
        for number in 0..file_count(client, tree) {
            let fd = client.open(&format!("{path}/f{number}"), How::Create)?;
            client.close(fd)?;
        }
    }
    Ok(())
}

/// Each program lists each directory, those in one in an order that is drawn.
pub fn find<S: System>(client: &Client<'_, S>, path: &str) -> Result<(), Errno> {
    let names = client.list(path)?;
    let mut inside: Vec<String> = names.into_iter().filter(|(_, is_directory)| *is_directory).map(|it| it.0).collect();
    for last in (1..inside.len()).rev() {
        inside.swap(last, client.draw(last + 1));
    }
    inside.iter().try_for_each(|name| find(client, &format!("{path}/{name}")))
}

/// The programs share the work: of each directory each removes some files, then the directories go, the lowest first.
pub fn remove<S: System>(client: &Client<'_, S>, tree: Tree) -> Result<(), Errno> {
    let levels = levels(client, tree);
    for path in levels.iter().flatten() {
        for number in (client.own..file_count(client, tree)).step_by(client.count) {
            client.unlink(&format!("{path}/f{number}"))?;
        }
    }
    for level in levels.iter().rev() {
        client.meet();
        level.iter().skip(client.own).step_by(client.count).try_for_each(|path| client.remove_directory(path))?;
    }
    Ok(())
}
