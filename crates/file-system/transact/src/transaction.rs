//! A transaction between its calls: what it knows, what it has changed, and its end.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell, RefMut};

use posix_calls::{
    Answer, AttributeChange, AttributeChanges, Decision, Errno, Existence, Failed, FileChanges, InodeNumber, Kind,
    NameChange, NameChanges, ObjectOperations, OperationError, PAGE_BYTES, Precedence, ReservedPages, Stance, Urgency,
    WriteChange,
};
use sync::mutant::planted;

use crate::base::{Base, FaultIn, FileChange, PreparedIn};
use crate::file::OwnData;
use crate::hooks::Refused;
use crate::layer::Layer;
use crate::question::{About, AboutData, Name, Object, Objects, Origin, Question, Reply, ask, meet, number};

/// Up to so many answers, all are asked for again with each new one.
const FEW: usize = 64;
/// So often others make a commit look again, before they wait for its look.
const REVOCATIONS: usize = 3;

/// Who else uses the base while a transaction commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Nobody: the base is used by one thread.
    Alone,
    /// Others: the commit keeps them from the names that the transaction has seen, too.
    Shared,
}

/// Why a call of a transaction, or its commit, cannot be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault<F> {
    /// Something that the transaction has seen is not so any more. Nothing of it has happened or will: begin again.
    Stale,
    /// This does not happen together with other changes ([`Sharing::Shared`]).
    NotTransactional,
    /// The base has no memory left for the changes.
    NoSpace,
    /// The base has failed.
    Base(F),
}

impl<F: Into<Errno>> From<Fault<F>> for Errno {
    fn from(fault: Fault<F>) -> Errno {
        match fault {
            Fault::Stale => Errno::ECANCELED,
            Fault::NotTransactional => Errno::EOPNOTSUPP,
            Fault::NoSpace => Errno::ENOSPC,
            Fault::Base(fault) => fault.into(),
        }
    }
}

/// What a transaction had changed at some time, to go back to.
#[derive(Debug)]
pub struct Savepoint(Layer);

/// What an operation inside a transaction over `B` answers.
pub(crate) type Within<T, B> = Result<T, Failed<Fault<<B as ObjectOperations>::Fault>>>;

/// What a commit answers.
pub(crate) type End<B> = Result<(), Fault<<B as ObjectOperations>::Fault>>;

pub(crate) fn from_base<F>(Failed(fault): Failed<F>) -> Failed<Fault<F>> {
    Failed(Fault::Base(fault))
}

/// A transaction that has begun, over a base whose handles are `H`.
///
/// It keeps objects of the base. So it ends with [`Transaction::commit`] or [`Transaction::abort`]; dropped, it leaves them
/// kept for ever.
#[derive(Debug)]
#[must_use = "a transaction ends with a commit or an abort"]
pub struct Transaction<H> {
    state: RefCell<State<H>>,
}

#[derive(Debug)]
pub(crate) struct State<H> {
    pub(crate) sharing: Sharing,
    pub(crate) objects: Objects<H>,
    pub(crate) layer: Layer,
    pub(crate) root: InodeNumber,
    precedence: Precedence,
    /// Where the process worked in the beginning.
    working_directory: InodeNumber,
    log: BTreeMap<Question, Reply>,
    /// Answers that there may be before all are asked for again.
    unchecked: usize,
    is_stale: bool,
    /// Pages that were written, of files of the base, and of each the space for it.
    pub(crate) reserved_for: BTreeSet<(InodeNumber, u64)>,
    pub(crate) reserved: Vec<Cell<Option<u64>>>,
    /// Data of files that the transaction has made is not in the base as the layer says.
    has_gone_back: bool,
}

