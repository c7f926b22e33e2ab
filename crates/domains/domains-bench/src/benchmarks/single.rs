//! One kind of call, many times.

use posix_calls::Errno;

use crate::client::Client;
use crate::system::{How, System};

/// Names are made and removed in one directory: none comes again.
pub fn create<S: System>(client: &Client<'_, S>) -> Result<(), Errno> {
    for number in 0..client.times(1500) {
        let path = new_name(client, number);
        let fd = client.open(&path, How::Create)?;
        client.close(fd)?;
        client.unlink(&path)?;
    }
    Ok(())
}

fn new_name<S: System>(client: &Client<'_, S>, number: usize) -> String {
    client.path(&format!("d/p{}.{number}.{}", client.own, client.draw(1 << 31)))
}

/// The same with 40 KiB of data each.
pub fn write<S: System>(client: &Client<'_, S>) -> Result<(), Errno> {
    for number in 0..client.times(600) {
        let path = new_name(client, number);
        let fd = client.open(&path, How::Create)?;
        client.write(fd, 10 * 4096)?;
        client.close(fd)?;
        client.unlink(&path)?;
    }
    Ok(())
}

/// Directories that files are renamed among.
const PLACES: usize = 10;

pub fn prepare_renames<S: System>(client: &Client<'_, S>) -> Result<(), Errno> {
    (0..PLACES).try_for_each(|place| client.make_directory(&client.path(&format!("d{place}"))))
}

/// A file of each program gets one new name after the other, in directories that are drawn.
pub fn rename<S: System>(client: &Client<'_, S>) -> Result<(), Errno> {
    let mut name = client.path(&format!("p{}_d", client.own));
    let fd = client.open(&name, How::Create)?;
    client.close(fd)?;
    for number in 0..client.times(2000) {
        let place = client.draw(PLACES);
        let next = client.path(&format!("d{place}/{}.{}.{}", client.own, number % PLACES, client.draw(1 << 31)));
        client.rename(&name, &next)?;
        name = next;
    }
    client.unlink(&name)
}

/// Directories are made and removed in one directory.
pub fn make_directories<S: System>(client: &Client<'_, S>) -> Result<(), Errno> {
    for number in 0..client.times(1500) {
        let path = new_name(client, number);
        client.make_directory(&path)?;
        client.remove_directory(&path)?;
    }
    Ok(())
}
