//! Another domain has ended, and it is known that it has: what it had begun here is brought to an end.
//!
//! It writes no line any more, and what it had sent has come. So its operations are what their lines say: committed, or never to
//! be. What it owned, and names that it had borrowed, no one knows without a log: who needs them gets an error. What it
//! had open stays, since owners count who keeps an object, and not which domain.

use messages::DomainNumber;
use sync::mutant::planted;

use super::Server;
use crate::wire::OperationNumber;

impl Server {
    /// A domain has ended, and all that it had sent was served.
    pub(crate) fn note_end_of(&mut self, ended: DomainNumber) {
        self.ended.insert(ended);
        // No directory is split from now on, so what waits for that goes on.
        self.shards.values_mut().for_each(|shard| shard.is_draining = false);
        let of_ended = |operation: &&OperationNumber| operation.coordinator == ended;
        let mut operations: Vec<OperationNumber> = self.marks.keys().filter(of_ended).copied().collect();
        operations.sort_unstable();
        for operation in operations {
            let commit = self.is_committed(operation) && !planted("domains: what a dead domain has decided is undone");
            if !planted("domains: marks of a dead domain stay") {
                // It has decided, or never will.
                let _ = self.decide(ended, operation, commit);
            }
        }
        let _ = self.give_moves(ended);
        for description in self.descriptions.values_mut() {
            description.locked_by = description.locked_by.filter(|by| *by != ended);
        }
        // Those who ask again hear what is in the way then.
        self.obstacles.retain(|_, obstacle| obstacle.by() != Some(ended));
        self.forget_data_of(ended);
    }
}