impl<H> Transaction<H> {
    /// Begins a transaction of the process whose call `base` is.
    ///
    /// # Errors
    /// The base's fault.
    pub fn begin<P: Base<Objects: NameChanges<Handle = H>>>(
        base: &P,
        sharing: Sharing,
    ) -> Answer<Transaction<H>, P::Objects> {
        let base = base.objects();
        let (root, object) = meet(base, &Objects::new(), base.root())?;
        let mut objects = Objects::from_iter(object);
        let (working_directory, met) = match meet(base, &objects, base.working_directory()) {
            Ok(met) => met,
            Err(failed) => {
                release(base, objects);
                return Err(failed);
            }
        };
        objects.extend(met);
        let (layer, log) = (Layer::default(), BTreeMap::new());
        let precedence = Precedence(base.now_ns());
        let state = State {
            precedence,
            sharing,
            objects,
            layer,
            root,
            working_directory,
            log,
            unchecked: FEW,
            is_stale: false,
            reserved_for: BTreeSet::new(),
            reserved: Vec::new(),
            has_gone_back: false,
        };
        Ok(Transaction { state: RefCell::new(state) })
    }

    /// Lets it commit before others that do so at the same time, if the number is smaller than theirs. By default it is the time
    /// of its beginning in nanoseconds.
    pub fn with_precedence(mut self, precedence: Precedence) -> Transaction<H> {
        self.state.get_mut().precedence = precedence;
        self
    }

    /// Who commits first of those that do so at the same time.
    pub fn precedence(&self) -> Precedence {
        self.state.borrow().precedence
    }

    /// How many answers of the base it rests on.
    pub fn answers(&self) -> usize {
        self.state.borrow().log.len()
    }

    pub(crate) fn state(&self) -> RefMut<'_, State<H>> {
        self.state.borrow_mut()
    }

    /// Makes all changes at one moment at which everything that was seen is so.
    ///
    /// # Errors
    /// [`Fault::Stale`] if there is none; then nothing has happened, and a new transaction may do better.
    pub fn commit<P: Base<Objects: NameChanges<Handle = H>>>(self, base: &P) -> End<P::Objects> {
        self.commit_with(base, &mut || Ok(()))
    }

    /// As [`Transaction::commit`], together with participants: `prepare` prepares them once all changes are prepared.
    pub(crate) fn commit_with<P: Base<Objects: NameChanges<Handle = H>>>(
        self,
        base: &P,
        prepare: &mut dyn FnMut() -> Result<(), Refused>,
    ) -> End<P::Objects> {
        let state = self.state.into_inner();
        let (outcome, offsets) = match state.lock_offsets(base) {
            Ok(offsets) => (state.commit(base, prepare), offsets),
            Err(fault) => (Err(fault), Default::default()),
        };
        base.end_descriptors(&state.layer.descriptors, offsets, outcome.is_ok());
        state.give_pages_back(base);
        release(base.objects(), state.objects);
        outcome
    }

    /// Ends the transaction; nothing has happened.
    ///
    /// # Errors
    /// [`Fault::Stale`] if what was seen is not so any more: whatever was concluded from it need not be true.
    pub fn abort<P: Base<Objects: NameChanges<Handle = H>>>(self, base: &P) -> End<P::Objects> {
        let state = self.state.into_inner();
        let outcome = if state.is_stale { Err(Fault::Stale) } else { state.check(base.objects(), base) };
        base.end_descriptors(&state.layer.descriptors, Default::default(), false);
        state.give_pages_back(base);
        release(base.objects(), state.objects);
        outcome
    }

    /// Whether all that was seen is still so.
    ///
    /// # Errors
    /// The base's fault.
    pub fn is_still_so<P: Base<Objects: NameChanges<Handle = H>>>(&self, base: &P) -> Result<bool, Fault<FaultIn<P>>> {
        match self.state().recheck(base) {
            Ok(()) => Ok(true),
            Err(Failed(Fault::Stale)) => Ok(false),
            Err(Failed(fault)) => Err(fault),
        }
    }

    /// What has changed up to now; see [`Transaction::go_back`].
    pub fn savepoint(&self) -> Savepoint {
        Savepoint(self.state().layer.clone())
    }

    /// Forgets all changes since a savepoint. What was seen stays seen.
    pub fn go_back(&self, Savepoint(layer): Savepoint) {
        let mut state = self.state();
        state.layer.go_back(layer);
        state.has_gone_back = true;
    }
}

