//! fsstress of the Linux Test Project: operations that are drawn, with the weights of its table, without those that Hare's run
//! leaves out. Each program works in a directory of its own.

use posix_calls::Errno;

use crate::client::Client;
use crate::system::{How, System};

#[derive(Clone, Copy)]
enum Operation {
    ChangeMode,
    Create,
    List,
    MakeDirectory,
    Read,
    ReadLink,
    Rename,
    RemoveDirectory,
    Stat,
    Symlink,
    Unlink,
    Write,
}

/// Operations and their weights.
const OPERATIONS: [(Operation, usize); 12] = [
    (Operation::ChangeMode, 3),
    (Operation::Create, 4),
    (Operation::List, 1),
    (Operation::MakeDirectory, 2),
    (Operation::Read, 1),
    (Operation::ReadLink, 1),
    (Operation::Rename, 2),
    (Operation::RemoveDirectory, 1),
    (Operation::Stat, 1),
    (Operation::Symlink, 2),
    (Operation::Unlink, 1),
    (Operation::Write, 4),
];

/// Names of each kind that operations draw among: some are there, others are not.
const NAMES: usize = 24;

/// What an operation may meet, as others were drawn before.
fn is_expected(errno: Errno) -> bool {
    matches!(errno, Errno::ENOENT | Errno::EEXIST | Errno::ENOTEMPTY | Errno::EISDIR | Errno::ENOTDIR | Errno::EINVAL)
}

pub fn stress<S: System>(client: &Client<'_, S>) -> Result<(), Errno> {
    let own = client.path(&format!("p{}", client.own));
    client.make_directory(&own)?;
    let weights: usize = OPERATIONS.iter().map(|(_, weight)| weight).sum();
    for _ in 0..client.times(3000) {
        let mut drawn = client.draw(weights);
        let chosen = OPERATIONS.iter().find(|(_, weight)| {
            let is_it = drawn < *weight;
            drawn = drawn.wrapping_sub(*weight);
            is_it
        });
        let Some((operation, _)) = chosen else { continue };
        match do_one(client, &own, *operation) {
            Err(errno) if !is_expected(errno) => return Err(errno),
            _ => {}
        }
    }
    Ok(())
}

fn do_one<S: System>(client: &Client<'_, S>, own: &str, operation: Operation) -> Result<(), Errno> {
    // Half of all names lie in directories.
    let name = |kind: char| match client.draw(2) {
        0 => format!("{own}/{kind}{}", client.draw(NAMES)),
        _ => format!("{own}/d{}/{kind}{}", client.draw(NAMES), client.draw(NAMES)),
    };
    match operation {
        Operation::ChangeMode => client.change_mode(&name('f'), 0o640),
        Operation::Create => client.open(&name('f'), How::Create).and_then(|fd| client.close(fd)),
        Operation::List => client.list(&name('d')).map(drop),
        Operation::MakeDirectory => client.make_directory(&name('d')),
        Operation::Read => {
            let fd = client.open(&name('f'), How::Read)?;
            client.read(fd, 8192)?;
            client.close(fd)
        }
        Operation::ReadLink => client.read_link(&name('l')),
        Operation::Rename => client.rename(&name('f'), &name('f')),
        Operation::RemoveDirectory => client.remove_directory(&name('d')),
        Operation::Stat => client.stat(&name('f')).map(drop),
        Operation::Symlink => client.symlink("f0", &name('l')),
        Operation::Unlink => client.unlink(&name('f')),
        Operation::Write => {
            let fd = client.open(&name('f'), How::Create)?;
            client.write(fd, 1 + client.draw(16_384))?;
            client.close(fd)
        }
    }
}
