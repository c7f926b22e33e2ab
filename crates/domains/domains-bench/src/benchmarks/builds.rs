//! What tar, gunzip and a build of Linux do to files.

use posix_calls::Errno;

use crate::client::Client;
use crate::system::{How, System};

/// Bytes that tar moves at once.
const RECORD_BYTES: usize = 10_240;
const PAGE_BYTES: usize = 4096;
/// Files of Linux 3.0 for each of its directories.
const FILES_OF_DIRECTORY: usize = 15;

/// A size as files of a kernel have: most are small, a few large; 12 KiB on average.
fn file_bytes<S: System>(client: &Client<'_, S>) -> usize {
    let most = 1 << (9 + client.draw(8));
    most / 2 + client.draw(most / 2)
}

/// Bytes come through a pipe, a page at a time.
fn through_pipe<S: System>(client: &Client<'_, S>, (out, into): (u32, u32), bytes: usize) -> Result<(), Errno> {
    for start in (0..bytes).step_by(PAGE_BYTES) {
        client.write(into, PAGE_BYTES.min(bytes - start))?;
        client.read(out, PAGE_BYTES)?;
    }
    Ok(())
}

/// Each program unpacks a tree: what a second process has decompressed comes through a pipe.
pub fn extract<S: System>(client: &Client<'_, S>) -> Result<(), Errno> {
    let pipe = client.pipe()?;
    let top = client.path(&format!("linux-{}", client.own));
    client.make_directory(&top)?;
    for number in 0..client.times(300) {
        let directory = format!("{top}/d{}", number / FILES_OF_DIRECTORY);
        if number.is_multiple_of(FILES_OF_DIRECTORY) {
            client.make_directory(&directory)?;
        }
        let (path, bytes) = (format!("{directory}/f{number}"), file_bytes(client));
        through_pipe(client, pipe, bytes)?;
        client.write_new(&path, bytes, RECORD_BYTES)?;
        client.change_mode(&path, 0o664)?;
    }
    client.close(pipe.0)?;
    client.close(pipe.1)
}

const UNZIPPED_FILES: usize = 250;
/// A manual page, compressed and not.
const PACKED_BYTES: usize = 2048;
const PAGE_OF_MANUAL_BYTES: usize = 5120;

pub fn prepare_unzip<S: System>(client: &Client<'_, S>) -> Result<(), Errno> {
    let directory = client.path(&format!("man{}", client.own));
    client.make_directory(&directory)?;
    for number in 0..client.times(UNZIPPED_FILES) {
        client.write_new(&format!("{directory}/f{number}.gz"), PACKED_BYTES, PACKED_BYTES)?;
    }
    Ok(())
}

/// gunzip, of the files of a copy of the manual each.
pub fn unzip<S: System>(client: &Client<'_, S>) -> Result<(), Errno> {
    let directory = client.path(&format!("man{}", client.own));
    for number in 0..client.times(UNZIPPED_FILES) {
        let (path, packed) = (format!("{directory}/f{number}"), format!("{directory}/f{number}.gz"));
        client.stat(&packed)?;
        client.read_all(&packed, 32_768)?;
        client.write_new(&path, PAGE_OF_MANUAL_BYTES, 32_768)?;
        client.change_mode(&path, 0o644)?;
        client.unlink(&packed)?;
    }
    Ok(())
}

const HEADERS: usize = 64;
const HEADERS_OF_SOURCE: usize = 20;
/// Directories in which a header is looked for in vain, on average.
const LOOKS_IN_VAIN: usize = 2;
const SOURCES: usize = 40;
/// Objects that are linked into one.
const OBJECTS_OF_LINK: usize = 10;

pub fn prepare_build<S: System>(client: &Client<'_, S>) -> Result<(), Errno> {
    for directory in ["include", "arch", "generated", "tmp"] {
        client.make_directory(&client.path(directory))?;
    }
    for number in 0..HEADERS {
        client.write_new(&client.path(&format!("include/h{number}.h")), PAGE_BYTES, PAGE_BYTES)?;
    }
    for own in 0..client.count {
        client.make_directory(&client.path(&format!("src{own}")))?;
        for number in 0..client.times(SOURCES) {
            client.write_new(&client.path(&format!("src{own}/s{number}.c")), 3 * PAGE_BYTES, RECORD_BYTES)?;
        }
    }
    Ok(())
}

/// make, cc and ld, of the sources of a directory each: a token of the job server, headers that are looked for in several places,
/// a file of assembly, an object that gets its name in the end, and the file of its dependencies.
pub fn build<S: System>(client: &Client<'_, S>) -> Result<(), Errno> {
    let tokens = client.pipe()?;
    client.write(tokens.1, 1)?;
    let directory = client.path(&format!("src{}", client.own));
    let sources = client.list(&directory)?;
    for (number, (source, _)) in sources.iter().enumerate() {
        client.read(tokens.0, 1)?;
        let object = format!("{directory}/{source}.o");
        absent(client.stat(&object))?;
        client.read_all(&format!("{directory}/{source}"), RECORD_BYTES)?;
        for _ in 0..HEADERS_OF_SOURCE {
            let header = client.draw(HEADERS);
            for place in ["arch", "generated"].iter().take(client.draw(LOOKS_IN_VAIN + 1)) {
                absent(client.open(&client.path(&format!("{place}/h{header}.h")), How::Read))?;
            }
            let fd = client.open(&client.path(&format!("include/h{header}.h")), How::Read)?;
            client.stat_open(fd)?;
            while client.read(fd, RECORD_BYTES)? > 0 {}
            client.close(fd)?;
        }
        let assembly = client.path(&format!("tmp/cc{}.{number}.s", client.own));
        client.write_new(&assembly, 6 * PAGE_BYTES, PAGE_BYTES)?;
        client.read_all(&assembly, RECORD_BYTES)?;
        let unfinished = format!("{directory}/.tmp_{source}.o");
        client.write_new(&unfinished, 4 * PAGE_BYTES, PAGE_BYTES)?;
        client.unlink(&assembly)?;
        client.rename(&unfinished, &object)?;
        client.write_new(&format!("{directory}/.{source}.cmd"), PAGE_BYTES, PAGE_BYTES)?;
        client.write(tokens.1, 1)?;
        if (number + 1).is_multiple_of(OBJECTS_OF_LINK) {
            for (source, _) in &sources[number + 1 - OBJECTS_OF_LINK..=number] {
                client.read_all(&format!("{directory}/{source}.o"), RECORD_BYTES)?;
            }
            let linked = format!("{directory}/built-in.{number}");
            client.write_new(&linked, OBJECTS_OF_LINK * 4 * PAGE_BYTES, PAGE_BYTES)?;
        }
    }
    client.close(tokens.0)?;
    client.close(tokens.1)
}

/// What must not be there is not.
fn absent<R>(outcome: Result<R, Errno>) -> Result<(), Errno> {
    match outcome {
        Err(Errno::ENOENT) => Ok(()),
        Err(errno) => Err(errno),
        Ok(_) => Err(Errno::EEXIST),
    }
}
