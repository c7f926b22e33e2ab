//! A transaction between its calls: what it knows, what it has changed, and its end.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell, RefMut};

use posix_calls::{
    Answer, Decision, Errno, Existence, Failed, InodeNumber, Kind, NameChanges, ObjectOperations, OperationError,
    Outcome, Precedence,
};
use sync::mutant::planted;

use crate::base::{Base, FaultIn};
use crate::changes::Changes;
use crate::conflict::Conflict;
use crate::descriptors::Descriptors;
use crate::hooks::Hooks;
use crate::layer::Layer;
use crate::loss::Loss;
use crate::name::Name;
use crate::pipe::OwnPipe;
use crate::question::{About, AboutData, Met, Object, Objects, Origin, Question, Reply, ask, key, meet, number};
use crate::table::Table;
use crate::undo::{NoSuchSavepoint, Savepoint};

mod commit;

pub(crate) use commit::refused;

/// Up to so many answers, all are asked for again before the call that comes after a new one.
const FEW: usize = 8;
/// After so many calls at least, all are asked for again even if none was new.
const CALLS: usize = 64;

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

/// What waits in each pipe that a transaction has made: they are the base's, which nobody else finds.
#[derive(Debug)]
pub(crate) struct OwnPipes(Vec<(InodeNumber, Box<[u8]>)>);

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
    state: Box<RefCell<State<H>>>,
}

/// The memory of a transaction that has ended, for the next one.
#[derive(Debug)]
pub(crate) struct Spare<H>(Option<Box<RefCell<State<H>>>>);

impl<H> Default for Spare<H> {
    fn default() -> Spare<H> {
        Spare(None)
    }
}

