//! The commit: what the transaction has changed happens at one moment at which all that it has seen is so.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use posix_calls::{
    AttributeChanges, Decision, Existence, Failed, FileChanges, InodeNumber, Moment, NameChange, NameChanges,
    ObjectOperations as _, OperationError, PAGE_BYTES, ReservedPages, Stance, Urgency, WriteChange,
};
use sync::mutant::planted;

use super::{End, Fault, Names, Seen, Sharing, State};
use crate::base::{Base, FaultIn, PreparedIn};
use crate::changes::{Changes, DataBecomes, NameBecomes};
use crate::decided::Decided;
use crate::hooks::{Hooks, Refused};
use crate::name::Name;
use crate::pipe::UNCHANGED;
use crate::question::{About, AboutData, Question, Reply, key};

/// So often others make a commit look again, before they wait for its look.
const REVOCATIONS: usize = 3;

/// What keeps names that were seen, and that the transaction does not change, from changing until the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    /// Nothing: their versions tell whether they have.
    Versions,
    /// The locks of their buckets.
    Locks,
}

impl<H> State<H> {
    pub(super) fn commit<P: Base<Objects: NameChanges<Handle = H>>>(
        &self,
        base: &P,
        hooks: &Hooks<'_>,
    ) -> End<P::Objects> {
        if self.is_stale {
            return Err(Fault::Stale);
        }
        let changes = self.changes();
        let seen = match self.layer.is_empty() && hooks.are_alone() {
            true => self.look(base)?,
            false => {
                self.change_what_was_made(base, &changes)?;
                self.change(base, &changes, Hold::Versions, hooks)?
            }
        };
        // Who is always come between has the locks of all names that it has seen.
        if seen == Seen::Again {
            // Pages that were taken for its writes are used up.
            if !self.reserved.is_empty() || self.change(base, &changes, Hold::Locks, hooks)? == Seen::Again {
                return Err(Fault::Stale);
            }
        }
        let base = base.objects();
        if let Some(directory) = self.layer.scalars.working_directory {
            let directory = base.held(&self.objects[&directory].handle);
            base.set_working_directory(directory).map_err(|Failed(fault)| Fault::Base(fault))?;
        }
        Ok(())
    }

