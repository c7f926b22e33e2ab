//! Listing by cookie; see the crate's head for why cookies stay valid.

use commit::{Anyone, Viewer};
use epoch::Guard;
use sync::atomic::Ordering;

use crate::change::FIRST_TIE;
use crate::dir::HashDir;
use crate::entry::Entry;
use crate::table::Table;

/// The cookie from which a listing of all names starts.
pub const FIRST_COOKIE: u64 = FIRST_TIE as u64;

/// One name of a listing.
#[derive(Clone, Copy, Debug)]
pub struct Listed<'e> {
    /// The name.
    pub name: &'e [u8],
    /// Its value.
    pub value: u64,
    /// Where a listing goes on after this name; below 2^63.
    pub next_cookie: u64,
}

impl HashDir {
    /// Tells `each` the names from a cookie on, in the order of their cookies, until it returns false or there are no
    /// more. Returns the cookie to go on from, or `None` at the end.
    pub fn list(&self, guard: &Guard<'_>, from: u64, each: impl FnMut(Listed<'_>) -> bool) -> Option<u64> {
        self.list_for(guard, from, Anyone, each)
    }

    /// [`HashDir::list`] for a viewer that may have marked names itself.
    pub fn list_for(
        &self,
        guard: &Guard<'_>,
        from: u64,
        viewer: impl Viewer,
        mut each: impl FnMut(Listed<'_>) -> bool,
    ) -> Option<u64> {
        let mut cookie = from;
        loop {
            // Cookies are 63 bits; a bucket's index is the hash's low bits, which are the cookie's high bits.
            let hash = (cookie << 1).reverse_bits();
            let (table, bucket) = self.locate(guard, hash);
            let end = last_cookie_of_bucket(table, cookie);
            let (head, _) = bucket.head();
            // Chains are short: finding the smallest cookie again and again needs no memory.
            // SAFETY: entries are retired, so they live as long as the guard.
            while let Some(entry) = unsafe { smallest_from(head, table.parity, cookie) } {
                let next_cookie = entry.cookie() + 1;
                if entry.exists_for(self.decisions(), viewer) {
                    let (value, _) = entry.value_for(self.decisions(), viewer);
                    if !each(Listed { name: entry.name(), value, next_cookie }) {
                        return Some(next_cookie);
                    }
                }
                cookie = next_cookie;
            }
            if end >= (1 << 63) - 1 {
                return None;
            }
            cookie = end + 1;
        }
    }
}

/// The last cookie of the bucket in which `cookie` is, in this table.
fn last_cookie_of_bucket(table: &Table, cookie: u64) -> u64 {
    let range_bits = 63 - table.bucket_count().trailing_zeros();
    cookie | ((1_u64 << range_bits) - 1)
}

/// # Safety
/// As for `find_in_chain`.
unsafe fn smallest_from<'g>(mut head: *mut Entry, parity: usize, cookie: u64) -> Option<&'g Entry> {
    let mut smallest: Option<&Entry> = None;
    // SAFETY: the caller's promise.
    while let Some(entry) = unsafe { head.as_ref() } {
        if entry.cookie() >= cookie && smallest.is_none_or(|least| entry.cookie() < least.cookie()) {
            smallest = Some(entry);
        }
        head = entry.next(parity).load(Ordering::Acquire);
    }
    smallest
}
