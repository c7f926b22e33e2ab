//! A domain: what it owns, what it keeps of others' answers, and how it asks.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use messages::{Came, Class, Counts, DomainNumber, Endpoint, SendError, Step, Ticket, Transport};

use super::cache::Cache;
use super::copies::Copy;
use super::lines::Lines;
use super::open_files::OpenFiles;
use super::waits::{Wait, Watch};
use crate::decisions::Decisions;
use crate::identity::ObjectNumber;
use crate::level::Level;
use crate::server::{Limits, PAGES_PER_GRANT, Server};
use crate::shared_pages::{LineCounts, Part, SharedPage, SharedPages};
use crate::wire::{NoticeKind, Refusal, Reply, Request, decode, encode};

/// How long a domain lets others go on before it asks again where an operation was in the way.
const PAUSE_NS: u64 = 500;

/// What is heard of an owner that no message reaches.
const CUT_OFF: Reply = Reply::Refused { why: Refusal::Garbled };

/// Hare's techniques, each of which can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Techniques {
    /// Answers are kept (paper, 3.6.1).
    pub caches: bool,
    /// Objects are made where their maker is (3.6.4).
    pub affinity: bool,
    /// All parts of a split directory are asked at once (3.6.2).
    pub broadcast: bool,
    /// An object, its name, and its being open are made by one message, where its owner has the name (3.6.3).
    pub coalesced: bool,
    /// Names of split directories are lent to who makes them: ours, in addition to Hare's.
    pub lending: bool,
    /// Data are read and written where they lie, in memory that domains share (3.4), as far as the level allows.
    pub direct: bool,
}

impl Default for Techniques {
    fn default() -> Techniques {
        Techniques { caches: true, affinity: true, broadcast: true, coalesced: true, lending: true, direct: true }
    }
}

/// A domain of a file system.
pub struct Domain<T> {
    pub(super) endpoint: Endpoint<T>,
    pub(super) server: RefCell<Server>,
    pub(super) cache: RefCell<Cache>,
    pub(super) lines: RefCell<Lines>,
    pub(super) open_files: RefCell<OpenFiles>,
    pub(super) decisions: Rc<dyn Decisions>,
    pub(super) techniques: Cell<Techniques>,
    pub(super) level: Cell<Level>,
    /// Of files of others, at level `close-to-open`.
    pub(super) copies: RefCell<HashMap<ObjectNumber, Copy>>,
    pub(super) part: RefCell<Option<Rc<Part>>>,
    /// What the domain's caches hold of others' pages.
    pub(super) seen_versions: RefCell<HashMap<SharedPage, u64>>,
    /// Owners that cannot read what is written into this domain's part: they get it in messages.
    pub(super) unreadable_at: RefCell<HashSet<DomainNumber>>,
    /// Domains that are known to have ended.
    pub(super) ended: RefCell<HashSet<DomainNumber>>,
    pub(super) watch: Watch,
    refused_mappings: Cell<u64>,
    clock: fn() -> u64,
}

impl<T: Transport> Domain<T> {
    /// A domain that owns nothing, or, if it has number 0, an empty root directory of user 0. `clock` tells
    /// nanoseconds since 1970.
    pub fn new(transport: T, decisions: Rc<dyn Decisions>, clock: fn() -> u64, limits: Limits) -> Domain<T> {
        let (own, count) = (transport.own(), transport.domain_count());
        let server = Server::new(own, count, Rc::clone(&decisions), clock, limits);
        Domain {
            endpoint: Endpoint::new(transport),
            server: RefCell::new(server),
            cache: RefCell::default(),
            lines: RefCell::default(),
            open_files: RefCell::default(),
            decisions,
            techniques: Cell::default(),
            level: Cell::default(),
            copies: RefCell::default(),
            part: RefCell::default(),
            seen_versions: RefCell::default(),
            unreadable_at: RefCell::default(),
            ended: RefCell::default(),
            watch: Watch::default(),
            refused_mappings: Cell::new(0),
            clock,
        }
    }

    /// Which techniques calls use from now on.
    pub fn use_techniques(&self, techniques: Techniques) {
        self.techniques.set(techniques);
    }

    /// What others see of data, and when: the same in all domains, before the first call.
    pub fn use_level(&self, level: Level) {
        self.level.set(level);
    }

    /// From now on data come and go through these pages. Without any they travel in messages.
    pub fn use_pages(&self, pages: Rc<dyn SharedPages>) {
        let part = Rc::new(Part::new(pages, self.own()));
        self.server.borrow_mut().use_part(Rc::clone(&part));
        self.part.replace(Some(part));
    }

