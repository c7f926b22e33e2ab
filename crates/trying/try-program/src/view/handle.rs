//! Files that the command has open.

use std::fs::File;
use std::sync::Arc;

use super::known::Node;

/// A file that the command has open.
#[derive(Debug)]
pub(super) struct Handle {
    /// `None` if it is not any more what was seen of it: only what the kernel keeps of it can be read.
    pub(super) file: Option<File>,
    pub(super) node: Arc<Node>,
}
