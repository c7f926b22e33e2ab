//! The lines on which a domain decides its operations.

use messages::{DomainNumber, Ticket};

use crate::decisions::LINES;
use crate::wire::OperationNumber;

/// What is known of each line.
#[derive(Debug)]
pub(crate) struct Lines {
    /// The number of the last operation, and its owners' answers that have not come.
    lines: Vec<(u64, Vec<Ticket>)>,
    next: usize,
}

impl Default for Lines {
    fn default() -> Lines {
        Lines { lines: vec![(0, Vec::new()); usize::from(LINES)], next: 0 }
    }
}

impl Lines {
    /// A line for a new operation: one whose last operation all owners know to be decided. `has_come` says of an
    /// answer whether it has come.
    ///
    /// # Errors
    /// An answer without which there is none.
    pub(crate) fn take(
        &mut self,
        own: DomainNumber,
        has_come: impl Fn(Ticket) -> bool,
    ) -> Result<OperationNumber, Ticket> {
        let mut missing = None;
        for _ in 0..self.lines.len() {
            let place = self.next;
            self.next = (place + 1) % self.lines.len();
            let (number, answers) = &mut self.lines[place];
            answers.retain(|ticket| !has_come(*ticket));
            let Some(answer) = answers.first() else {
                *number += 1;
                return Ok(OperationNumber { coordinator: own, line: place as u16, number: *number });
            };
            missing = Some(*answer);
        }
        Err(missing.expect("there are lines"))
    }

    /// The line cannot be used again before these answers have come.
    pub(crate) fn expect(&mut self, operation: OperationNumber, answers: Vec<Ticket>) {
        self.lines[usize::from(operation.line)].1 = answers;
    }
}
