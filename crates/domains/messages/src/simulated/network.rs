//! All rings, all clocks, and who goes on next.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::latencies::Latencies;
use super::queues::Queues;
use crate::transport::{CLASSES, Class, DomainNumber, SendError, Step};

/// Lines of each ring, by class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSizes(pub [usize; CLASSES.len()]);

impl Default for RingSizes {
    /// 16 lines for notices, 256 for each other class: 16 KiB.
    fn default() -> RingSizes {
        RingSizes([16, 256, 256, 256])
    }
}

/// What makes one schedule of another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disorder {
    /// What is drawn is drawn from this.
    pub seed: u64,
    /// Each step takes up to this many hundredths more.
    pub longer_percent: u64,
    /// One look into a ring, and one message, in this many comes after a pause; none if 0.
    pub pause_one_in: u64,
    /// How long such a pause is at most.
    pub longest_pause_ns: u64,
}

/// What a domain's time goes to; what is left of it is waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Of its program, in calls and in what these do at home, in nanoseconds.
    pub calls_ns: u64,
    /// On requests of others.
    pub served_ns: u64,
    /// On messages that it sends.
    pub send_ns: u64,
    /// On messages that it takes.
    pub receive_ns: u64,
    /// On looks that find nothing.
    pub look_ns: u64,
    /// On lines of the pool.
    pub pool_ns: u64,
}

impl Spent {
    /// All of it, in nanoseconds.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        self.calls_ns + self.served_ns + self.send_ns + self.receive_ns + self.look_ns + self.pool_ns
    }
}

/// Which of [`Spent`].
type Share = fn(&mut Spent) -> &mut u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Runs, or is in the list of those that can.
    Ready,
    /// Goes on when a message comes.
    Asleep,
    /// Its coroutine has ended.
    Ended,
}

/// Rings and clocks of some domains.
#[derive(Debug)]
pub struct Network {
    pub(super) latencies: Latencies,
    sizes: RingSizes,
    disorder: Disorder,
    queues: Vec<RefCell<Queues>>,
    clocks: Vec<Cell<u64>>,
    spent: Vec<Cell<Spent>>,
    /// When each has last looked: all that had happened by then is known.
    looked: Vec<Cell<u64>>,
    states: Vec<Cell<State>>,
    /// Who can go on, by clock; then as drawn.
    ready: RefCell<BinaryHeap<Reverse<(u64, u64, u16)>>>,
    sequence: Cell<u64>,
    draws: Cell<u64>,
    /// Programs that have not ended.
    programs: Cell<usize>,
}

impl Network {
    /// Of this many domains.
    ///
    /// # Panics
    /// If there are none, or more than 256.
    #[must_use]
    pub fn new(domain_count: usize, latencies: Latencies, sizes: RingSizes, disorder: Disorder) -> Network {
        assert!((1..=256).contains(&domain_count), "expected 1 to 256 domains, got {domain_count}");
        Network {
            latencies,
            sizes,
            disorder,
            queues: (0..domain_count).map(|_| RefCell::new(Queues::new(domain_count))).collect(),
            clocks: vec![Cell::new(0); domain_count],
            spent: vec![Cell::default(); domain_count],
            looked: vec![Cell::new(0); domain_count],
            states: vec![Cell::new(State::Ready); domain_count],
            ready: RefCell::default(),
            sequence: Cell::new(0),
            draws: Cell::new(disorder.seed),
            programs: Cell::new(domain_count),
        }
    }

    /// How many domains there are.
    pub fn domain_count(&self) -> usize {
        self.clocks.len()
    }

    /// A domain's clock in nanoseconds.
    pub fn clock_ns(&self, domain: DomainNumber) -> u64 {
        self.clocks[domain.index()].get()
    }

    /// What a domain's time has gone to so far.
    pub fn spent(&self, domain: DomainNumber) -> Spent {
        self.spent[domain.index()].get()
    }

    /// When a domain has last looked into its rings, in nanoseconds: all others had come to that time.
    pub fn looked_ns(&self, domain: DomainNumber) -> u64 {
        self.looked[domain.index()].get()
    }

    pub(super) fn note_look(&self, domain: DomainNumber) {
        self.looked[domain.index()].set(self.clock_ns(domain));
    }

    /// The latest clock of all in nanoseconds.
    pub fn latest_ns(&self) -> u64 {
        self.clocks.iter().map(Cell::get).max().unwrap_or(0)
    }

    pub(super) fn ring_lines(&self, class: Class) -> usize {
        self.sizes.0[class as usize]
    }

    pub(super) fn free_lines(&self, (from, to): (DomainNumber, DomainNumber), class: Class) -> usize {
        let used = self.queues[to.index()].borrow().used_lines(from, class);
        self.ring_lines(class).saturating_sub(used)
    }

    pub(super) fn send(
        &self,
        (from, to): (DomainNumber, DomainNumber),
        class: Class,
        lines: usize,
        message: &[u8],
    ) -> Result<(), SendError> {
        if lines > self.ring_lines(class) {
            return Err(SendError::TooLong);
        }
        if lines > self.free_lines((from, to), class) {
            return Err(SendError::Full);
        }
        self.pause_at_random(from);
        self.spend(from, |spent| &mut spent.send_ns, self.latencies.send + lines as u64 * self.latencies.send_line);
        let visible_ns = self.clock_ns(from);
        let sequence = self.sequence.get();
        self.sequence.set(sequence + 1);
        self.queues[to.index()].borrow_mut().put((from, class), (visible_ns, sequence), lines, message);
        if class != Class::Notices && self.states[to.index()].get() == State::Asleep {
            self.clocks[to.index()].set(self.clock_ns(to).max(visible_ns) + self.latencies.poll);
            self.make_ready(to);
        }
        Ok(())
    }