#[derive(Debug)]
pub(crate) struct State<H> {
    pub(crate) sharing: Sharing,
    pub(crate) objects: Objects<H>,
    pub(crate) layer: Layer,
    pub(crate) root: InodeNumber,
    precedence: Precedence,
    /// What times say of its changes, once it has seen that; else it is the time of the commit.
    moment_ns: Option<u64>,
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
    /// Whether answers are kept: not those that are only passed on.
    pub(crate) keeps: bool,
    /// Of what an answer is another one, since it is stale.
    lost_by: Cell<Loss>,
    /// Others' changes wait for it, and so it does not wait for theirs.
    has_claim: bool,
    /// Pages that were written, of files of the base, and of each the space for it.
    pub(crate) reserved_for: BTreeSet<(InodeNumber, u64)>,
    pub(crate) reserved: Vec<Cell<Option<u64>>>,
    /// Files that the transaction has made whose data is not in the base as the layer says, since writes were undone.
    pub(crate) undone: BTreeSet<InodeNumber>,
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
        Transaction::begin_in(Spare::default(), base, sharing)
    }

    /// As [`Transaction::begin`], in the memory of one that has ended.
    pub(crate) fn begin_in<P: Base<Objects: NameChanges<Handle = H>>>(
        Spare(spare): Spare<H>,
        base: &P,
        sharing: Sharing,
    ) -> Answer<Transaction<H>, P::Objects> {
        let mut transaction = Transaction { state: spare.unwrap_or_default() };
        match transaction.state.get_mut().begin(base.objects(), sharing) {
            Ok(()) => Ok(transaction),
            Err(failed) => {
                transaction.leave(base.objects());
                Err(failed)
            }
        }
    }

    /// Gives up all that it has kept; its memory stays.
    fn leave<B: NameChanges<Handle = H>>(mut self, base: &B) -> Spare<H> {
        let state = self.state.get_mut();
        state.objects.drain(|_, Object { handle, .. }| base.release(handle));
        state.forget();
        Spare(Some(self.state))
    }

    /// Lets it commit before others that do so at the same time, if the number is smaller than theirs. By default it is the time
    /// of its beginning in nanoseconds.
    pub fn with_precedence(mut self, precedence: Precedence) -> Transaction<H> {
        self.state.get_mut().precedence = precedence;
        self
    }

    pub(crate) fn sharing(&self) -> Sharing {
        self.state.borrow().sharing
    }

    /// How it stands to others: who commits first, and whether they wait for it.
    pub(crate) fn stand(&mut self, precedence: Precedence, has_claim: bool) {
        let state = self.state.get_mut();
        (state.precedence, state.has_claim) = (precedence, has_claim);
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
        self.commit_with(base, &Hooks::default()).0
    }

    /// As [`Transaction::commit`], together with participants. Says what it has lost by, too.
    fn commit_with<P: Base<Objects: NameChanges<Handle = H>>>(
        mut self,
        base: &P,
        hooks: &Hooks<'_>,
    ) -> (End<P::Objects>, Loss, Spare<H>) {
        let outcome = self.try_commit(base, hooks);
        let (lost_by, spare) = self.end(base, outcome.is_ok());
        (outcome, lost_by, spare)
    }

    /// Tries to make all changes; [`Transaction::end`] comes next. Where there is no space for them, or a participant panics, nothing
    /// has happened, and the transaction is as it was: it may try again.
    pub(crate) fn try_commit<P: Base<Objects: NameChanges<Handle = H>>>(
        &mut self,
        base: &P,
        hooks: &Hooks<'_>,
    ) -> End<P::Objects> {
        let state = self.state.get_mut();
        state.see_moment(base.objects());
        let state = &*state;
        state.heed_claims(base.objects());
        state.reserve_again(base)?;
        let (outcome, locks) = match state.lock(base) {
            Ok(locks) => (state.commit(base, hooks), locks),
            Err(fault) => (Err(fault), Default::default()),
        };
        match outcome {
            Ok(()) => base.end_data(&state.layer.descriptors, locks, true),
            // Descriptors stay the transaction's.
            Err(_) => base.end_data(&Descriptors::default(), locks, false),
        }
        outcome
    }

    /// Gives up what it keeps, once it has happened or is not to happen.
    pub(crate) fn end<P: Base<Objects: NameChanges<Handle = H>>>(
        mut self,
        base: &P,
        has_happened: bool,
    ) -> (Loss, Spare<H>) {
        let state = &*self.state.get_mut();
        if !has_happened {
            base.end_data(&state.layer.descriptors, Default::default(), false);
        }
        state.give_pages_back(base);
        (state.lost_by.get(), self.leave(base.objects()))
    }

    /// Ends the transaction; nothing has happened.
    ///
    /// # Errors
    /// [`Fault::Stale`] if what was seen is not so any more: whatever was concluded from it need not be true.
    pub fn abort<P: Base<Objects: NameChanges<Handle = H>>>(self, base: &P) -> End<P::Objects> {
        self.abort_with(base).0
    }

    /// As [`Transaction::abort`], and tells what it has lost by.
    pub(crate) fn abort_with<P: Base<Objects: NameChanges<Handle = H>>>(
        mut self,
        base: &P,
    ) -> (End<P::Objects>, Loss, Spare<H>) {
        let state = &*self.state.get_mut();
        let outcome =
            if state.is_stale { Err(Fault::Stale) } else { state.check(base.objects(), base, Names::All).map(|_| ()) };
        let (lost_by, spare) = self.end(base, false);
        (outcome, lost_by, spare)
    }

    /// As [`Transaction::commit`], but it is there afterwards, to say why nothing has happened ([`Transaction::conflicts`]), or to
    /// try again where there was no space. It ends with [`Transaction::close`].
    ///
    /// # Errors
    /// As those of [`Transaction::commit`].
    pub fn attempt<P: Base<Objects: NameChanges<Handle = H>>>(&mut self, base: &P) -> End<P::Objects> {
        self.try_commit(base, &Hooks::default())
    }

    /// Gives up what it keeps after an [`attempt`](Transaction::attempt), or without one, by what has come of it.
    pub fn close<P: Base<Objects: NameChanges<Handle = H>>>(self, base: &P, decision: Decision) {
        self.end(base, decision == Decision::Commit);
    }

    /// What it has seen that is not so any more, once for each thing. It can be nothing although the transaction is stale: what
    /// others have changed they may have changed back.
    pub fn conflicts<P: Base<Objects: NameChanges<Handle = H>>>(&self, base: &P) -> Vec<Conflict> {
        let state = self.state();
        let mut conflicts = Vec::new();
        for (question, kept) in state.log.iter() {
            let is_so = state.ask_again(base.objects(), base, question, kept).is_ok_and(|now| now == kept.reply);
            let conflict = Conflict::of(question);
            if !is_so && !conflicts.contains(&conflict) {
                conflicts.push(conflict);
            }
        }
        conflicts
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

    /// What it will do, as it stands now.
    pub fn changes<T>(&self, look: impl FnOnce(&Changes<'_>) -> T) -> T {
        look(&self.state().changes())
    }

    /// What has changed up to now; see [`Transaction::go_back`].
    pub fn savepoint(&self) -> Savepoint {
        self.state().layer.savepoint()
    }

    /// Forgets all changes since a savepoint. What was seen stays seen.
    ///
    /// # Errors
    /// [`NoSuchSavepoint`] if it is another transaction's, or of a part that was undone; then nothing is forgotten.
    pub fn go_back(&self, savepoint: Savepoint) -> Result<(), NoSuchSavepoint> {
        let State { layer, objects, undone, .. } = &mut *self.state();
        layer.go_back(&savepoint, |number| {
            let object = &objects[&number];
            if object.origin == Origin::Made && object.kind == Kind::Regular {
                undone.insert(number);
            }
        })
    }
}

impl<H> Transaction<H> {
    /// What waits in the pipes that it has made.
    pub(crate) fn own_pipes<P: Base<Objects: NameChanges<Handle = H>>>(
        &self,
        base: &P,
    ) -> Answer<OwnPipes, P::Objects> {
        let state = self.state();
        let made =
            state.objects.iter().filter(|(_, object)| object.kind == Kind::Pipe && object.origin == Origin::Made);
        let waiting = made.map(|(pipe, _)| Ok((*pipe, state.waiting_in(base, *pipe)?)));
        Ok(OwnPipes(waiting.collect::<Result<_, _>>()?))
    }

    /// Lets the same bytes wait there again, in a run: there may be room for more than before. Where that cannot be, the
    /// transaction is stale.
    pub(crate) fn restore_pipes<P: Base<Objects: NameChanges<Handle = H>>>(&self, base: &P, OwnPipes(pipes): OwnPipes) {
        let state = &mut *self.state();
        let is_restored = |(pipe, bytes): (InodeNumber, Box<[u8]>)| {
            let now = state.waiting_in(base, pipe).map_err(OperationError::from)?;
            if now == bytes || planted("transact: what an undone part did to an own pipe stays") {
                return Ok(());
            }
            // First all goes, so that there is room.
            let takes = OwnPipe { taken_bytes: now.len(), put: Vec::new() };
            let puts = OwnPipe { taken_bytes: 0, put: bytes.into_vec() };
            for own in [takes, puts] {
                let node = base.objects().held(&state.objects[&pipe].handle);
                let locks = base.lock(&mut core::iter::empty(), &mut core::iter::once((node, &own)))?;
                base.end_data(&Descriptors::default(), locks, true);
            }
            Ok(())
        };
        let restored: Outcome<(), P::Objects> = pipes.into_iter().try_for_each(is_restored);
        state.is_stale |= restored.is_err();
    }
}

impl<H> Default for State<H> {
    /// Nothing that has begun.
    fn default() -> State<H> {
        State {
            sharing: Sharing::Alone,
            objects: Objects::default(),
            layer: Layer::default(),
            root: InodeNumber(0),
            precedence: Precedence(0),
            moment_ns: None,
            working_directory: InodeNumber(0),
            log: Table::default(),
            checked: 0,
            unchecked: 2 * FEW,
            calls: 0,
            is_stale: false,
            keeps: true,
            lost_by: Cell::new(Loss::Unknown),
            has_claim: false,
            reserved_for: BTreeSet::new(),
            reserved: Vec::new(),
            undone: BTreeSet::new(),
        }
    }
}

impl<H> State<H> {
    /// Begins, where nothing has begun.
    fn begin<B: NameChanges<Handle = H>>(&mut self, base: &B, sharing: Sharing) -> Answer<(), B> {
        let (root, met) = meet(base, &self.objects, base.root())?;
        keep(&mut self.objects, met);
        let (working_directory, met) = meet(base, &self.objects, base.working_directory())?;
        keep(&mut self.objects, met);
        (self.root, self.working_directory) = (root, working_directory);
        (self.precedence, self.sharing) = (Precedence(base.now_ns()), sharing);
        Ok(())
    }

    /// Is as before it began, but for its memory. What it had kept of the base was given up.
    fn forget(&mut self) {
        self.layer.clear();
        self.log.clear();
        (self.moment_ns, self.checked, self.unchecked, self.calls) = (None, 0, 2 * FEW, 0);
        (self.is_stale, self.has_claim, self.keeps) = (false, false, true);
        self.lost_by.set(Loss::Unknown);
        self.reserved.clear();
        self.reserved_for.clear();
        self.undone.clear();
    }

    pub(crate) fn changes(&self) -> Changes<'_> {
        Changes { layer: &self.layer, moment_ns: self.moment_ns }
    }

    pub(crate) fn kind(&self, number: InodeNumber) -> Kind {
        self.objects[&number].kind
    }

    /// The bytes in a pipe that the transaction has made.
    fn waiting_in<P: Base<Objects: NameChanges<Handle = H>>>(
        &self,
        base: &P,
        pipe: InodeNumber,
    ) -> Answer<Box<[u8]>, P::Objects> {
        let all = AboutData::PipeBytes(usize::MAX);
        let asked = base.ask_data(pipe, &self.objects, &all, &mut |node| number(base.objects(), node));
        asked.map(Reply::bytes)
    }

    /// What times say of the transaction's changes: from now on, no later one.
    pub(crate) fn see_moment(&mut self, base: &impl ObjectOperations) -> u64 {
        *self.moment_ns.get_or_insert_with(|| base.now_ns())
    }

    pub(crate) fn is_made(&self, number: InodeNumber) -> bool {
        self.objects[&number].origin == Origin::Made
    }

    /// Gives back space that the commit has not used.
    fn give_pages_back<P: Base<Objects: NameChanges<Handle = H>>>(&self, base: &P) {
        self.reserved.iter().filter_map(Cell::take).for_each(|page| base.give_page_back(page));
    }

    /// Takes space anew that a commit has used in vain.
    fn reserve_again<P: Base<Objects: NameChanges<Handle = H>>>(&self, base: &P) -> End<P::Objects> {
        for place in &self.reserved {
            let reserved = place.take();
            place.set(Some(match reserved {
                Some(page) => page,
                None => base.reserve_page().map_err(|Failed(fault)| Fault::Base(fault))?.ok_or(Fault::NoSpace)?,
            }));
        }
        Ok(())
    }

    /// Waits for claims of those who go before, on what it is about to change; who has one waits for no other call.
    fn heed_claims<B: NameChanges<Handle = H>>(&self, base: &B) {
        if self.has_claim {
            base.heed_no_claim();
        }
        if self.sharing == Sharing::Shared && !self.is_stale {
            base.heed_claims(self.precedence, &|number| self.layer.object(number).is_some());
        }
        // Locks come next: a call within the commit that waited for a younger one's claim would keep them meanwhile.
        base.heed_no_claim();
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
        if self.has_claim {
            base.objects().heed_no_claim();
        }
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
        let like = self.log.like(Question::mixed_of_name(directory, name));
        like.filter(|(question, _)| of_name(question)).for_each(|(_, kept)| note(&kept.reply));
        told
    }

    /// [`State::learn`] of a name of which this was told before, in answer to questions that ask for less. If it cannot be so
    /// together, the name has changed in between, and the transaction is stale: the commit compares a name that it locks
    /// with what that leads to, and with no other answer.
    pub(crate) fn learn_of_name<P: Base<Objects: NameChanges<Handle = H>>>(
        &mut self,
        base: &P,
        question: Question,
        told: &Told,
    ) -> Within<Reply, P::Objects> {
        let loss = Loss::of(&question);
        let reply = self.learn(base, question)?;
        let (exists, is_symlink) = match reply {
            Reply::Node(leads_to) => {
                (leads_to.is_some(), leads_to.is_some_and(|node| self.kind(node) == Kind::Symlink))
            }
            Reply::Existence(existence) => (existence != Existence::Absent, false),
            _ => return Ok(reply),
        };
        let was_there = told.exists == Some(true) || told.existence.is_some_and(|told| told != Existence::Absent);
        let was_plain = told.existence == Some(Existence::Plain);
        if (was_there && !exists || was_plain && is_symlink) && !planted("transact: answers about one name may differ")
        {
            self.lost_by.set(loss);
            return Err(Failed(self.doom()));
        }
        Ok(reply)
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
        let is_forgotten = !self.keeps
            || is_read && planted("transact: bytes that were read are not kept")
            || matches!(question.about, About::Data(AboutData::PipeBytes(_)))
                && planted("transact: what waits in a pipe is not kept")
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
                _ => self.ask_again(looks, base, question, kept),
            };
            if now.map_err(|Failed(fault)| Fault::Base(fault))? != kept.reply {
                self.lost_by.set(Loss::of(question));
                return Err(Fault::Stale);
            }
            let subject = &self.objects.row(kept.place).1.handle;
            if names != Names::Answers && name.is_some() && !self.was_so_since(base, (subject, question), kept) {
                seen = Seen::Again;
            }
        }
        Ok(seen)
    }

    /// What is said now to a question that was asked.
    fn ask_again<P, L>(&self, looks: &L, base: &P, question: &Question, kept: &Kept) -> Answer<Reply, L>
    where
        P: Base<Objects: NameChanges<Handle = H>>,
        L: ObjectOperations<Handle = H, Fault = FaultIn<P>>,
    {
        match &question.about {
            About::Data(about) => {
                let introduce = &mut |node| number(base.objects(), node);
                base.ask_data(question.subject, &self.objects, about, introduce)
            }
            _ => {
                let subject = &self.objects.row(kept.place).1.handle;
                ask(looks, &self.objects, (subject, question), |node| number(looks, node))
            }
        }
    }
}

/// Keeps an object that was met for the first time.
pub(crate) fn keep<H>(objects: &mut Objects<H>, met: Met<H>) {
    if let Some((number, object)) = met {
        objects.push(number, object);
    }
}