    /// Keeps others from all offsets and pipes that were seen; before everything else that the commit locks.
    pub(super) fn lock<'v, P: Base<Objects: NameChanges<Handle = H>>>(
        &'v self,
        base: &'v P,
    ) -> Result<P::Locks<'v>, Fault<FaultIn<P>>> {
        if self.is_stale {
            return Err(Fault::Stale);
        }
        let data = || {
            self.log.iter().filter_map(|(question, _)| match &question.about {
                About::Data(about) => Some((question.subject, about)),
                _ => None,
            })
        };
        let mut offsets = data().filter_map(|(_, about)| match about {
            AboutData::Offset(number) => Some(*number),
            _ => None,
        });
        let is_of_pipe = |about: &AboutData| matches!(about, AboutData::PipeBytes(_) | AboutData::PipeRoom(_));
        let pipes: BTreeSet<_> = data().filter(|(_, about)| is_of_pipe(about)).map(|(subject, _)| subject).collect();
        let mut pipes = pipes.into_iter().map(|number| {
            let own = self.layer.object(number).map_or(&UNCHANGED, |own| &own.pipe);
            (base.objects().held(&self.objects[&number].handle), own)
        });
        base.lock(&mut offsets, &mut pipes).map_err(refused)
    }

    /// Whether the transaction has closed a descriptor of the base that leads to an object, or may have.
    pub(crate) fn has_let_go(&self, number: InodeNumber) -> bool {
        let descriptors = &self.layer.descriptors;
        descriptors.changed().filter(|(descriptor, _)| !descriptors.has_taken(*descriptor)).any(|(descriptor, _)| {
            let question = Question { subject: self.root, about: About::Data(AboutData::Descriptor(descriptor)) };
            match self.told(&question).map(Reply::description) {
                Some(described) => described.is_some_and(|described| described.node == number),
                None => true,
            }
        })
    }

    /// Adds the names that were seen, so that they stay as they are until the decision.
    fn with_seen_names<'s>(&'s self, changed: Wanted<'s>) -> Wanted<'s> {
        let mut wanted: BTreeMap<_, _> = changed.into_iter().collect();
        for (question, kept) in self.log.iter() {
            let Some(name) = question.about.name() else { continue };
            let becomes = match &kept.reply {
                Reply::Node(leads_to) => Becomes::Same(*leads_to),
                Reply::Truth(true) | Reply::Existence(Existence::Plain | Existence::MaybeSymlink) => Becomes::Something,
                _ => Becomes::Same(None),
            };
            let known = wanted.entry((question.subject, name)).or_insert(becomes);
            if matches!(known, Becomes::Something) {
                *known = becomes;
            }
        }
        wanted.into_iter().collect()
    }

    /// Whether there was a moment at which all answers were so: what a transaction that changes nothing commits by.
    fn look<P: Base<Objects: NameChanges<Handle = H>>>(&self, base: &P) -> Result<Seen, Fault<FaultIn<P>>> {
        // Versions are those of the look before.
        for _ in 0..REVOCATIONS {
            if self.check(base.objects(), base, Names::All)? == Seen::AllTheTime {
                return Ok(Seen::AllTheTime);
            }
        }
        Ok(Seen::Again)
    }

    /// Changes names and attributes at one moment at which all answers are so; or changes nothing, if there may have been
    /// none ([`Seen::Again`]).
    fn change<P: Base<Objects: NameChanges<Handle = H>>>(
        &self,
        whole: &P,
        changes: &Changes<'_>,
        hold: Hold,
        hooks: &Hooks<'_>,
    ) -> Result<Seen, Fault<FaultIn<P>>> {
        let base = whole.objects();
        let becomes = |name: NameBecomes<'_>| Becomes::Other { before: name.before, after: name.after };
        let mut wanted: Wanted<'_> = changes.names().map(|name| ((name.directory, name.name), becomes(name))).collect();
        if self.sharing == Sharing::Shared && hold == Hold::Locks {
            wanted = self.with_seen_names(wanted);
        }
        let of_base = || changes.objects().filter(|object| !self.is_made(object.number));
        let attributes: Vec<_> = of_base().filter(|object| !object.attributes.is_empty()).collect();
        let files: Vec<_> = of_base().filter(|object| object.data.is_changed()).collect();
        let touched: Vec<_> = of_base().filter_map(|object| Some((object.number, object.touched?))).collect();
        let changes_nothing = wanted.is_empty() && attributes.is_empty() && files.is_empty() && touched.is_empty();
        if changes_nothing && hooks.are_alone() {
            return self.look(whole);
        }
        let keys: Vec<_> = wanted.iter().map(|((_, name), _)| key(base, name)).collect();
        let node = |number: InodeNumber| base.held(&self.objects[&number].handle);
        let mut name_changes = Vec::new();
        for (&((directory, _), becomes), key) in wanted.iter().zip(&keys) {
            let directory = node(directory);
            let (before, after) = match becomes {
                Becomes::Other { before, after } => (before.map(node), after.map(node)),
                Becomes::Same(leads_to) => (leads_to.map(node), leads_to.map(node)),
                Becomes::Something => {
                    let found = base.look_up(directory, key).map_err(|Failed(fault)| Fault::Base(fault))?;
                    let node = base.node(&found.ok_or(Fault::Stale)?);
                    (Some(node), Some(node))
                }
            };
            name_changes.push(NameChange { directory, key, before, after });
        }
        let attributes =
            attributes.iter().map(|object| AttributeChanges { node: node(object.number), changes: object.attributes });
        let attributes: Vec<_> = attributes.collect();
        let mut room: Vec<_> = name_changes.iter().map(|_| Default::default()).collect();
        let mut attribute_room: Vec<_> = attributes.iter().map(|_| Default::default()).collect();
        let writes: Vec<Vec<_>> = files.iter().map(|object| by_pages(object.data).collect()).collect();
        let files = files.iter().zip(&writes).map(|(object, writes)| FileChanges {
            file: node(object.number),
            cut_to: object.data.cut_to(),
            writes,
            size_bytes: object.data.size_bytes(),
        });
        let files: Vec<_> = files.collect();
        let mut file_room: Vec<_> = files.iter().map(|_| Default::default()).collect();
        let mut page_room: Vec<_> = writes.iter().flatten().map(|_| Default::default()).collect();
        let reserved = ReservedPages::new(&self.reserved);
        let touched: Vec<_> = touched.into_iter().map(|(number, touched)| (node(number), touched)).collect();
        let moment = Moment { now_ns: changes.moment(), touched: &touched };
        let mut prepared = base.prepare(&name_changes, moment, &mut room).map_err(refused)?;
        let outcome = base
            .prepare_attributes(&mut prepared, &attributes, &mut attribute_room)
            .and_then(|()| whole.prepare_data(&mut prepared, &files, &reserved, (&mut file_room, &mut page_room)))
            .map_err(refused);
        // Before the first look that may decide; who is prepared stays so.
        let marked = match &outcome {
            Ok(()) => Some(hooks.mark(base.deciding(&prepared))),
            Err(_) => None,
        };
        let outcome = outcome.and_then(|()| match &marked {
            Some(Err(Refused)) => Err(Fault::Stale),
            _ => self.decide(whole, &mut prepared, hooks),
        });
        let happens = matches!(outcome, Ok(Seen::AllTheTime));
        if let Some(Ok(marked)) = marked {
            marked.decide(happens);
        }
        let decision = if happens { Decision::Commit } else { Decision::Abort };
        let finished = base.finish(prepared, decision).map_err(|Failed(fault)| Fault::Base(fault));
        let seen = outcome?;
        finished.map(|()| seen)
    }

    /// Asks everything again and decides, until nobody comes in between.
    fn decide<'v, P: Base<Objects: NameChanges<Handle = H>>>(
        &self,
        whole: &'v P,
        prepared: &mut PreparedIn<'_, 'v, P>,
        hooks: &Hooks<'_>,
    ) -> Result<Seen, Fault<FaultIn<P>>> {
        let base = whole.objects();
        let mut looks_again = 0;
        for round in 0.. {
            let stance = if round < REVOCATIONS { Stance::Yields } else { Stance::Insists };
            let is_late = planted("transact: checked after the changes");
            if !planted("transact: changes are not open while all is asked for") {
                let looks = base.open(prepared, Urgency { precedence: self.precedence, stance });
                hooks.opened();
                if !is_late && self.check(&looks, whole, Names::Unchanged)? == Seen::Again {
                    looks_again += 1;
                    if looks_again == REVOCATIONS {
                        break;
                    }
                    continue;
                }
            } else {
                self.check(base, whole, Names::All)?;
            }
            if base.decide(prepared).map_err(|Failed(fault)| Fault::Base(fault))? {
                return Ok(Seen::AllTheTime);
            }
        }
        Ok(Seen::Again)
    }
}

