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
use crate::name::Name;
use crate::question::{About, AboutData, Met, Object, Objects, Origin, Question, Reply, ask, key, meet, number};
use crate::table::Table;

/// Up to so many answers, all are asked for again before the call that comes after a new one.
const FEW: usize = 8;
/// After so many calls at least, all are asked for again even if none was new.
const CALLS: usize = 64;
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
    log: Table<Question, Kept>,
    /// Answers that there were when all were asked for.
    checked: usize,
    /// Answers that there may be before all are asked for again.
    unchecked: usize,
    /// Calls that were begun since all were asked for.
    calls: usize,
    is_stale: bool,
    /// Pages that were written, of files of the base, and of each the space for it.
    pub(crate) reserved_for: BTreeSet<(InodeNumber, u64)>,
    pub(crate) reserved: Vec<Cell<Option<u64>>>,
    /// Files that the transaction has made whose data is not in the base as the layer says, since writes were undone.
    undone: BTreeSet<InodeNumber>,
}

/// An answer of the base.
#[derive(Debug)]
pub(crate) struct Kept {
    /// Where the object is of which was asked, among all that the transaction knows.
    place: usize,
    reply: Reply,
    /// Of the name that it is about, from before it was asked for; see [`NameChanges::name_version`].
    version: Cell<u64>,
}

/// Whether answers are what they were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// All the time.
    AllTheTime,
    /// But one has perhaps been another in between.
    Again,
}

/// Which names are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Names {
    /// All, and only what their answers are now.
    Answers,
    All,
    /// Those that are not locked to be changed.
    Unchanged,
}

/// What keeps names that were seen, and that the transaction does not change, from changing until the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    /// Nothing: their versions tell whether they have.
    Versions,
    /// The locks of their buckets.
    Locks,
}

