//! Pipes: bytes that wait, and how many descriptions lead to each end.
//!
//! A pipe has 16 pages (Linux: `PIPE_DEF_BUFFERS`), and is full when all are taken, however little waits in them. What a write
//! has beyond whole pages goes to the last page if that has room for all of it (Linux: `pipe_write`).

use std::collections::VecDeque;

use super::PAGE_BYTES;

/// Pages of a pipe.
const PIPE_PAGES: usize = 16;

/// Of a page's bytes, how many were ever written, and how many wait.
#[derive(Clone, Copy, Debug)]
struct PipePage {
    written: usize,
    waiting: usize,
}

/// A pipe.
#[derive(Debug, Default)]
pub(crate) struct Pipe {
    pub(super) bytes: VecDeque<u8>,
    pages: VecDeque<PipePage>,
    /// Descriptions of each end, by `PipeEnd`.
    pub(super) ends: [u32; 2],
}

impl Pipe {
    pub(super) fn take(&mut self, most_bytes: usize) -> Vec<u8> {
        let taken: Vec<u8> = self.bytes.drain(..most_bytes.min(self.bytes.len())).collect();
        let mut left = taken.len();
        while let Some(page) = self.pages.front_mut().filter(|_| left > 0) {
            let count = left.min(page.waiting);
            page.waiting -= count;
            left -= count;
            if page.waiting == 0 {
                self.pages.pop_front();
            }
        }
        taken
    }

    /// Puts bytes in, as many as there is room for.
    pub(super) fn put(&mut self, bytes: &[u8]) -> usize {
        let page_bytes = PAGE_BYTES as usize;
        let odd = bytes.len() % page_bytes;
        let mut done = 0;
        if let Some(last) = self.pages.back_mut().filter(|last| odd > 0 && last.written + odd <= page_bytes) {
            last.written += odd;
            last.waiting += odd;
            done = odd;
        }
        while done < bytes.len() && !self.is_full() {
            let count = (bytes.len() - done).min(page_bytes);
            self.pages.push_back(PipePage { written: count, waiting: count });
            done += count;
        }
        self.bytes.extend(&bytes[..done]);
        done
    }

    pub(super) fn is_full(&self) -> bool {
        self.pages.len() == PIPE_PAGES
    }
}

/// Of a write of this many bytes, as many as a pipe has ever room for: the rest would not fit, and changes nothing of
/// what does.
pub(crate) fn most_that_fits(length_bytes: usize) -> usize {
    let page_bytes = PAGE_BYTES as usize;
    length_bytes.min(PIPE_PAGES * page_bytes + length_bytes % page_bytes)
}
