//! What bytes are used for, as far as the accessing function tells: it decides between the alternatives of a union, which
//! lie at the same place and fit as well.

use crate::capture::PageKind;

/// A use of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// No one is known to access them.
    Unknown,
    /// What their type says: the function is none of those below.
    Plain,
    /// As the link by which an object waits for deferred work, such as being freed after a grace period.
    Deferred,
    /// As part of a free object: by the slab allocator.
    FreeObject,
    /// As part of the `struct page` of a free page: by the page allocator.
    FreePage,
    /// As a page's link in a list of pages that were used lately.
    PageList,
    /// As part of the `struct page` of a page table that is made or given up.
    PageTable,
    /// As part of a maple tree's node that waits for being used.
    SpareNode,
}

/// The members of `struct page` that are meant before others in the same place, best first (`include/linux/mm_types.h`).
pub(super) fn page_members(page: PageKind, used: Use) -> &'static [&'static str] {
    match (page, used) {
        (PageKind::Slab, _) => &[],
        (_, Use::FreePage) => &["pcp_list", "buddy_list", "lru", "page_type"],
        (_, Use::PageList) => &["lru", "_mapcount"],
        (PageKind::PageTable, _) | (_, Use::PageTable) => &["ptl", "pt_mm", "pmd_huge_pte", "page_type"],
        // All others come to a page's first word but one only to see whether it is the tail of a larger page.
        (_, Use::Plain) => &["compound_head", "_mapcount"],
        (PageKind::PageCache | PageKind::Anonymous, _) => &["_mapcount"],
        _ => &[],
    }
}

/// The structure that a maple tree's node is accessed as, where the tree does not tell: it is in none any more, or not yet
/// (`include/linux/maple_tree.h`). Leaves and most other nodes have the layout of ranges.
pub(super) fn maple_structure(used: Use) -> Option<&'static str> {
    match used {
        Use::Deferred | Use::Unknown => None,
        Use::SpareNode => Some("maple_alloc"),
        _ => Some("maple_range_64"),
    }
}
