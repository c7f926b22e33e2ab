//! How much room there is, and how much is left (`statvfs`).

use pages::PAGE_BYTES;
use percpu::Core;
use posix_calls::Space;
use sync::mutant::planted;

use crate::file::File;
use crate::instance::ScaleFs;

/// There are no more inodes than files would fit into the memory, if nothing else did: names, directories and descriptors take
/// their part of it, so that fewer may be had.
pub(crate) fn space(fs: &ScaleFs, core: &Core<'_>) -> Space {
    let (blocks, free_blocks) = (fs.pages().total(), fs.pages().free_pages());
    let most = (core.arena().size_bytes() / size_of::<File>()) as u64;
    let used = fs.inodes.total() - fs.inodes.left();
    let is_endless = planted("scalefs: memory for inodes has no end");
    let inodes = if is_endless { fs.inodes.total() } else { fs.inodes.total().min(most) };
    let free_inodes = inodes.saturating_sub(used);
    Space { block_bytes: PAGE_BYTES as u64, blocks, free_blocks, inodes, free_inodes }
}
