//! Balances in a software transactional memory (crate `fast-stm`) and receipts in files change together: each transfer moves
//! money and writes a receipt. Who counts both finds as many of one as of the other.
//!
//! That memory commits in one go, so the participant prepares by a mark in it, for which all others wait; what it does in the
//! end takes the mark away. `cargo run -p transact --example participant -- 500` makes so many transfers.

use std::io;
use std::thread;

use fast_stm::{StmClosureResult, TVar, Transaction, atomically, guard};
use posix_calls::Errno;
use scalefs::FileSystem;
use transact::{Participant, Refused, Transactions as _};

mod door;
use door::{Between, Door};

#[derive(Clone)]
struct Bank {
    balances: [TVar<i64>; 2],
    transfers: TVar<u64>,
    /// A transaction has prepared, and is not decided.
    is_held: TVar<bool>,
}

type State = ([i64; 2], u64);

impl Bank {
    fn new() -> Bank {
        Bank { balances: [TVar::new(1_000), TVar::new(0)], transfers: TVar::new(0), is_held: TVar::new(false) }
    }

    fn read(&self, memory: &mut Transaction) -> StmClosureResult<State> {
        Ok(([self.balances[0].read(memory)?, self.balances[1].read(memory)?], self.transfers.read(memory)?))
    }

    fn write(&self, memory: &mut Transaction, (balances, transfers): State) -> StmClosureResult<()> {
        self.balances[0].write(memory, balances[0])?;
        self.balances[1].write(memory, balances[1])?;
        self.transfers.write(memory, transfers)
    }

    /// All of it, at a moment at which nobody is in the middle.
    fn look(&self) -> State {
        atomically(|memory| {
            guard(!self.is_held.read(memory)?)?;
            self.read(memory)
        })
    }
}

/// What a transaction has seen in the bank, and what is to become of it.
struct Change {
    bank: Bank,
    seen: State,
    new: State,
    is_prepared: bool,
}

impl Participant for Change {
    fn prepare(&mut self) -> Result<(), Refused> {
        self.is_prepared = atomically(|memory| {
            let is_so = !self.bank.is_held.read(memory)? && self.bank.read(memory)? == self.seen;
            if is_so {
                self.bank.is_held.write(memory, true)?;
            }
            Ok(is_so)
        });
        if self.is_prepared { Ok(()) } else { Err(Refused) }
    }

    fn commit(&mut self) {
        atomically(|memory| {
            self.bank.write(memory, self.new)?;
            self.bank.is_held.write(memory, false)
        });
    }

    fn abort(&mut self) {
        if self.is_prepared {
            atomically(|memory| self.bank.is_held.write(memory, false));
        }
    }
}

fn transfer(files: &FileSystem, bank: &Bank, are_together: bool) -> io::Result<()> {
    files.transaction(|t| {
        let seen @ ([from, to], transfers) = bank.look();
        let new = ([from - 1, to + 1], transfers + 1);
        t.write(format!("receipts/{transfers}"), "1 from the first to the second")?;
        if are_together {
            t.take_part(Change { bank: bank.clone(), seen, new, is_prepared: false });
        } else {
            let bank = bank.clone();
            t.on_commit(move || atomically(|memory| bank.write(memory, new)));
        }
        Ok(())
    })
}

/// Whether there are as many receipts as transfers, with a pause after the receipts; if together, both as of one moment.
fn agree(files: &FileSystem, bank: &Bank, pause: &dyn Fn(), are_together: bool) -> io::Result<bool> {
    let count = |calls: &dyn Door| -> io::Result<(u64, State)> {
        let receipts = calls.names("receipts")?.len() as u64;
        pause();
        Ok((receipts, bank.look()))
    };
    let (receipts, (balances, transfers)) = match are_together {
        true => files.transaction(|t| {
            let (receipts, seen) = count(&**t)?;
            t.take_part(Change { bank: bank.clone(), seen, new: seen, is_prepared: false });
            Ok((receipts, seen))
        })?,
        false => count(&files.root()?)?,
    };
    Ok(receipts == transfers && balances == [1_000 - transfers as i64, transfers as i64])
}

/// How many looks there were, and how many found more receipts than transfers.
fn run(transfers: u64, are_together: bool) -> io::Result<(u64, u64)> {
    let (files, bank) = (door::files()?, Bank::new());
    files.root()?.create_dir("receipts")?;
    let between = Between::default();
    let (mut looks, mut differed) = (0, 0);
    let is_late = |error: &io::Error| error.raw_os_error() == Some(Errno::ECANCELED.number());
    thread::scope(|scope| {
        let makes = scope.spawn(|| {
            between.change(0..transfers, |_| {
                loop {
                    match transfer(&files, &bank, are_together) {
                        Err(error) if is_late(&error) => thread::yield_now(),
                        outcome => return outcome,
                    }
                }
            })
        });
        between.look(|pause| match agree(&files, &bank, pause, are_together) {
            Ok(agrees) => {
                (looks, differed) = (looks + 1, differed + u64::from(!agrees));
                Ok(())
            }
            Err(error) if is_late(&error) => Ok(()),
            Err(error) => Err(error),
        })?;
        makes.join().expect("it does not panic")
    })?;
    Ok((looks, differed))
}

fn main() -> io::Result<()> {
    let transfers = door::rounds(500).min(1_000);
    for (words, are_together) in [("in transactions", true), ("without", false)] {
        let (looks, differed) = run(transfers, are_together)?;
        println!("{words}: of {looks} looks {differed} found a receipt without its transfer");
    }
    Ok(())
}
