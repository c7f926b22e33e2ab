//! Objects: what a number leads to.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use posix_calls::{Extent, Kind, Permissions, Received, SocketName, SocketOrder, Sought};

/// Bytes of a page.
pub(crate) const PAGE_BYTES: usize = 4096;

/// The number of an object; the root has 1.
pub(crate) type Number = u64;

/// An object with what every kind has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Object {
    pub(crate) body: Body,
    pub(crate) permissions: Permissions,
    /// Names that lead here.
    pub(crate) links: u32,
    /// Whether it has had one.
    pub(crate) is_named: bool,
    /// Handles, descriptions, working directories, and directories in it.
    pub(crate) references: u32,
    pub(crate) accessed_ns: i64,
    pub(crate) modified_ns: i64,
    pub(crate) changed_ns: i64,
    /// By name.
    pub(crate) extended: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// What the kinds of objects have of their own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Body {
    File(File),
    Directory(Directory),
    Symlink(Arc<[u8]>),
    Pipe(Pipe),
    Socket(Socket),
    /// A name for what lies outside, and the number of its device.
    Outside(Kind, u64),
}

impl Body {
    /// Whether it is one of the files that `Limits::inodes` limits, and not what has no name in a directory.
    pub(crate) fn is_limited(&self) -> bool {
        !matches!(self, Body::Pipe(_) | Body::Socket(_))
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Body::File(_) => Kind::Regular,
            Body::Directory(_) => Kind::Directory,
            Body::Symlink(_) => Kind::Symlink,
            Body::Pipe(_) => Kind::Pipe,
            Body::Socket(_) => Kind::Socket,
            Body::Outside(kind, _) => *kind,
        }
    }
}

/// An object that is kept over calls.
///
/// A copy belongs to a copy of the file system that was made at the same time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[must_use = "an object is kept until `posix_calls::names::close`"]
pub struct OpenNode(pub(crate) Number);

/// The data of a regular file. Pages that are not there are holes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct File {
    pub(crate) pages: BTreeMap<u64, Vec<u8>>,
    pub(crate) size_bytes: u64,
}

impl File {
    /// Reads bytes; fewer than asked for at the end.
    pub(crate) fn read(&self, offset: u64, bytes: &mut [u8]) -> usize {
        let length = self.size_bytes.saturating_sub(offset).min(bytes.len() as u64) as usize;
        for (place, byte) in bytes[..length].iter_mut().enumerate() {
            let at = offset + place as u64;
            let page = self.pages.get(&(at / PAGE_BYTES as u64));
            *byte = page.map_or(0, |page| page[at as usize % PAGE_BYTES]);
        }
        length
    }

    /// Writes bytes while `take_page` gives pages; returns how many.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8], mut take_page: impl FnMut() -> bool) -> usize {
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            let (number, start) = (at / PAGE_BYTES as u64, at as usize % PAGE_BYTES);
            let count = (bytes.len() - done).min(PAGE_BYTES - start);
            if !self.pages.contains_key(&number) && !take_page() {
                break;
            }
            let page = self.pages.entry(number).or_insert_with(|| vec![0; PAGE_BYTES]);
            page[start..start + count].copy_from_slice(&bytes[done..done + count]);
            done += count;
            self.size_bytes = self.size_bytes.max(at + count as u64);
        }
        done
    }

    /// What lies at an offset, and how far.
    pub(crate) fn extent(&self, offset: u64) -> Extent {
        let page_bytes = PAGE_BYTES as u64;
        let first = offset / page_bytes;
        if !self.pages.contains_key(&first) {
            let next = self.pages.range(first..).next();
            return Extent { kind: Sought::Hole, end: next.map_or(u64::MAX, |(page, _)| page * page_bytes) };
        }
        let alike = (first..).zip(self.pages.range(first..)).take_while(|(place, (page, _))| place == *page);
        Extent { kind: Sought::Data, end: (first + alike.count() as u64) * page_bytes }
    }

    /// Makes the file this long; returns how many pages it gave up.
    pub(crate) fn resize(&mut self, size_bytes: u64) -> usize {
        let before = self.pages.len();
        self.pages.retain(|number, _| number * (PAGE_BYTES as u64) < size_bytes);
        if let Some(last) = self.pages.get_mut(&(size_bytes / PAGE_BYTES as u64)) {
            last[size_bytes as usize % PAGE_BYTES..].fill(0);
        }
        self.size_bytes = size_bytes;
        before - self.pages.len()
    }
}

