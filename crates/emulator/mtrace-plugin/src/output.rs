//! The trace's way out: a buffer that is written when it is large, or when a batch ends.

use std::fs::File;
use std::io::Write;

/// Size of the buffer beyond which it is written although the batch goes on.
const WRITE_AT_BYTES: usize = 256 << 10;

/// The trace file or pipe.
pub struct Output {
    file: File,
    /// Bytes to be written.
    pub buffer: Vec<u8>,
    /// After a failed write nothing more is kept.
    failed: bool,
    /// The process that opened the file; a child that a traced program forks must not write to it.
    owner: u32,
}

impl Output {
    /// Takes over an open file.
    pub fn new(file: File) -> Self {
        Self { file, buffer: Vec::with_capacity(2 * WRITE_AT_BYTES), failed: false, owner: std::process::id() }
    }

    /// Writes the buffer if it is large.
    pub fn write_if_large(&mut self) {
        if self.buffer.len() >= WRITE_AT_BYTES {
            self.write();
        }
    }

    /// Writes the buffer. A failure is reported once on standard error; the reader sees a trace that ends too early.
    pub fn write(&mut self) {
        if !self.failed
            && self.owner == std::process::id()
            && let Err(error) = self.file.write_all(&self.buffer)
        {
            eprintln!("commutant tracer: cannot write the trace: {error}");
            self.failed = true;
        }
        self.buffer.clear();
    }
}
