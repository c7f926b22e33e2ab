//! What the view has answered: a node for each name that it found, and a note of each that it did not.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use fuser::BackingId;

use crate::attributes::{Attributes, Kind};
use crate::place::Place;
use crate::question::{Answer, Listed};
use crate::shared::locked;

/// The number of the root, by FUSE's rule.
const ROOT: u64 = 1;
/// Numbers of objects whose inode's number another one has: a second name of a file, or a file on another mount.
const FIRST_OTHER: u64 = 1 << 62;

/// What a name was found to lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Absent,
    Node(u64),
    /// The system refused to say.
    Fault(i32),
}

/// What was answered about an object.
#[derive(Debug)]
pub(super) struct Seen {
    /// As it was when the answers below were true.
    pub(super) attributes: Attributes,
    /// Whether `stat` was asked, so that all of these are an answer.
    pub(super) has_given_attributes: bool,
    /// Whether it was asked for a copy.
    pub(super) has_given_copy: bool,
    /// The same of a copy that is emptied.
    pub(super) has_given_empty_copy: bool,
    pub(super) has_given_size: bool,
    /// Whether the kernel reads the file itself, as it was then.
    pub(super) has_given_version: bool,
    /// By offset and length: the answers about bytes.
    pub(super) data: HashMap<(u64, u32), Answer>,
    pub(super) listing: Option<Arc<Vec<Listed>>>,
    pub(super) target: Option<Vec<u8>>,
    pub(super) extended: HashMap<Vec<u8>, Result<Vec<u8>, i32>>,
    pub(super) extended_names: Option<Result<Vec<Vec<u8>>, i32>>,
}

impl Seen {
    /// What the kernel may keep: the system shows that to whoever wants no question asked (`AT_STATX_DONT_SYNC`). So it is no more
    /// than what was asked for and recorded; the rest says nothing about the object.
    pub(super) fn known(&self) -> Attributes {
        let mut known = self.attributes.clone();
        if self.has_given_attributes {
            return known;
        }
        // An overlay needs to know whether there is another name: only where there is none does a copy keep the inode's number.
        known.links = if known.kind == Kind::Directory { 1 } else { known.links.min(2) };
        if !(self.has_given_copy || self.has_given_version) {
            (known.modified, known.changed) = ((0, 0), (0, 0));
            if !self.has_given_size {
                known.size_bytes = unknown_size(known.kind);
            }
        }
        known
    }
}

/// A size that is no answer. Whoever reads finds the end of a file by its data, as the kernel asks for a size only where it is smaller.
fn unknown_size(kind: Kind) -> u64 {
    match kind {
        Kind::File => 1 << 62,
        // The longest target: the kernel cuts it off there.
        Kind::Symlink => 4095,
        _ => 0,
    }
}

/// An object of the view.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) seen: Mutex<Seen>,
    /// The file that the kernel reads itself, for all who open it; `None` if it reads by requests.
    pub(super) backing: OnceLock<Option<BackingId>>,
}

/// Names of a directory, by the directory's number.
type Names = HashMap<Box<[u8]>, Known>;

/// All nodes and names. None is forgotten: what was answered once is the answer until the run ends.
#[derive(Debug)]
pub(super) struct Nodes {
    /// By number: that of the inode, as far as it can be, since programs such as git compare it with what they have noted.
    nodes: RwLock<HashMap<u64, Arc<Node>>>,
    names: Mutex<HashMap<u64, Names>>,
}

impl Nodes {
    pub(super) fn new(root: Attributes) -> Nodes {
        Nodes { nodes: RwLock::new(HashMap::from([(ROOT, node(Place::root(), root))])), names: Mutex::default() }
    }

    pub(super) fn get(&self, number: u64) -> Option<Arc<Node>> {
        let nodes = self.nodes.read().unwrap_or_else(PoisonError::into_inner);
        nodes.get(&number).cloned()
    }

    pub(super) fn child(&self, parent: u64, name: &[u8]) -> Option<Known> {
        locked(&self.names).get(&parent)?.get(name).copied()
    }

    /// Keeps what a name leads to, unless another thread was first; says what is kept, and whether it is this answer.
    pub(super) fn learn(&self, parent: u64, name: &[u8], place: &Place, answer: &Answer) -> (Known, bool) {
        let mut names = locked(&self.names);
        let names = names.entry(parent).or_default();
        if let Some(known) = names.get(name) {
            return (*known, false);
        }
        let known = match answer {
            Answer::Attributes(attributes) => {
                let mut nodes = self.nodes.write().unwrap_or_else(PoisonError::into_inner);
                let own =
                    Some(attributes.inode).filter(|own| *own > ROOT && *own < FIRST_OTHER && !nodes.contains_key(own));
                let number = own.unwrap_or(FIRST_OTHER + nodes.len() as u64);
                nodes.insert(number, node(place.clone(), attributes.clone()));
                Known::Node(number)
            }
            Answer::Fault(number) => Known::Fault(*number),
            _ => Known::Absent,
        };
        names.insert(name.into(), known);
        (known, true)
    }
}

fn node(place: Place, attributes: Attributes) -> Arc<Node> {
    let seen = Seen {
        attributes,
        has_given_attributes: false,
        has_given_copy: false,
        has_given_empty_copy: false,
        has_given_size: false,
        has_given_version: false,
        data: HashMap::new(),
        listing: None,
        target: None,
        extended: HashMap::new(),
        extended_names: None,
    };
    Arc::new(Node { place, seen: Mutex::new(seen), backing: OnceLock::new() })
}
