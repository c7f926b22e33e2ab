//! Frames on a pipe: a length in bytes (u32, little-endian), then as many bytes.

use std::io::{self, ErrorKind, Read, Write};

/// Longest frame that is read.
pub const FRAME_LIMIT_BYTES: usize = 64 << 20;

/// The next frame, or `None` where the input ends between two frames.
///
/// # Errors
/// The input ends within a frame, cannot be read, or announces more than [`FRAME_LIMIT_BYTES`].
pub fn read(input: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    match input.read(&mut length[..1]) {
        Ok(0) => return Ok(None),
        Ok(_) => input.read_exact(&mut length[1..])?,
        Err(error) if error.kind() == ErrorKind::Interrupted => return read(input),
        Err(error) => return Err(error),
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > FRAME_LIMIT_BYTES {
        return Err(io::Error::other(format!("a frame of {length} bytes: expected at most {FRAME_LIMIT_BYTES}")));
    }
    // Memory grows with what arrives, not with what is announced.
    let mut bytes = Vec::new();
    input.take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() < length { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(Some(bytes)) }
}

/// Writes a frame, at once.
///
/// # Errors
/// The output cannot be written, or the frame is longer than its length can say.
pub fn write(output: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    output.write_all(&length.to_le_bytes())?;
    output.write_all(bytes)?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back() {
        let mut pipe = Vec::new();
        write(&mut pipe, b"one").unwrap();
        write(&mut pipe, b"").unwrap();
        let mut input = &pipe[..];
        assert_eq!(read(&mut input).unwrap().as_deref(), Some(&b"one"[..]));
        assert_eq!(read(&mut input).unwrap().as_deref(), Some(&b""[..]));
        assert_eq!(read(&mut input).unwrap(), None);
    }

    #[test]
    fn a_frame_that_is_cut_off_is_an_error() {
        let mut pipe = Vec::new();
        write(&mut pipe, b"something").unwrap();
        for length in 1..pipe.len() {
            assert!(read(&mut &pipe[..length]).is_err(), "{length}");
        }
        assert!(read(&mut &[0xff; 8][..]).is_err());
    }
}