    /// What data have cost in shared memory so far.
    pub fn line_counts(&self) -> LineCounts {
        self.part.borrow().as_ref().map_or_else(LineCounts::default, |part| part.counts())
    }

    /// The number of the domain.
    pub fn own(&self) -> DomainNumber {
        self.transport().own()
    }

    /// What carries its messages.
    pub fn transport(&self) -> &T {
        self.endpoint.transport()
    }

    /// What it has sent, and waited for, so far.
    pub fn counts(&self) -> Counts {
        self.endpoint.counts()
    }

    /// How many mappings it has refused since their files are another domain's.
    pub fn refused_mappings(&self) -> u64 {
        self.refused_mappings.get()
    }

    pub(super) fn note_refused_mapping(&self) {
        self.refused_mappings.set(self.refused_mappings.get() + 1);
    }

    pub(super) fn clock_ns(&self) -> u64 {
        (self.clock)()
    }

    pub(super) fn domain_count(&self) -> usize {
        self.transport().domain_count()
    }

    pub(super) fn with_server<R>(&self, act: impl FnOnce(&mut Server) -> R) -> R {
        self.transport().spend(Step::Own);
        if self.server.borrow().has_marks() {
            self.transport().observe();
        }
        let result = act(&mut self.server.borrow_mut());
        self.send_outgoing();
        result
    }

    /// Whether this domain decides on a name that another has lent it.
    pub(super) fn has_borrowed(&self, directory: ObjectNumber, name: &[u8]) -> bool {
        self.server.borrow().has_borrowed(directory, name)
    }

    /// Takes a message, if there is one, and serves it if it is a request of another domain.
    pub fn serve(&self) -> bool {
        let mut message = Vec::new();
        let came = self.endpoint.next_message(&mut message);
        self.serve_what(came, &message)
    }

    /// The same, of one domain.
    pub(super) fn serve_from(&self, from: DomainNumber) -> bool {
        let mut message = Vec::new();
        let came = self.endpoint.next_message_of(from, &mut message);
        self.serve_what(came, &message)
    }

    fn serve_what(&self, came: Came, message: &[u8]) -> bool {
        let asked = match came {
            Came::Nothing => return false,
            Came::Reply => return true,
            Came::Asked(asked) => asked,
        };
        self.transport().spend(Step::Served);
        let reply = match decode::<Request>(message) {
            Some(request) => {
                if request == (Request::InTheWay {}) {
                    self.look_after_obstacle_of(asked.from);
                }
                let reply = self.server.borrow_mut().serve(asked.from, request);
                self.send_outgoing();
                reply
            }
            None => Reply::Refused { why: Refusal::Garbled },
        };
        if self.endpoint.reply(asked, &encode(&reply)).is_err() {
            // One that has reserved less than an answer takes gets the one that fits always.
            let refusal = encode(&Reply::Refused { why: Refusal::Garbled });
            let _ = self.endpoint.reply(asked, &refusal);
        }
        true
    }

    /// Sends what the owner's last step brings with it: notices first.
    fn send_outgoing(&self) {
        loop {
            self.split_what_is_due();
            let outgoing = std::mem::take(&mut self.server.borrow_mut().outgoing);
            if outgoing.lines_read > 0 {
                self.transport().spend(Step::PoolRead(outgoing.lines_read));
            }
            if outgoing.notices.is_empty() && outgoing.posts.is_empty() {
                return;
            }
            for (to, notice) in outgoing.notices.iter().filter(|(to, _)| *to != self.own()) {
                self.endpoint.notify(*to, &encode(notice));
            }
            for (to, request) in outgoing.posts {
                self.post(to, request);
            }
        }
    }

    /// Splits what is due, unless a domain is found to have ended: its part would be lost.
    fn split_what_is_due(&self) {
        let due = std::mem::take(&mut self.server.borrow_mut().outgoing.splits);
        if due.is_empty() {
            return;
        }
        for number in 0..self.domain_count() {
            self.look_after(DomainNumber(number as u16));
        }
        due.into_iter().for_each(|directory| self.server.borrow_mut().split(directory));
    }

    /// Asks what wants no reply. A peer may have named an owner that there is not.
    pub(super) fn post(&self, to: DomainNumber, request: Request) {
        if to.index() >= self.domain_count() || self.has_noted_end_of(to) {
            return;
        }
        if to == self.own() {
            self.server.borrow_mut().serve(to, request);
            self.send_outgoing();
        } else {
            self.endpoint.post(to, Class::Requests, &encode(&request));
        }
    }

    /// Lets others go on, and serves them, for a while.
    pub(super) fn pause(&self) {
        if !self.serve() {
            self.transport().pause(PAUSE_NS);
        }
    }

