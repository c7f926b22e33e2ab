//! Processes and their children: who there is, and how they have ended.
//!
//! A process's number names the domain that gave it, as an object's does, wherever the process is now. Its children have
//! numbers of the same domain, which keeps how they end until somebody waits for them.

use posix_calls::Ended;

use super::Server;
use crate::identity::ObjectNumber;
use crate::wire::Reply;

impl Server {
    /// A number for a process that no one waits for.
    pub(crate) fn new_process(&mut self) -> ObjectNumber {
        self.next_number()
    }

    pub(super) fn adopt_child(&mut self, parent: ObjectNumber) -> Reply {
        let child = self.next_number();
        self.families.children.entry(parent).or_default().insert(child, None);
        self.families.parents.insert(child, parent);
        Reply::Made { number: child }
    }

    /// A process has ended: no one waits for its children any more.
    pub(super) fn end_child(&mut self, process: ObjectNumber, ended: Ended) -> Reply {
        for orphan in self.families.children.remove(&process).unwrap_or_default().into_keys() {
            self.families.parents.remove(&orphan);
        }
        let siblings = self.families.parents.remove(&process).and_then(|it| self.families.children.get_mut(&it));
        if let Some(me) = siblings.and_then(|siblings| siblings.get_mut(&process)) {
            *me = Some(ended);
        }
        Reply::Done {}
    }

    pub(super) fn children(&self, parent: ObjectNumber) -> Reply {
        let children = self.families.children.get(&parent);
        let ended = children.and_then(|children| children.iter().find(|(_, ended)| ended.is_some()));
        Reply::Children {
            has_one: children.is_some_and(|children| !children.is_empty()),
            ended: ended.map(|(number, _)| *number),
        }
    }

    pub(super) fn take_ended(&mut self, parent: ObjectNumber, child: ObjectNumber) -> Reply {
        let Some(children) = self.families.children.get_mut(&parent) else {
            return Reply::Child { is_one: false, ended: None };
        };
        let state = children.get(&child).copied();
        if let Some(Some(_)) = state {
            children.remove(&child);
        }
        Reply::Child { is_one: state.is_some(), ended: state.flatten() }
    }
}
