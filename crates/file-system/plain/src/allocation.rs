//! The operations on the room of files.

use std::ops::Range;

use posix_calls::allocation::AllocationOperations;
use posix_calls::{OperationError, Outcome};

use crate::call::{Call, Node};
use crate::object::{File, PAGE_BYTES};

const PAGE: u64 = PAGE_BYTES as u64;

impl File {
    /// Pages that these bytes lack, as far as the file goes.
    fn lacking(&self, bytes: &Range<u64>) -> u64 {
        let pages = bytes.start / PAGE..bytes.end.div_ceil(PAGE);
        if pages.is_empty() { 0 } else { pages.end - pages.start - self.pages.range(pages).count() as u64 }
    }

    /// Lets bytes be zeros; returns how many pages it gave up.
    fn punch(&mut self, bytes: &Range<u64>) -> usize {
        let before = self.pages.len();
        self.pages.retain(|number, page| {
            let first = number * PAGE;
            let start = bytes.start.clamp(first, first + PAGE) - first;
            let end = bytes.end.clamp(first, first + PAGE) - first;
            if start < end {
                page[start as usize..end as usize].fill(0);
            }
            end.saturating_sub(start) < PAGE
        });
        before - self.pages.len()
    }
}

impl AllocationOperations for Call<'_> {
    fn reserve(&self, file: Node<'_>, bytes: Range<u64>, grows: bool) -> Outcome<(), Self> {
        let mut state = self.change()?;
        let (data, used, limit) = state.file_mut(file.number);
        if bytes.end.div_ceil(PAGE) - bytes.start / PAGE > limit {
            return Err(OperationError::NoSpace);
        }
        let end = if grows { bytes.end } else { bytes.end.min(data.size_bytes) };
        let bytes = bytes.start..end.max(bytes.start);
        if data.lacking(&bytes) > limit - *used {
            return Err(OperationError::NoSpace);
        }
        *used += data.lacking(&bytes);
        data.size_bytes = data.size_bytes.max(if grows { end } else { 0 });
        for number in bytes.start / PAGE..bytes.end.div_ceil(PAGE) {
            data.pages.entry(number).or_insert_with(|| vec![0; PAGE_BYTES]);
        }
        state.mark_data(file.number, self.now_ns());
        Ok(())
    }

    fn punch(&self, file: Node<'_>, bytes: Range<u64>) -> Outcome<(), Self> {
        let mut state = self.change()?;
        let (data, used, _) = state.file_mut(file.number);
        *used -= data.punch(&bytes) as u64;
        state.mark_data(file.number, self.now_ns());
        Ok(())
    }
}