/// What the base has said about a name, by the question.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told {
    pub(crate) leads_to: Option<Option<InodeNumber>>,
    pub(crate) existence: Option<Existence>,
    pub(crate) exists: Option<bool>,
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
        let mut objects = Objects::default();
        let (root, met) = meet(base, &objects, base.root())?;
        keep(&mut objects, met);
        let (working_directory, met) = match meet(base, &objects, base.working_directory()) {
            Ok(met) => met,
            Err(failed) => {
                release(base, objects);
                return Err(failed);
            }
        };
        keep(&mut objects, met);
        let (layer, log) = (Layer::default(), Table::default());
        let precedence = Precedence(base.now_ns());
        let state = State {
            precedence,
            sharing,
            objects,
            layer,
            root,
            working_directory,
            log,
            unchecked: 2 * FEW,
            checked: 0,
            calls: 0,
            is_stale: false,
            reserved_for: BTreeSet::new(),
            reserved: Vec::new(),
            undone: BTreeSet::new(),
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
        let outcome =
            if state.is_stale { Err(Fault::Stale) } else { state.check(base.objects(), base, Names::All).map(|_| ()) };
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
        let state = &mut *self.state();
        for (number, object) in state.objects.iter() {
            let differs =
                |now: &Layer| now.object(*number).map(|own| &own.data) != layer.object(*number).map(|own| &own.data);
            if object.origin == Origin::Made && object.kind == Kind::Regular && differs(&state.layer) {
                state.undone.insert(*number);
            }
        }
        state.layer.go_back(layer);
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
        keep(&mut self.objects, met.map(|(_, object)| (number, Object { origin: Origin::Made, ..object })));
        Ok(())
    }

    /// A call begins: what is new to the transaction came together with what is still so. Who makes call after call and learns
    /// nothing may go round for something that was never so.
    pub(crate) fn note_call<P: Base<Objects: NameChanges<Handle = H>>>(&mut self, base: &P) {
        self.calls += 1;
        let is_new = self.checked < self.log.len() && self.log.len() <= FEW;
        if (is_new || self.calls > CALLS.max(self.log.len())) && !self.is_stale {
            // If it is stale, the call is told; a fault comes again when something is asked for.
            let _ = self.recheck(base);
        }
    }

    /// The answer to a question, if it was asked.
    pub(crate) fn told(&self, question: &Question) -> Option<Reply> {
        self.log.get(question).map(|kept| kept.reply.clone())
    }

    /// What was told of a name by the base.
    pub(crate) fn told_of_name(&self, directory: InodeNumber, name: &Name) -> Told {
        let mut told = Told::default();
        let mut note = |reply: &Reply| match *reply {
            Reply::Node(leads_to) => told.leads_to = Some(leads_to),
            Reply::Existence(existence) => told.existence = Some(existence),
            Reply::Truth(exists) => told.exists = Some(exists),
            _ => {}
        };
        let of_name = |question: &Question| question.subject == directory && question.about.name() == Some(name);
        if self.log.is_looked_through() {
            self.log.iter().filter(|(question, _)| of_name(question)).for_each(|(_, kept)| note(&kept.reply));
        } else {
            let like = Question { subject: directory, about: About::LeadsTo(name.clone()) };
            self.log.of_hash(&like).filter(|(question, _)| of_name(question)).for_each(|(_, kept)| note(&kept.reply));
        }
        told
    }

    pub(crate) fn open<B: NameChanges<Handle = H>>(&self) -> Within<(), B> {
        if self.is_stale { Err(Failed(Fault::Stale)) } else { Ok(()) }
    }

    /// Where the process works, as far as the base is concerned.
    pub(crate) fn working_directory(&mut self) -> InodeNumber {
        let question = Question { subject: self.root, about: About::WorkingDirectory };
        if !self.log.contains(&question) {
            let reply = Reply::Node(Some(self.working_directory));
            let place = self.objects.place(&self.root).expect("met in the beginning");
            self.log.push(question, Kept { place, reply, version: Cell::new(0) });
        }
        self.working_directory
    }

    /// The base's answer to a question: as it was, or asked for now and kept.
    pub(crate) fn known<P: Base<Objects: NameChanges<Handle = H>>>(
        &mut self,
        base: &P,
        question: Question,
    ) -> Within<Reply, P::Objects> {
        self.open::<P::Objects>()?;
        match self.told(&question) {
            Some(reply) => Ok(reply),
            None => self.learn(base, question),
        }
    }

    /// The base's answer to a question that has not been asked: it is kept.
    pub(crate) fn learn<P: Base<Objects: NameChanges<Handle = H>>>(
        &mut self,
        base: &P,
        question: Question,
    ) -> Within<Reply, P::Objects> {
        let place = self.objects.place(&question.subject).expect("questions are about what it knows");
        let (_, Object { handle: subject, origin, .. }) = self.objects.row(place);
        let origin = *origin;
        let version = Cell::new(self.version_for(base, (subject, &question)));
        let mut met = None;
        let mut introduce = |node| {
            let (number, new) = meet(base.objects(), &self.objects, node)?;
            met = new;
            Ok(number)
        };
        let reply = match &question.about {
            About::Data(about) => base.ask_data(question.subject, &self.objects, about, &mut introduce),
            _ => ask(base.objects(), &self.objects, (subject, &question), introduce),
        };
        let reply = reply.map_err(from_base)?;
        keep(&mut self.objects, met);
        if origin == Origin::Made {
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
            self.log.push(question, Kept { place, reply: reply.clone(), version });
        }
        if self.log.len() >= self.unchecked {
            self.recheck(base)?;
        }
        Ok(reply)
    }

    /// Asks all questions again; dooms the transaction if an answer is another one.
    pub(crate) fn recheck<P: Base<Objects: NameChanges<Handle = H>>>(&mut self, base: &P) -> Within<(), P::Objects> {
        self.calls = 0;
        self.checked = self.log.len();
        self.unchecked = 2 * self.checked.max(FEW);
        let checked = self.check(base.objects(), base, Names::Answers);
        self.is_stale |= matches!(checked, Err(Fault::Stale));
        checked.map(|_| ()).map_err(Failed)
    }

    /// The version of the name that a question is about, where it matters.
    fn version_for<P: Base<Objects: NameChanges<Handle = H>>>(
        &self,
        base: &P,
        (subject, question): (&H, &Question),
    ) -> u64 {
        match question.about.name().filter(|_| self.sharing == Sharing::Shared) {
            None => 0,
            Some(name) => {
                let objects = base.objects();
                let with_value = matches!(question.about, About::LeadsTo(_));
                objects.name_version(objects.held(subject), &key(objects, name), with_value)
            }
        }
    }

    /// Whether nobody can have changed a name and changed it back between a look at it before and one now. If somebody can, the
    /// next look is compared with one from now on.
    fn was_so_since<P: Base<Objects: NameChanges<Handle = H>>>(
        &self,
        base: &P,
        (subject, question): (&H, &Question),
        kept: &Kept,
    ) -> bool {
        let now = self.version_for(base, (subject, question));
        if now == kept.version.get() {
            return true;
        }
        let (objects, name) = (base.objects(), question.about.name().expect("it has a version"));
        let directory = objects.held(subject);
        // The transaction's own changes beside it are new versions, too.
        if objects.is_locked(directory, &key(objects, name)) {
            return true;
        }
        kept.version.set(now);
        false
    }

    /// Asks all questions again, or all but those about names that are locked to be changed.
    fn check<P, L>(&self, looks: &L, base: &P, names: Names) -> Result<Seen, Fault<FaultIn<P>>>
    where
        P: Base<Objects: NameChanges<Handle = H>>,
        L: ObjectOperations<Handle = H, Fault = FaultIn<P>>,
    {
        let mut seen = Seen::AllTheTime;
        for (question, kept) in self.log.iter() {
            let subject = &self.objects.row(kept.place).1.handle;
            let name = question.about.name();
            let is_changed = |name: &Name| {
                let own = self.layer.name(question.subject, name);
                own.is_some_and(|own| own.before != own.leads_to)
            };
            if names == Names::Unchanged && name.is_some_and(is_changed) {
                continue;
            }
            let now = match &question.about {
                // The number is the transaction's own since.
                About::Data(AboutData::MayServe(number, _)) if self.layer.descriptors.has_taken(*number) => continue,
                About::Data(AboutData::Descriptor(number))
                    if self.layer.descriptors.has_taken(*number) && kept.reply == Reply::Description(None) =>
                {
                    continue;
                }
                About::Data(AboutData::Offset(_)) if planted("transact: offsets are not asked for again") => continue,
                About::Data(about) => {
                    let introduce = &mut |node| number(base.objects(), node);
                    base.ask_data(question.subject, &self.objects, about, introduce)
                }
                _ => ask(looks, &self.objects, (subject, question), |node| number(looks, node)),
            };
            if now.map_err(|Failed(fault)| Fault::Base(fault))? != kept.reply {
                return Err(Fault::Stale);
            }
            if names != Names::Answers && name.is_some() && !self.was_so_since(base, (subject, question), kept) {
                seen = Seen::Again;
            }
        }
        Ok(seen)
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
        // Others are prepared once, before the first look that may decide.
        let mut are_prepared = false;
        let mut once = || {
            if !are_prepared {
                prepare().map_err(|Refused| Fault::Stale)?;
                are_prepared = true;
            }
            Ok(())
        };
        // Who is always come between has the locks of all names that it has seen.
        if self.change(base, Hold::Versions, &mut once)? == Seen::Again {
            // Pages that were taken for its writes are used up.
            if !self.reserved.is_empty() || self.change(base, Hold::Locks, &mut once)? == Seen::Again {
                return Err(Fault::Stale);
            }
        }
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
        let mut asked = self.log.iter().filter_map(|(question, _)| match question.about {
            About::Data(AboutData::Offset(number)) => Some(number),
            _ => None,
        });
        base.lock_offsets(&mut asked).map_err(|Failed(fault)| Fault::Base(fault))
    }

    /// The names that have changed.
    fn changed_names(&self) -> impl Iterator<Item = ((InodeNumber, &Name), Becomes)> {
        let changed = self.layer.names().filter(|(_, _, own)| own.before != own.leads_to);
        changed.map(|(directory, name, own)| {
            ((directory, name), Becomes::Other { before: own.before, after: own.leads_to })
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

    /// Changes names and attributes at one moment at which all answers are so; or changes nothing, if there may have been
    /// none ([`Seen::Again`]).
    fn change<P: Base<Objects: NameChanges<Handle = H>>>(
        &self,
        whole: &P,
        hold: Hold,
        prepare: &mut dyn FnMut() -> End<P::Objects>,
    ) -> Result<Seen, Fault<FaultIn<P>>> {
        let base = whole.objects();
        let mut wanted: Wanted<'_> = self.changed_names().collect();
        if self.sharing == Sharing::Shared && hold == Hold::Locks {
            wanted = self.with_seen_names(wanted);
        }
        let attributes: Vec<_> = self.changed_attributes(Origin::Base).collect();
        let files: Vec<_> = self.changed_files().collect();
        if wanted.is_empty() && attributes.is_empty() && files.is_empty() {
            prepare()?;
            // Versions are those of the look before.
            for _ in 0..REVOCATIONS {
                if self.check(base, whole, Names::All)? == Seen::AllTheTime {
                    return Ok(Seen::AllTheTime);
                }
            }
            return Ok(Seen::Again);
        }
        let keys: Vec<_> = wanted.iter().map(|((_, name), _)| key(base, name)).collect();
        let node = |number: InodeNumber| base.held(&self.objects[&number].handle);
        let mut changes = Vec::new();
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
        let happens = matches!(outcome, Ok(Seen::AllTheTime));
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
    ) -> Result<Seen, Fault<FaultIn<P>>> {
        let base = whole.objects();
        let mut looks_again = 0;
        for round in 0.. {
            let stance = if round < REVOCATIONS { Stance::Yields } else { Stance::Insists };
            let is_late = planted("transact: checked after the changes");
            if !planted("transact: changes are not open while all is asked for") {
                let looks = base.open(prepared, Urgency { precedence: self.precedence, stance });
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
        for number in &self.undone {
            let file = base.objects().held(&self.objects[number].handle);
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

/// Keeps an object that was met for the first time.
pub(crate) fn keep<H>(objects: &mut Objects<H>, met: Met<H>) {
    if let Some((number, object)) = met {
        objects.push(number, object);
    }
}

fn release<B: NameChanges>(base: &B, mut objects: Objects<B::Handle>) {
    for (_, Object { handle, .. }) in objects.drain() {
        base.release(handle);
    }
}
