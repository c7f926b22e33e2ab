//! A self-test: is this memory coherent, as its user says? It is asked when a domain joins.
//!
//! **Idea.** One domain alone cannot know. So the one that joins keeps a copy of a line that another domain then changes
//! without writing it back. On a coherent machine the change is seen; elsewhere the old value is. Question and answer
//! travel with write-backs and invalidations.
//!
//! ```text
//! joins      read probe (a copy is kept) ─ question n ─►                       answer n seen ─ read probe: n, or what it was
//! other      question n seen ─ probe := n, not written back ─ answer n ─►
//! ```
//!
//! Caches may drop lines by themselves, so that one round can go well by chance: [`ROUNDS`] are asked.

use core::fmt;

use crate::line::LINE_BYTES;
use crate::memory::{Fault, Memory, Use};

/// Questions of one self-test.
pub const ROUNDS: u64 = 16;

/// Domains that a memory can have, at most.
pub const DOMAINS: usize = 256;

/// Lines of each domain: question, answer, probe.
const LINES: usize = 3;

/// Where the lines of the self-test lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoherenceTest {
    /// Offset of its first line.
    pub at: usize,
    /// Domains that the memory can have.
    pub domain_count: usize,
}

/// What a self-test says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// No other domain has answered yet.
    Unanswered,
    /// Each change was seen.
    Coherent,
    /// A change of this domain was not seen.
    NotCoherent {
        /// The domain.
        other: usize,
    },
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Judgement::Unanswered => f.write_str("no other domain has answered: whether memory is coherent is unknown"),
            Judgement::Coherent => f.write_str("coherent: each change of another domain was seen without write-backs"),
            Judgement::NotCoherent { other } => write!(
                f,
                "expected coherent memory, but a change by domain {other} was not seen: choose write-backs and invalidations"
            ),
        }
    }
}

impl CoherenceTest {
    /// Bytes of its lines.
    pub const fn bytes(domain_count: usize) -> usize {
        domain_count * LINES * LINE_BYTES
    }

    /// Says how its lines are used.
    ///
    /// # Errors
    /// Faults of memory.
    pub fn declare(&self, memory: &impl Memory) -> Result<(), Fault> {
        for domain in 0..self.domain_count {
            memory.declare(self.question(domain), 2 * LINE_BYTES, Use::Register { writer: domain })?;
            memory.declare(self.probe(domain), LINE_BYTES, Use::Unchecked)?;
        }
        Ok(())
    }

    fn question(&self, domain: usize) -> usize {
        self.at + domain * LINES * LINE_BYTES
    }

    fn answer(&self, domain: usize) -> usize {
        self.question(domain) + LINE_BYTES
    }

    fn probe(&self, domain: usize) -> usize {
        self.question(domain) + 2 * LINE_BYTES
    }
}

fn word(memory: &impl Memory, at: usize) -> Result<u64, Fault> {
    let mut bytes = [0; 8];
    memory.read(at, &mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

fn fresh_word(memory: &impl Memory, at: usize) -> Result<u64, Fault> {
    memory.invalidate(at, 8)?;
    word(memory, at)
}

fn publish(memory: &impl Memory, at: usize, value: u64) -> Result<(), Fault> {
    memory.write(at, &value.to_le_bytes())?;
    memory.write_back(at, 8)?;
    memory.drain()
}

/// The side of the domain that joins.
#[derive(Debug)]
pub struct Question<M> {
    memory: M,
    test: CoherenceTest,
    me: usize,
    /// The number that is asked; others are below or far away.
    number: u64,
    rounds_left: u64,
}

impl<M: Memory> Question<M> {
    /// Asks the first question. `memory` is the one whose write-backs and invalidations do something; `number` is not 0 and was
    /// not used before, such as the time in nanoseconds.
    ///
    /// # Errors
    /// Faults of memory.
    pub fn ask(memory: M, test: CoherenceTest, me: usize, number: u64) -> Result<Question<M>, Fault> {
        test.declare(&memory)?;
        let question = Question { memory, test, me, number, rounds_left: ROUNDS };
        question.pose()?;
        Ok(question)
    }

    fn others(&self) -> impl Iterator<Item = usize> + use<M> {
        let me = self.me;
        (0..self.test.domain_count).filter(move |domain| *domain != me)
    }

    fn pose(&self) -> Result<(), Fault> {
        for other in self.others() {
            word(&self.memory, self.test.probe(other))?;
        }
        publish(&self.memory, self.test.question(self.me), self.number)
    }

    /// Looks for answers; call it until it is not [`Judgement::Unanswered`], or one's patience ends.
    ///
    /// # Errors
    /// Faults of memory.
    pub fn look(&mut self) -> Result<Judgement, Fault> {
        for other in self.others() {
            if fresh_word(&self.memory, self.test.answer(other))? != self.number {
                continue;
            }
            if word(&self.memory, self.test.probe(other))? != self.number {
                return Ok(Judgement::NotCoherent { other });
            }
            self.rounds_left -= 1;
            if self.rounds_left == 0 {
                return Ok(Judgement::Coherent);
            }
            self.number += 1;
            self.pose()?;
            return Ok(Judgement::Unanswered);
        }
        Ok(Judgement::Unanswered)
    }
}

/// The side of a domain that has joined: it answers when others ask.
#[derive(Debug)]
pub struct Answerer<M> {
    memory: M,
    test: CoherenceTest,
    me: usize,
    /// By domain: its last question that was answered.
    answered: [u64; DOMAINS],
}

impl<M: Memory> Answerer<M> {
    /// For this domain; `memory` as for [`Question::ask`].
    ///
    /// # Errors
    /// Faults of memory.
    pub fn new(memory: M, test: CoherenceTest, me: usize) -> Result<Answerer<M>, Fault> {
        test.declare(&memory)?;
        Ok(Answerer { memory, test, me, answered: [0; DOMAINS] })
    }

    /// Answers at most one question; whether there was one.
    ///
    /// # Errors
    /// Faults of memory.
    pub fn answer(&mut self) -> Result<bool, Fault> {
        for other in (0..self.test.domain_count).filter(|domain| *domain != self.me) {
            let number = fresh_word(&self.memory, self.test.question(other))?;
            if number == 0 || number == self.answered[other] {
                continue;
            }
            self.memory.write(self.test.probe(self.me), &number.to_le_bytes())?;
            publish(&self.memory, self.test.answer(self.me), number)?;
            self.answered[other] = number;
            return Ok(true);
        }
        Ok(false)
    }
}