impl<H> State<H> {
    pub(crate) fn kind(&self, number: InodeNumber) -> Kind {
        self.objects[&number].kind
    }

    pub(crate) fn is_made(&self, number: InodeNumber) -> bool {
        self.objects[&number].origin == Origin::Made
    }

    /// Gives back space that the commit has not used.
    fn give_pages_back<P: Base<Objects: NameChanges<Handle = H>>>(&self, base: &P) {
        self.reserved.iter().filter_map(Cell::take).for_each(|page| base.give_page_back(page));
    }

    /// Dooms the transaction: something that it rests on is not so any more.
    pub(crate) fn doom<F>(&mut self) -> Fault<F> {
        self.is_stale = true;
        Fault::Stale
    }

    /// Keeps an object that the transaction has made, and nobody else finds.
    pub(crate) fn meet_made<'v, B: NameChanges<Handle = H>>(
        &mut self,
        base: &'v B,
        node: B::Node<'v>,
    ) -> Within<(), B> {
        let (number, met) = meet(base, &self.objects, node).map_err(from_base)?;
        self.objects.extend(met.map(|(_, object)| (number, Object { origin: Origin::Made, ..object })));
        Ok(())
    }

    /// The answer to a question, if it was asked.
    pub(crate) fn told(&self, question: &Question) -> Option<Reply> {
        self.log.get(question).cloned()
    }

    pub(crate) fn open<B: NameChanges<Handle = H>>(&self) -> Within<(), B> {
        if self.is_stale { Err(Failed(Fault::Stale)) } else { Ok(()) }
    }

    /// Where the process works, as far as the base is concerned.
    pub(crate) fn working_directory(&mut self) -> InodeNumber {
        let question = Question { subject: self.root, about: About::WorkingDirectory };
        self.log.entry(question).or_insert(Reply::Node(Some(self.working_directory)));
        self.working_directory
    }

    /// The base's answer to a question: as it was, or asked for now and kept.
    pub(crate) fn known<P: Base<Objects: NameChanges<Handle = H>>>(
        &mut self,
        base: &P,
        question: Question,
    ) -> Within<Reply, P::Objects> {
        self.open::<P::Objects>()?;
        if let Some(reply) = self.told(&question) {
            return Ok(reply);
        }
        let mut met = None;
        let mut introduce = |node| {
            let (number, new) = meet(base.objects(), &self.objects, node)?;
            met = new;
            Ok(number)
        };
        let reply = match &question.about {
            About::Data(about) => base.ask_data(question.subject, &self.objects, about, &mut introduce),
            _ => ask(base.objects(), &self.objects, &question, introduce),
        };
        let reply = reply.map_err(from_base)?;
        self.objects.extend(met);
        if self.is_made(question.subject) {
            // Nobody else changes it.
            return Ok(reply);
        }
        let is_read = matches!(question.about, About::Data(AboutData::Bytes(..)));
        if is_read && planted("transact: a read keeps the whole size") {
            self.known(base, Question { subject: question.subject, about: About::SizeBytes })?;
        }
        let is_absence = matches!(reply, Reply::Node(None) | Reply::Truth(false));
        let is_forgotten = is_read && planted("transact: bytes that were read are not kept")
            || is_absence && planted("transact: absence is not kept")
            || matches!(reply, Reply::Next(None)) && planted("transact: where a listing ends is not kept");
        if !is_forgotten {
            self.log.insert(question, reply.clone());
        }
        if self.log.len() <= FEW || self.log.len() >= self.unchecked {
            self.recheck(base)?;
            self.unchecked = 2 * self.log.len();
        }
        Ok(reply)
    }

    /// Asks all questions again; dooms the transaction if an answer is another one.
    pub(crate) fn recheck<P: Base<Objects: NameChanges<Handle = H>>>(&mut self, base: &P) -> Within<(), P::Objects> {
        let checked = self.check(base.objects(), base);
        self.is_stale |= matches!(checked, Err(Fault::Stale));
        checked.map_err(Failed)
    }

    /// Asks all questions again.
    fn check<P, L>(&self, looks: &L, base: &P) -> End<P::Objects>
    where
        P: Base<Objects: NameChanges<Handle = H>>,
        L: ObjectOperations<Handle = H, Fault = FaultIn<P>>,
    {
        for (question, reply) in &self.log {
            let now = match &question.about {
                // The number is the transaction's own since.
                About::Data(AboutData::MayServe(number, _)) if self.layer.descriptors.has_taken(*number) => continue,
                About::Data(AboutData::Descriptor(number))
                    if self.layer.descriptors.has_taken(*number) && *reply == Reply::Description(None) =>
                {
                    continue;
                }
                About::Data(about) => {
                    let introduce = &mut |node| number(base.objects(), node);
                    base.ask_data(question.subject, &self.objects, about, introduce)
                }
                _ => ask(looks, &self.objects, question, |node| number(looks, node)),
            };
            if now.map_err(|Failed(fault)| Fault::Base(fault))? != *reply {
                return Err(Fault::Stale);
            }
        }
        Ok(())
    }

    /// What a name led to in the base, of a name that has changed.
    pub(crate) fn before(&self, directory: InodeNumber, name: &[u8]) -> Option<InodeNumber> {
        let question = Question { subject: directory, about: About::LeadsTo(name.into()) };
        // Who has only asked whether it exists has found that it does not: else it would have been asked for.
        self.log.get(&question).cloned().and_then(Reply::node)
    }

    fn commit<P: Base<Objects: NameChanges<Handle = H>>>(
        &self,
        base: &P,
        prepare: &mut dyn FnMut() -> Result<(), Refused>,
    ) -> End<P::Objects> {
        if self.is_stale {
            return Err(Fault::Stale);
        }
        self.change_what_was_made(base)?;
        self.change(base, &mut || prepare().map_err(|Refused| Fault::Stale))?;
        let base = base.objects();
        if let Some(directory) = self.layer.working_directory {
            let directory = base.held(&self.objects[&directory].handle);
            base.set_working_directory(directory).map_err(|Failed(fault)| Fault::Base(fault))?;
        }
        Ok(())
    }

    /// Keeps others from all offsets that were seen; before everything else that the commit locks.
    fn lock_offsets<'v, P: Base<Objects: NameChanges<Handle = H>>>(
        &self,
        base: &'v P,
    ) -> Result<P::OffsetLocks<'v>, Fault<FaultIn<P>>> {
        if self.is_stale {
            return Err(Fault::Stale);
        }
        let mut asked = self.log.iter().filter_map(|(question, reply)| match (&question.about, reply) {
            (About::Data(AboutData::Offset(number)), Reply::Offset(bytes)) => Some((*number, *bytes)),
            _ => None,
        });
        let locks = base.lock_offsets(&mut asked).map_err(|Failed(fault)| Fault::Base(fault))?;
        locks.ok_or(Fault::Stale)
    }

    /// The names that have changed.
    fn changed_names(&self) -> Wanted<'_> {
        let names = self.layer.names().map(|(directory, name, after)| {
            let before = self.before(directory, name);
            ((directory, name), Becomes::Other { before, after })
        });
        names.filter(|(_, becomes)| !matches!(becomes, Becomes::Other { before, after } if before == after)).collect()
    }

    /// Adds the names that were seen, so that they stay as they are until the decision.
    fn lock_seen_names<'s>(&'s self, wanted: &mut Wanted<'s>) {
        for (question, reply) in &self.log {
            let Some(name) = question.about.name() else { continue };
            let becomes = match reply {
                Reply::Node(leads_to) => Becomes::Same(*leads_to),
                Reply::Truth(true) | Reply::Existence(Existence::Plain | Existence::MaybeSymlink) => Becomes::Something,
                _ => Becomes::Same(None),
            };
            let known = wanted.entry((question.subject, name)).or_insert(becomes);
            if matches!(known, Becomes::Something) {
                *known = becomes;
            }
        }
    }

    /// Changes names and attributes at one moment at which all answers are so.
    fn change<P: Base<Objects: NameChanges<Handle = H>>>(
        &self,
        whole: &P,
        prepare: &mut dyn FnMut() -> End<P::Objects>,
    ) -> End<P::Objects> {
        let base = whole.objects();
        let mut wanted = self.changed_names();
        if self.sharing == Sharing::Shared {
            self.lock_seen_names(&mut wanted);
        }
        let attributes: Vec<_> = self.changed_attributes(Origin::Base).collect();
        let files: Vec<_> = self.changed_files().collect();
        if wanted.is_empty() && attributes.is_empty() && files.is_empty() {
            prepare()?;
            return self.check(base, whole);
        }
        let key = |name| base.key(name).expect("names are kept if they are names");
        let keys: Vec<_> = wanted.keys().map(|(_, name)| key(name)).collect();
        let node = |number: InodeNumber| base.held(&self.objects[&number].handle);
        let mut changes = Vec::new();
        for ((&(directory, _), becomes), key) in wanted.iter().zip(&keys) {
            let directory = node(directory);
            let (before, after) = match *becomes {
                Becomes::Other { before, after } => (before.map(node), after.map(node)),
                Becomes::Same(leads_to) => (leads_to.map(node), leads_to.map(node)),
                Becomes::Something => {
                    let found = base.look_up(directory, key).map_err(|Failed(fault)| Fault::Base(fault))?;
                    let node = base.node(&found.ok_or(Fault::Stale)?);
                    (Some(node), Some(node))
                }
            };
            changes.push(NameChange { directory, key, before, after });
        }
        let attributes =
            attributes.into_iter().map(|(number, changes)| AttributeChanges { node: node(number), changes });
        let attributes: Vec<_> = attributes.collect();
        let mut room: Vec<_> = changes.iter().map(|_| Default::default()).collect();
        let mut attribute_room: Vec<_> = attributes.iter().map(|_| Default::default()).collect();
        let writes: Vec<Vec<_>> = files.iter().map(|(_, data)| by_pages(data).collect()).collect();
        let files = files.iter().zip(&writes).map(|((number, data), writes)| FileChanges {
            file: node(*number),
            cut_to: data.cut_to,
            writes,
            size_bytes: data.exact_size(),
        });
        let files: Vec<_> = files.collect();
        let mut file_room: Vec<_> = files.iter().map(|_| Default::default()).collect();
        let mut page_room: Vec<_> = writes.iter().flatten().map(|_| Default::default()).collect();
        let reserved = ReservedPages::new(&self.reserved);
        let mut prepared = base.prepare(&changes, &mut room).map_err(refused)?;
        let outcome = base
            .prepare_attributes(&mut prepared, &attributes, &mut attribute_room)
            .and_then(|()| whole.prepare_data(&mut prepared, &files, &reserved, (&mut file_room, &mut page_room)))
            .map_err(refused)
            .and_then(|()| prepare())
            .and_then(|()| self.decide(whole, &mut prepared));
        let decision = if outcome.is_ok() { Decision::Commit } else { Decision::Abort };
        let finished = base.finish(prepared, decision).map_err(|Failed(fault)| Fault::Base(fault));
        outcome.and(finished)
    }

    /// Asks everything again and decides, until nobody comes in between.
    fn decide<'v, P: Base<Objects: NameChanges<Handle = H>>>(
        &self,
        whole: &'v P,
        prepared: &mut PreparedIn<'_, 'v, P>,
    ) -> End<P::Objects> {
        let base = whole.objects();
        for round in 0.. {
            let stance = if round < REVOCATIONS { Stance::Yields } else { Stance::Insists };
            let is_late = planted("transact: checked after the changes");
            if !planted("transact: changes are not open while all is asked for") {
                let looks = base.open(prepared, Urgency { precedence: self.precedence, stance });
                if !is_late {
                    self.check(&looks, whole)?;
                }
            } else {
                self.check(base, whole)?;
            }
            if base.decide(prepared).map_err(|Failed(fault)| Fault::Base(fault))? {
                break;
            }
        }
        Ok(())
    }

    /// Attributes that have changed of objects of an origin.
    fn changed_attributes(&self, origin: Origin) -> impl Iterator<Item = (InodeNumber, &[AttributeChange])> {
        let of_origin = move |number: &InodeNumber| self.objects[number].origin == origin;
        let objects = self.layer.objects().filter(move |(number, own)| of_origin(number) && !own.attributes.is_empty());
        objects.map(|(number, own)| (number, &own.attributes[..]))
    }

    /// Files of the base whose data have changed.
    pub(crate) fn changed_files(&self) -> impl Iterator<Item = (InodeNumber, &OwnData)> {
        let objects = self.layer.objects().filter(|(number, own)| !self.is_made(*number) && own.data.is_changed());
        objects.map(|(number, own)| (number, &own.data))
    }

    /// Lets files that nobody else knows have the bytes that the layer says, where they have others since a part was undone.
    fn write_again<P: Base<Objects: NameChanges<Handle = H>>>(&self, base: &P) -> End<P::Objects> {
        let made =
            self.objects.iter().filter(|(_, object)| object.origin == Origin::Made && object.kind == Kind::Regular);
        for (number, object) in made.filter(|_| self.has_gone_back) {
            let file = base.objects().held(&object.handle);
            base.write_made(file, FileChange::Resize(0)).map_err(refused)?;
            let Some(own) = self.layer.object(*number) else { continue };
            for (offset, bytes) in own.data.writes() {
                if base.write_made(file, FileChange::Write(offset, bytes)).map_err(refused)? < bytes.len() {
                    return Err(Fault::NoSpace);
                }
            }
            base.write_made(file, FileChange::Resize(own.data.least_size())).map_err(refused)?;
        }
        Ok(())
    }

    /// Gives objects that nobody else knows the attributes that the transaction has given them.
    fn change_what_was_made<P: Base<Objects: NameChanges<Handle = H>>>(&self, whole: &P) -> End<P::Objects> {
        self.write_again(whole)?;
        let base = whole.objects();
        for (number, changes) in self.changed_attributes(Origin::Made) {
            let node = base.held(&self.objects[&number].handle);
            for change in changes {
                match *change {
                    AttributeChange::Permissions(change) => base.change_permissions(node, change),
                    AttributeChange::Times(right, times) => base.set_times(node, right, times),
                }
                .map_err(|_| Fault::Stale)?;
            }
        }
        Ok(())
    }
}

/// What was written, in parts that cross no border of a page.
fn by_pages(data: &OwnData) -> impl Iterator<Item = WriteChange<'_>> {
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
fn refused<F>(refusal: OperationError<F>) -> Fault<F> {
    match refusal {
        OperationError::NoSpace => Fault::NoSpace,
        OperationError::Fault(fault) => Fault::Base(fault),
        OperationError::Exists | OperationError::Changed | OperationError::Dead | OperationError::NotEmpty => {
            Fault::Stale
        }
    }
}

/// What is to become of names.
type Wanted<'s> = BTreeMap<(InodeNumber, &'s Name), Becomes>;

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

fn release<B: NameChanges>(base: &B, objects: impl IntoIterator<Item = (InodeNumber, Object<B::Handle>)>) {
    for (_, Object { handle, .. }) in objects {
        base.release(handle);
    }
}