    pub(super) fn take_from(&self, own: DomainNumber, from: DomainNumber, class: Class, bytes: &mut Vec<u8>) -> bool {
        let now_ns = self.clock_ns(own);
        let lines = self.queues[own.index()].borrow_mut().take_from((from, class), now_ns, bytes);
        match lines {
            Some(lines) => self.spend(
                own,
                |spent| &mut spent.receive_ns,
                self.latencies.receive + lines as u64 * self.latencies.receive_line,
            ),
            None => self.spend(own, |spent| &mut spent.look_ns, self.latencies.poll),
        }
        lines.is_some()
    }

    pub(super) fn take(
        &self,
        own: DomainNumber,
        classes: &[Class],
        bytes: &mut Vec<u8>,
    ) -> Option<(Class, DomainNumber)> {
        for class in classes {
            let next = self.queues[own.index()].borrow_mut().next(*class);
            if let Some((_, from)) = next.filter(|(visible_ns, _)| *visible_ns <= self.clock_ns(own)) {
                return self.take_from(own, from, *class, bytes).then_some((*class, from));
            }
        }
        self.spend(own, |spent| &mut spent.look_ns, self.latencies.poll);
        None
    }

    /// When the next message to a domain is there, if one was sent.
    pub(super) fn next_message_ns(&self, own: DomainNumber) -> Option<u64> {
        self.queues[own.index()].borrow_mut().next_ns()
    }

    /// A domain's clock goes on.
    fn spend(&self, domain: DomainNumber, share: Share, nanoseconds: u64) {
        let longer = match self.disorder.longer_percent {
            0 => 0,
            percent => nanoseconds * self.draw(percent + 1) / 100,
        };
        let clock = &self.clocks[domain.index()];
        clock.set(clock.get() + nanoseconds + longer);
        let mut spent = self.spent[domain.index()].get();
        *share(&mut spent) += nanoseconds + longer;
        self.spent[domain.index()].set(spent);
    }

    /// A domain's clock goes on by what a step takes. Lines of data stand in a row: each takes what a line of a message does.
    pub fn spend_step(&self, domain: DomainNumber, step: Step) {
        let latencies = &self.latencies;
        let (share, nanoseconds): (Share, u64) = match step {
            Step::Call => (|spent| &mut spent.calls_ns, latencies.call),
            Step::Own => (|spent| &mut spent.calls_ns, latencies.own),
            Step::Served => (|spent| &mut spent.served_ns, latencies.served + 2 * latencies.switch),
            Step::PoolRead(lines) => (|spent| &mut spent.pool_ns, u64::from(lines) * latencies.pool_read_line),
            Step::PoolWrite(lines) => {
                (|spent| &mut spent.pool_ns, u64::from(lines) * latencies.pool_write_line + latencies.drain)
            }
            Step::DataRead(lines) => (|spent| &mut spent.pool_ns, u64::from(lines) * latencies.receive_line),
            Step::DataWrite(lines) => (|spent| &mut spent.pool_ns, u64::from(lines) * latencies.send_line),
            Step::Drain => (|spent| &mut spent.pool_ns, latencies.drain),
        };
        self.spend(domain, share, nanoseconds);
    }

    pub(super) fn go_to(&self, domain: DomainNumber, clock_ns: u64) {
        let clock = &self.clocks[domain.index()];
        clock.set(clock.get().max(clock_ns));
    }

    /// A pause before a look or a message, if one is drawn.
    pub(super) fn pause_at_random(&self, domain: DomainNumber) {
        let Disorder { pause_one_in, longest_pause_ns, .. } = self.disorder;
        if pause_one_in > 0 && self.draw(pause_one_in) == 0 {
            let pause = self.draw(longest_pause_ns + 1);
            self.go_to(domain, self.clock_ns(domain) + pause);
        }
    }

    /// Whether no other domain that can go on has an earlier clock.
    pub(super) fn is_earliest(&self, domain: DomainNumber) -> bool {
        match self.ready.borrow().peek() {
            Some(Reverse((clock_ns, ..))) => self.clock_ns(domain) <= *clock_ns,
            None => true,
        }
    }

    /// Puts a domain into the list of those that can go on.
    pub(super) fn make_ready(&self, domain: DomainNumber) {
        self.states[domain.index()].set(State::Ready);
        let tie = if self.disorder.seed == 0 { 0 } else { self.draw(1 << 16) };
        self.ready.borrow_mut().push(Reverse((self.clock_ns(domain), tie, domain.0)));
    }

    /// Who goes on.
    pub(super) fn take_ready(&self) -> Option<DomainNumber> {
        self.ready.borrow_mut().pop().map(|Reverse((_, _, domain))| DomainNumber(domain))
    }

    pub(super) fn fall_asleep(&self, domain: DomainNumber) {
        self.states[domain.index()].set(State::Asleep);
    }

    pub(super) fn has_ended(&self, domain: DomainNumber) -> bool {
        self.states[domain.index()].get() == State::Ended
    }

    pub(super) fn end(&self, domain: DomainNumber) {
        self.states[domain.index()].set(State::Ended);
    }

    /// One program less. When the last has ended, all who sleep go on.
    pub(super) fn end_program(&self) {
        self.programs.set(self.programs.get() - 1);
        if self.programs.get() == 0 {
            for number in 0..self.domain_count() {
                if self.states[number].get() == State::Asleep {
                    self.make_ready(DomainNumber(number as u16));
                }
            }
        }
    }

    pub(super) fn has_programs(&self) -> bool {
        self.programs.get() > 0
    }

    /// Splitmix64.
    fn draw(&self, below: u64) -> u64 {
        let state = self.draws.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.draws.set(state);
        let mut mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % below.max(1)
    }
}
