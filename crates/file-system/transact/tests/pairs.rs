//! Pairs of calls that commute, each in a transaction of its own that is open while the other one ends: both commit, or it is
//! said what the second one has seen that is not so any more.
#![cfg(not(any(loom, shuttle)))]

mod interleaved;

use std::collections::BTreeMap;

use interleaved::calls::{Call, call, perform};
use interleaved::world::world;
use interleaved::{Case, Party, Told, commutes};
use posix_calls::Decision;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use transact::{Conflict, Fault, Sharing, Subject, Transaction};

/// Of a thousand pairs so many may be refused.
const REFUSED_PER_THOUSAND: u64 = 5;

/// Two calls, and whose transaction ends first.
fn pair() -> impl Strategy<Value = (Case, usize)> {
    let user = || prop::sample::select(&[0, 5, 5][..]);
    let case = ((user(), user()), (call(), call())).prop_map(|(users, (one, other))| Case {
        users: users.into(),
        parties: [Party::Together; 2],
        calls: [vec![one], vec![other]],
        schedule: Vec::new(),
    });
    (case, 0..2_usize)
}

/// Makes both calls, then ends both transactions; what the second one has seen that is not so any more, if it is refused.
fn refusal(case: &Case, first: usize) -> Option<Vec<Conflict>> {
    let world = world(case.users);
    let begin = |party: usize| world.file_system.begin(&world.processes[party]);
    let mut open = [0, 1].map(|party| {
        let transaction = Transaction::begin(&begin(party), Sharing::Alone).expect("a new one");
        let _ = perform(&transact::Call::new(begin(party), &transaction), case.calls[party][0], world.there_first);
        transaction
    });
    let mut end = |party: usize| open[party].attempt(&begin(party));
    assert_eq!(end(first), Ok(()), "nobody has changed anything");
    let ended = end(1 - first);
    let conflicts = match ended {
        Ok(()) => None,
        Err(Fault::Stale) => Some(open[1 - first].conflicts(&begin(1 - first))),
        Err(fault) => panic!("a commit fails with {fault:?}"),
    };
    for (party, transaction) in open.into_iter().enumerate() {
        let is_through = party == first || conflicts.is_none();
        transaction.close(&begin(party), if is_through { Decision::Commit } else { Decision::Abort });
    }
    conflicts
}

/// The name of a call, without its arguments.
fn name(made: Call) -> String {
    let shown = format!("{made:?}");
    shown.split('(').next().unwrap_or_default().to_owned()
}

/// What was asked, in a word.
fn asked(conflict: &Conflict) -> &'static str {
    match conflict.about {
        Subject::Name(_) => "what a name leads to",
        Subject::Names => "which names there are",
        Subject::Place => "where a directory is",
        Subject::Data => "bytes",
        Subject::Permissions => "permissions",
        Subject::Status => "size, times or links",
        Subject::Process => "what the process has",
    }
}

/// `HISTORIES=10000` says how many pairs. Who is refused has looked, on the way to the same result, at a name that the other
/// one changes; of pairs whose paths lead through the same objects in both orders nobody is.
#[test]
fn pairs_that_commute_both_commit() {
    let wanted = history::rounds(1_000).least();
    let mut runner = TestRunner::deterministic();
    let (mut drawn, mut pairs, mut refused) = (0, 0, 0);
    let mut causes: BTreeMap<(String, String, &str), (u64, String)> = BTreeMap::new();
    while pairs < wanted {
        let (case, first) = pair().new_tree(&mut runner).expect("a pair").current();
        drawn += 1;
        if !commutes(&case, Told::Result) {
            continue;
        }
        pairs += 1;
        let Some(conflicts) = refusal(&case, first) else { continue };
        refused += 1;
        let [winner, loser] = [first, 1 - first].map(|party| case.calls[party][0]);
        let cause = conflicts.first().map_or("what is so again", asked);
        let of_cause = causes.entry((name(loser), name(winner), cause)).or_default();
        of_cause.0 += 1;
        of_cause.1 = format!("{loser:?} after {winner:?}");
        assert!(!commutes(&case, Told::Way), "refused for nothing: {case:#?} {conflicts:?}");
    }
    println!("of {pairs} pairs that commute, of {drawn} drawn, {} both commit; refused:", pairs - refused);
    for ((loser, winner, cause), (count, example)) in &causes {
        println!("{count:6} {loser} after {winner}, by {cause}: {example}");
    }
    assert!(refused * 1_000 <= pairs * REFUSED_PER_THOUSAND, "{refused} of {pairs} are refused");
}
