//! The recorded view: the real tree as a file system to read, which keeps each first look as a question with its answer.
//!
//! ```text
//! command ─► overlay ─► what was changed             its own layer
//!                  └──► View ─► Tree                 first look: asked of the real tree, kept, recorded
//!                                                    later looks: what was answered first
//! ```
//! **What the kernel keeps.** Names, also absent ones, and attributes that were asked for, for as long as the run lasts; pages that
//! were read. So the tree stays as it was first seen, whatever others do, and a look is asked once.
//!
//! **What counts as asked.** Walking through a directory asks what it is and who may use it. `stat` asks all that it returns: with
//! a name the kernel is given no size, times and number of names, so that it has none to show to those who want the kernel not to ask. Reading to the end of a file asks for
//! its size alone. Where the overlay asks in order to copy a file, the answer is what the copy keeps: not how many names the file has.
//!
//! **What cannot be kept.** Data that the command has not read yet, or that the kernel had to give up. If a file changes after something
//! of it was seen, and what was seen is no longer so, such a read fails with `ESTALE`: the command never meets half of a change, and its
//! commit would be refused anyway.

mod callers;
pub(crate) mod data;
mod handle;
mod known;
mod requests;

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::io::Errno;

use self::callers::Callers;
use self::handle::Handle;
use self::known::{Known, Nodes};
use crate::ownership::Ownership;
use crate::place::Place;
use crate::question::{Answer, Look, Question};
use crate::record::Recorder;
use crate::shared::locked;
use crate::tree::Tree;

/// For how long the kernel believes what it was answered: longer than any run.
const ALWAYS: Duration = Duration::from_secs(1 << 30);

/// Answers the kernel's requests.
#[derive(Debug)]
pub(crate) struct View {
    tree: Tree,
    ownership: Ownership,
    /// Whether the kernel may read files itself.
    passes_through: bool,
    nodes: Nodes,
    handles: Mutex<HashMap<u64, Arc<Handle>>>,
    callers: Callers,
    next_handle: AtomicU64,
    recorder: Arc<Mutex<Option<Recorder>>>,
}

impl View {
    /// A view of a tree, whose looks go into a record. `Err` if the tree's root cannot be looked at.
    pub(crate) fn new(
        tree: Tree,
        ownership: Ownership,
        recorder: Arc<Mutex<Option<Recorder>>>,
    ) -> rustix::io::Result<View> {
        let root = tree.attributes(&Place::root())?.ok_or(Errno::NOENT)?;
        let view = View {
            tree,
            ownership,
            passes_through: false,
            nodes: Nodes::new(root.clone()),
            handles: Mutex::new(HashMap::new()),
            callers: Callers::default(),
            next_handle: AtomicU64::new(1),
            recorder,
        };
        view.note(&Place::root(), Question::Name, Answer::Attributes(root));
        Ok(view)
    }

    /// The same, of a run whose `/proc` this is: it says what a thread that asks has called.
    pub(crate) fn for_run(self, processes: Option<OwnedFd>) -> View {
        View { callers: Callers::new(processes), ..self }
    }

    /// Records a first look. A record that cannot be written is given up: without its end nothing can be committed.
    fn note(&self, place: &Place, question: Question, answer: Answer) {
        self.note_data(place, question, answer, &[]);
    }

    /// The same of a look at data, with the bytes that it found.
    fn note_data(&self, place: &Place, question: Question, answer: Answer, bytes: &[u8]) {
        let look = Look { place: place.clone(), question, answer };
        let mut recorder = locked(&self.recorder);
        let note = |recorder: &mut Recorder| {
            recorder.add(&look)?;
            if matches!(look.question, Question::Data { .. }) { recorder.keep(bytes) } else { Ok(()) }
        };
        if let Some(Err(error)) = recorder.as_mut().map(note) {
            eprintln!("commutant try: writing the record: {}", crate::failure::reason(&error));
            *recorder = None;
        }
    }

    /// What a name in a directory leads to: a node's number, or `None` if nothing is there.
    fn look_up(&self, parent: u64, name: &[u8]) -> rustix::io::Result<Option<u64>> {
        if let Some(known) = self.nodes.child(parent, name) {
            return known.outcome();
        }
        let directory = self.nodes.get(parent).ok_or(Errno::STALE)?;
        let place = directory.place.join(name);
        if self.tree.is_hidden(&place) {
            return Ok(None);
        }
        let was_listed_without = locked(&directory.seen)
            .listing
            .as_ref()
            .is_some_and(|listed| listed.binary_search_by(|(own, _)| own.as_slice().cmp(name)).is_err());
        // Who has seen all names of a directory does not find another.
        let answer = if was_listed_without { Answer::Absent } else { self.tree.ask(&place, &Question::Name) };
        let (known, is_first) = self.nodes.learn(parent, name, &place, &answer);
        if is_first {
            self.note(&place, Question::Name, answer);
        }
        known.outcome()
    }

    fn new_handle(&self, handle: Handle) -> u64 {
        let number = self.next_handle.fetch_add(1, Ordering::Relaxed);
        locked(&self.handles).insert(number, Arc::new(handle));
        number
    }
}

impl Known {
    fn outcome(self) -> rustix::io::Result<Option<u64>> {
        match self {
            Known::Absent => Ok(None),
            Known::Node(number) => Ok(Some(number)),
            Known::Fault(number) => Err(Errno::from_raw_os_error(number)),
        }
    }
}