/// What was written, in parts that cross no border of a page.
fn by_pages(data: DataBecomes<'_>) -> impl Iterator<Item = WriteChange<'_>> {
    data.writes().flat_map(|(mut offset, mut bytes)| {
        core::iter::from_fn(move || {
            let length = bytes.len().min((PAGE_BYTES - offset % PAGE_BYTES) as usize);
            let (first, rest) = bytes.split_at(length);
            let write = WriteChange { offset, bytes: first };
            (offset, bytes) = (offset + length as u64, rest);
            (length > 0).then_some(write)
        })
    })
}

/// Why nothing can be prepared.
pub(crate) fn refused<F>(refusal: OperationError<F>) -> Fault<F> {
    match refusal {
        OperationError::NoSpace => Fault::NoSpace,
        OperationError::Fault(fault) => Fault::Base(fault),
        OperationError::Exists | OperationError::Changed | OperationError::Dead | OperationError::NotEmpty => {
            Fault::Stale
        }
    }
}

/// What is to become of names.
type Wanted<'s> = Vec<((InodeNumber, &'s Name), Becomes)>;

/// What is to become of a name.
#[derive(Clone, Copy, Debug)]
enum Becomes {
    Other {
        before: Option<InodeNumber>,
        after: Option<InodeNumber>,
    },
    /// It is locked.
    Same(Option<InodeNumber>),
    /// It is locked, whatever it leads to.
    Something,
}
