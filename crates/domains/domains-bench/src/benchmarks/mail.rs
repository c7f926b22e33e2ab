//! sv6's mailbench: messages are queued and delivered, all to one user. In place of the socket that tells of a message, a program
//! delivers what it has queued.

use posix_calls::Errno;

use crate::client::Client;
use crate::system::{How, System};

const MESSAGE_BYTES: usize = 1600;
const RECIPIENT_BYTES: usize = 4;

pub fn prepare<S: System>(client: &Client<'_, S>) -> Result<(), Errno> {
    for directory in ["spool", "spool/pid", "spool/todo", "spool/mess", "mail", "mail/user"] {
        client.make_directory(&client.path(directory))?;
    }
    for directory in ["tmp", "new", "cur"] {
        client.make_directory(&client.path(&format!("mail/user/{directory}")))?;
    }
    client.write_new(&client.path("msg"), MESSAGE_BYTES, MESSAGE_BYTES)
}

/// Copies an open file into a new one, and returns the new one's inode.
fn copy<S: System>(client: &Client<'_, S>, from: u32, path: &str) -> Result<u64, Errno> {
    let to = client.open(path, How::CreateNew)?;
    loop {
        let count = client.read(from, 4096)?;
        if count == 0 {
            break;
        }
        client.write(to, count)?;
    }
    let inode = client.stat_open(to)?;
    client.close(to)?;
    Ok(inode)
}

/// mail-enqueue: the message under a name of its own, its envelope, then the name that says that it is whole.
fn queue<S: System>(client: &Client<'_, S>) -> Result<u64, Errno> {
    let message = client.open(&client.path("msg"), How::Read)?;
    let unfinished = client.path(&format!("spool/pid/{}.{}", client.own, client.draw(1 << 31)));
    let inode = copy(client, message, &unfinished)?;
    client.close(message)?;
    client.write_new(&client.path(&format!("spool/todo/{inode}")), RECIPIENT_BYTES, RECIPIENT_BYTES)?;
    client.rename(&unfinished, &client.path(&format!("spool/mess/{inode}")))?;
    Ok(inode)
}

/// mail-qman and mail-deliver.
fn deliver_one<S: System>(client: &Client<'_, S>, inode: u64) -> Result<(), Errno> {
    let envelope = client.path(&format!("spool/todo/{inode}"));
    let fd = client.open(&envelope, How::Read)?;
    client.stat_open(fd)?;
    client.read(fd, RECIPIENT_BYTES)?;
    client.close(fd)?;
    let queued = client.path(&format!("spool/mess/{inode}"));
    let message = client.open(&queued, How::Read)?;
    client.stat(&client.path("mail/user"))?;
    let unfinished = client.path(&format!("mail/user/tmp/{}.{}", client.own, client.draw(1 << 31)));
    let delivered = copy(client, message, &unfinished)?;
    client.rename(&unfinished, &client.path(&format!("mail/user/new/{delivered}")))?;
    client.close(message)?;
    client.unlink(&envelope)?;
    client.unlink(&queued)
}

pub fn deliver<S: System>(client: &Client<'_, S>) -> Result<(), Errno> {
    for _ in 0..client.times(200) {
        let inode = queue(client)?;
        deliver_one(client, inode)?;
    }
    Ok(())
}
