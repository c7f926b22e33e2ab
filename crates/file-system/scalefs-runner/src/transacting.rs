//! Which calls of a window are in transactions, and when these begin and end.
//!
//! ```text
//! transactions(ends="10")     a step of a set-up: calls 0 and 1 under test are each in a transaction; that of call 1 ends first
//! begin_transaction()         steps of a sequence: what the same process does until the end, on the same core, is one
//! end_transaction()           transaction. What is not offered in one is made alone, between two
//! count_transacted()          calls of sequences so far: in a transaction, and alone between two
//! ```
//! All transactions of a window begin before its calls. They end behind the window, so that what their ends share is not
//! counted: the calls are. One that is aborted is made again, alone.

use runner::arguments::Arguments;
use runner::crew::Crew;
use runner::place::{CORE_LIMIT, Place};
use runner::target::{Execution, Marks};
use wire::value::Value;

use crate::transacted::{ABORTED, NOT_TRANSACTIONAL, Stage};

/// The transactions of a window.
#[derive(Default)]
pub struct Transacting {
    /// Calls under test that are in transactions, in the order of their ends.
    ends: Vec<usize>,
    /// Names of the calls under test, by core.
    names: [&'static str; CORE_LIMIT],
    /// Whose transaction is open in a sequence.
    open: Option<Place>,
    within: i64,
    alone: i64,
    /// Which call of the window is not offered in a transaction.
    not_offered: Option<String>,
}

/// An operation that may be part of a transaction.
pub trait Staged {
    /// Its part.
    fn stage(&mut self) -> &mut Stage;
}

fn run<T: Execution<Operation: Staged>>(crew: &mut Crew<T>, place: Place, stage: Stage, marks: Marks) -> i64 {
    *crew.operation(place).stage() = stage;
    let result = crew.run(place, marks);
    *crew.operation(place).stage() = Stage::Alone;
    result
}

fn failed(what: &str, result: i64) -> String {
    match result {
        NOT_TRANSACTIONAL => format!("{what}: EOPNOTSUPP"),
        ABORTED => format!("{what}: aborted, though no one else has done anything"),
        other => format!("{what}: error number {}", -other),
    }
}

impl Transacting {
    /// What a call that `place` will make has to do with a transaction.
    ///
    /// # Errors
    /// A transaction that has not begun, or belongs to somebody else.
    pub fn stage(&mut self, place: Place, name: &'static str, arguments: &Arguments<'_>) -> Result<Stage, String> {
        if let Place::Worker { core, .. } = place {
            self.names[core] = name;
        }
        match (name, self.open) {
            ("transactions", None) => {
                let ends = arguments.text(0)?;
                let index = |digit: char| digit.to_digit(CORE_LIMIT as u32).map(|digit| digit as usize);
                let calls: Option<Vec<_>> = ends.chars().map(index).collect();
                let differ = |calls: &Vec<usize>| (1..calls.len()).all(|at| !calls[..at].contains(&calls[at]));
                self.ends = calls.filter(differ).ok_or_else(|| format!("ends {ends:?}: expected numbers of calls"))?;
                Ok(Stage::Alone)
            }
            ("begin_transaction", None) => Ok(Stage::Begin),
            ("end_transaction", Some(open)) if open == place => Ok(Stage::End),
            ("end_transaction", None) => Err("no transaction has begun".to_owned()),
            (_, None) => Ok(Stage::Alone),
            (_, Some(open)) if open == place && name != "begin_transaction" => Ok(Stage::Within),
            (_, Some(_)) => Err("a transaction is open".to_owned()),
        }
    }

    /// Begins the transactions of all calls under test that are in one.
    ///
    /// # Errors
    /// One cannot begin, or a call is not there.
    pub fn begin_calls<T: Execution<Operation: Staged>>(
        &self,
        crew: &mut Crew<T>,
        places: &[Place],
    ) -> Result<(), String> {
        for &index in &self.ends {
            let place = *places.get(index).ok_or_else(|| format!("a transaction of call {index}: there is none"))?;
            let begun = run(crew, place, Stage::Begin, Marks::Around);
            if begun != 0 {
                return Err(failed("beginning a transaction", begun));
            }
            *crew.operation(place).stage() = Stage::Within;
        }
        Ok(())
    }

    /// Ends them; calls of those that are aborted are made again.
    ///
    /// # Errors
    /// One failed as transactions do not, or a call is not offered in one.
    pub fn end_calls<T: Execution<Operation: Staged>>(
        &mut self,
        crew: &mut Crew<T>,
        places: &[Place],
        results: &mut [i64],
    ) -> Result<u8, String> {
        let (mut aborted, mut broken) = (0, None);
        for &index in &self.ends {
            let place = places[index];
            let ended = run(crew, place, Stage::End, Marks::None);
            if results[index] == NOT_TRANSACTIONAL || ended == NOT_TRANSACTIONAL {
                let Place::Worker { core, .. } = place else { continue };
                self.not_offered = Some(format!("{} is not offered in a transaction", self.names[core]));
            } else if ended == ABORTED {
                aborted |= 1 << index;
                results[index] = crew.run(place, Marks::None);
            } else if ended != 0 {
                broken = Some(failed("ending a transaction", ended));
            }
        }
        match broken.or_else(|| self.not_offered.clone()) {
            Some(why) => Err(why),
            None => Ok(aborted),
        }
    }

    /// Which call of the window is not offered in a transaction, if one was made in one.
    pub fn not_offered(&mut self) -> Option<String> {
        self.not_offered.take()
    }

    /// The result of a call that was made, perhaps in the transaction of a sequence.
    ///
    /// # Errors
    /// The transaction was aborted, or refused at its end.
    pub fn finish<T: Execution<Operation: Staged>>(
        &mut self,
        crew: &mut Crew<T>,
        place: Place,
        result: i64,
    ) -> Result<i64, String> {
        match std::mem::take(crew.operation(place).stage()) {
            Stage::Alone => return Ok(result),
            Stage::Begin => self.open = Some(place),
            Stage::End => self.open = None,
            Stage::Within if result == NOT_TRANSACTIONAL => return self.make_alone(crew, place),
            Stage::Within => {
                self.within += 1;
                return Ok(result);
            }
        }
        if result == 0 { Ok(0) } else { Err(failed("a transaction", result)) }
    }

    /// Makes a call between two transactions.
    fn make_alone<T: Execution<Operation: Staged>>(&mut self, crew: &mut Crew<T>, place: Place) -> Result<i64, String> {
        self.alone += 1;
        self.open = None;
        let ended = run(crew, place, Stage::End, Marks::None);
        if ended != 0 {
            return Err(failed("a transaction", ended));
        }
        let result = crew.run(place, Marks::None);
        match run(crew, place, Stage::Begin, Marks::None) {
            0 => self.open = Some(place),
            begun => return Err(failed("beginning a transaction", begun)),
        }
        Ok(result)
    }

    /// Calls of sequences that were made in transactions, and alone between two.
    pub fn counted(&self) -> Value<'static> {
        Value::Seq(vec![Value::Int(self.within), Value::Int(self.alone)])
    }

    /// Forgets what belongs to the window.
    pub fn clean<T: Execution<Operation: Staged>>(&mut self, crew: &mut Crew<T>) {
        self.ends.clear();
        if let Some(place) = self.open.take() {
            run(crew, place, Stage::End, Marks::None);
        }
    }
}