/// A directory: names, each with what it leads to and where it stands in listings.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Directory {
    pub(crate) names: BTreeMap<Vec<u8>, Entry>,
    pub(crate) parent: Number,
    pub(crate) moves: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    pub(crate) number: Number,
    pub(crate) cookie: u64,
}

/// Pages that wait in a pipe at most (Linux: `PIPE_DEF_BUFFERS`).
const PIPE_PAGES: usize = 16;

/// The bytes in a pipe, page by page, and the descriptors of each end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Pipe {
    pages: VecDeque<PipePage>,
    pub(crate) ends: [u32; 2],
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PipePage {
    /// How many of the bytes were read.
    start: usize,
    bytes: Vec<u8>,
}

impl Pipe {
    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.pages.len() == PIPE_PAGES
    }

    /// How many bytes a write could put in.
    pub(crate) fn room(&self) -> usize {
        (PIPE_PAGES - self.pages.len()) * PAGE_BYTES
    }

    /// Copies bytes that wait.
    pub(crate) fn peek(&self, bytes: &mut [u8]) -> usize {
        let waiting = self.pages.iter().flat_map(|page| &page.bytes[page.start..]);
        bytes.iter_mut().zip(waiting).map(|(to, from)| *to = *from).count()
    }

    /// Takes bytes out.
    pub(crate) fn read(&mut self, bytes: &mut [u8]) -> usize {
        let count = self.peek(bytes);
        let mut left = count;
        while let Some(page) = self.pages.front_mut().filter(|_| left > 0) {
            let taken = left.min(page.bytes.len() - page.start);
            page.start += taken;
            left -= taken;
            if page.start == page.bytes.len() {
                self.pages.pop_front();
            }
        }
        count
    }

    /// Puts bytes in, as many as there is room for: what is no whole page goes to the last page if it fits.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> usize {
        let odd = bytes.len() % PAGE_BYTES;
        let mut done = 0;
        if let Some(last) = self.pages.back_mut().filter(|last| odd > 0 && last.bytes.len() + odd <= PAGE_BYTES) {
            last.bytes.extend_from_slice(&bytes[..odd]);
            done = odd;
        }
        while done < bytes.len() && !self.is_full() {
            let count = (bytes.len() - done).min(PAGE_BYTES);
            self.pages.push_back(PipePage { start: 0, bytes: bytes[done..done + count].to_vec() });
            done += count;
        }
        done
    }
}

/// Messages that wait in a socket at most: those of one ring of crate `sockets`.
const MESSAGE_LIMIT: usize = 16;

/// A socket, which keeps its peer while it is open. Messages come in the order in which they were sent, which is one of those that an
/// unordered socket may have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Socket {
    pub(crate) order: SocketOrder,
    pub(crate) peer: Option<Number>,
    /// Its name, or no bytes.
    pub(crate) name: Vec<u8>,
    pub(crate) descriptors: u32,
    /// Whether the last descriptor was closed.
    pub(crate) is_gone: bool,
    pub(crate) messages: VecDeque<Message>,
}

/// A message that waits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Message {
    pub(crate) bytes: Vec<u8>,
    /// Name of the sender, or no bytes.
    pub(crate) from: Vec<u8>,
}

impl Socket {
    /// A socket without descriptors, name and peer.
    pub(crate) fn new(order: SocketOrder) -> Socket {
        let (name, messages) = (Vec::new(), VecDeque::new());
        Socket { order, peer: None, name, descriptors: 0, is_gone: false, messages }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.messages.len() == MESSAGE_LIMIT
    }

    /// Takes the message that was sent first.
    pub(crate) fn receive(&mut self, bytes: &mut [u8]) -> Option<Received> {
        let message = self.messages.pop_front()?;
        bytes.iter_mut().zip(&message.bytes).for_each(|(to, from)| *to = *from);
        let from = SocketName::new(&message.from).unwrap_or(SocketName::NONE);
        Some(Received { length_bytes: message.bytes.len(), from })
    }
}