    /// What an owner has said. Where no message goes any more, what would be waited for never comes.
    fn heard(&self, reply: Reply) -> Reply {
        match reply {
            Reply::Refused { why: Refusal::Busy | Refusal::Elsewhere } if self.transport().has_ended() => CUT_OFF,
            reply => reply,
        }
    }

    /// Sends a request, as soon as it has room; nothing if it never has, there is no such domain, or no message goes any more.
    pub(super) fn send(&self, to: DomainNumber, class: Class, request: &Request) -> Option<Ticket> {
        if to.index() >= self.domain_count() {
            return None;
        }
        let (message, mut wait) = (encode(request), Wait::default());
        while !self.has_noted_end_of(to) {
            match self.endpoint.ask(to, class, &message, longest_reply_bytes(request)) {
                Ok(ticket) => return Some(ticket),
                Err(SendError::TooLong) => return None,
                Err(SendError::Full) if self.transport().has_ended() => return None,
                Err(SendError::Full) => self.wait_for_room(&mut wait, to),
            }
        }
        None
    }

    /// Serves, or lets others go on.
    pub(super) fn go_on(&self) {
        if !self.serve() {
            self.transport().wait();
        }
    }

    /// A reply that was found when this domain looked for messages.
    pub(super) fn reply(&self, ticket: Ticket) -> Option<Reply> {
        if !self.endpoint.has_reply(ticket) {
            return None;
        }
        let reply = self.endpoint.take_reply(ticket)?;
        Some(decode(&reply).unwrap_or(Reply::Refused { why: Refusal::Garbled }))
    }

    /// Asks one owner.
    pub(super) fn ask(&self, to: DomainNumber, request: Request) -> Reply {
        if to == self.own() {
            return self.heard(self.with_server(|server| server.serve(to, request)));
        }
        let Some(ticket) = self.send(to, Class::Requests, &request) else {
            return CUT_OFF;
        };
        self.endpoint.count_round_trip();
        self.wait_for(ticket)
    }

    pub(super) fn wait_for(&self, ticket: Ticket) -> Reply {
        let mut wait = Wait::default();
        loop {
            match self.reply(ticket) {
                Some(reply) => return self.heard(reply),
                None if self.is_in_vain(ticket) => return CUT_OFF,
                None => self.wait_longer(&mut wait, ticket),
            }
        }
    }

    /// Asks several owners at once; the answers in the order of the questions.
    pub(super) fn ask_all(&self, class: Class, questions: Vec<(DomainNumber, Request)>) -> Vec<Reply> {
        let own = self.own();
        let tickets: Vec<Option<Ticket>> = questions
            .iter()
            .map(|(to, request)| if *to == own { None } else { self.send(*to, class, request) })
            .collect();
        if tickets.iter().any(Option::is_some) {
            self.endpoint.count_round_trip();
        }
        // The own part while others do theirs.
        let own_replies: Vec<Option<Reply>> = questions
            .into_iter()
            .map(|(to, request)| (to == own).then(|| self.with_server(|server| server.serve(to, request))))
            .collect();
        let all = tickets.into_iter().zip(own_replies);
        all.map(|(ticket, reply)| match (ticket, reply) {
            (_, Some(reply)) => self.heard(reply),
            (Some(ticket), None) => self.wait_for(ticket),
            (None, None) => CUT_OFF,
        })
        .collect()
    }

    /// Reads the notices of an owner, and forgets what they are about.
    pub(super) fn heed_notices(&self, owner: DomainNumber) {
        let mut message = Vec::new();
        while self.endpoint.next_notice(owner, &mut message) {
            let mut cache = self.cache.borrow_mut();
            cache.note_notice(owner);
            match decode::<NoticeKind>(&message) {
                Some(NoticeKind::Name { directory, name }) => cache.forget_name(directory, &name.0),
                Some(NoticeKind::Directory { directory }) => cache.forget_object(directory),
                // "Forget all", or noise of a peer.
                None => cache.forget_all_of(owner),
            }
        }
        if self.transport().has_ended() {
            self.cache.borrow_mut().forget_all_of(owner);
        }
    }
}

/// Bytes of the longest answer to a request.
fn longest_reply_bytes(request: &Request) -> usize {
    match request {
        Request::LinkTarget { .. } => 4096 + 8,
        // The first name may be longer than was asked for.
        Request::List { most_bytes, .. } => *most_bytes as usize + 256 + 32,
        Request::Read { length, .. }
        | Request::ReadPipe { length, .. }
        | Request::PeekPipe { length, .. }
        | Request::ReadShared { length, .. } => *length as usize + 8,
        Request::Acquire { .. } | Request::Grant { .. } => PAGES_PER_GRANT as usize * 20 + 32,
        _ => 80,
    }
}
