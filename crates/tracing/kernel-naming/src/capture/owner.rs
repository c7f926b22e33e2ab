//! Which file or directory an object is about: dentries, inodes, open files and pages by what the kernel itself calls them.
//!
//! ```text
//! page, xa_node ─► address_space ─► inode ─► its first dentry that says so, too ─► name
//! file ─────────────────────────────────────► dentry ─► name, and of its inode the kind
//! ```
//! What is found is a letter and a name: `f n0` a file, `- n0` a name without a file, `p` a pipe, `b` a block device, `c` a
//! character device. An inode that has lost its names or never had one has the letter alone. So has a directory (`d`), but for the root of a file
//! system (`d /`): a test has one of its own, and what it is called says nothing.

use super::record::{CaptureKind, NAME_BYTES, ObjectCapture, PageKind};
use super::space::Space;

/// `S_IFMT` and values of it (`include/uapi/linux/stat.h`), with the letter of each.
const MODE_KIND: u32 = 0xf000;
const KINDS: [(u32, u8); 5] = [(0x1000, b'p'), (0x2000, b'c'), (0x4000, DIRECTORY), (0x6000, b'b'), (0x8000, b'f')];
const DIRECTORY: u8 = b'd';
const NO_FILE: u8 = b'-';
/// Before the name: letter and blank.
const NAME_START: usize = 2;

type Label = [u8; NAME_BYTES];

impl Space<'_> {
    /// Notes which file or directory a captured object is about, if it is about one.
    pub fn find_owner(&self, capture: &mut ObjectCapture) {
        let numbers = &self.layout.numbers;
        let object = capture.object;
        let label = match capture.capture_kind() {
            CaptureKind::Slab => match capture.cache_name() {
                "dentry" => self.of_dentry(object),
                "filp" => self.field(object, numbers.file_dentry).and_then(|dentry| self.of_dentry(dentry)),
                "radix_tree_node" => self.of_tree_node(object),
                cache => {
                    let offset = match cache {
                        "inode_cache" => 0,
                        "shmem_inode_cache" => numbers.inode_in_shmem,
                        "ext4_inode_cache" => numbers.inode_in_ext4,
                        "xfs_inode" => numbers.inode_in_xfs,
                        "btrfs_inode" => numbers.inode_in_btrfs,
                        "bdev_cache" => numbers.inode_in_block_device,
                        _ => return,
                    };
                    object.checked_add(offset).and_then(|inode| self.of_inode(inode))
                }
            },
            CaptureKind::Page if capture.page() == PageKind::PageCache => self.of_inode(capture.owner),
            CaptureKind::StructPage if capture.page() == PageKind::PageCache => {
                let mapping = self.field(object, numbers.page_mapping);
                mapping
                    .and_then(|mapping| self.field(mapping, numbers.mapping_host))
                    .and_then(|host| self.of_inode(host))
            }
            _ => None,
        };
        capture.of_whom = label.unwrap_or_default();
    }

    fn of_tree_node(&self, node: u64) -> Option<Label> {
        let numbers = &self.layout.numbers;
        let mapping = self.field(node, numbers.tree_node_array)?.checked_sub(numbers.mapping_pages)?;
        let inode = self.field(mapping, numbers.mapping_host)?;
        // An array of pages alone has a host; of others, anything may lie there.
        self.of_inode(inode)
    }

    fn of_dentry(&self, dentry: u64) -> Option<Label> {
        let numbers = &self.layout.numbers;
        let inode = self.field(dentry, numbers.dentry_inode)?;
        let kind = if inode == 0 { NO_FILE } else { self.kind(inode)? };
        let mut label = label(kind);
        self.copy_name(dentry, &mut label);
        Some(label)
    }

    fn of_inode(&self, inode: u64) -> Option<Label> {
        let numbers = &self.layout.numbers;
        let mut label = label(self.kind(inode)?);
        // The list's head shares its place with what frees the inode; a dentry of it says so itself.
        let alias = self.field(inode, numbers.inode_dentries).filter(|alias| alias >> 63 == 1);
        let dentry = alias.and_then(|alias| alias.checked_sub(numbers.dentry_alias));
        if let Some(dentry) = dentry.filter(|dentry| self.field(*dentry, numbers.dentry_inode) == Some(inode)) {
            self.copy_name(dentry, &mut label);
        }
        Some(label)
    }

    /// The letter of an inode's kind; `None` if no inode is there.
    fn kind(&self, inode: u64) -> Option<u8> {
        if inode >> 63 == 0 {
            return None;
        }
        let mode = self.field_u32(inode, self.layout.numbers.inode_mode)? & MODE_KIND;
        KINDS.iter().find(|(value, _)| *value == mode).map(|(_, letter)| *letter)
    }

    fn copy_name(&self, dentry: u64, label: &mut Label) {
        let mut name = [0; NAME_BYTES - NAME_START];
        if let Some(text) = self.field(dentry, self.layout.numbers.dentry_name).filter(|text| text >> 63 == 1) {
            self.copy_text(text, &mut name);
        }
        // `d_mark_tmpfile` (fs/dcache.c): a file without a name is called by its inode's number.
        let is_told = if label[0] == DIRECTORY { name[..2] == *b"/\0" } else { name[0] != b'#' };
        if name[0] != 0 && is_told {
            label[NAME_START - 1] = b' ';
            label[NAME_START..].copy_from_slice(&name);
        }
    }
}

fn label(kind: u8) -> Label {
    let mut label = [0; NAME_BYTES];
    label[0] = kind;
    label
}
