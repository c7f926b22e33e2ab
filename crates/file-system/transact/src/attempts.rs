//! What one attempt of a transaction leaves to the next one: its age, and by what it has lost.
//!
//! Commits go by precedence, so transactions do not starve each other there. Plain calls win at first: they never run again.
//! Who has lost often, or for long, *claims* what it has lost by ([`NameChanges::claim`]): others do not begin to change that
//! then, for a bounded time. What a claim does not keep away is claimed with the next loss; after three, everything is.

use alloc::vec::Vec;

use posix_calls::{Claim, Claimed, InodeNumber, NameChanges, Precedence};

use crate::base::{Base, HandleIn};
use crate::loss::Loss;
use crate::transaction::{Sharing, Transaction};

/// Losses with a claim after which all is claimed.
const PRECISE_CLAIMS: usize = 3;

/// When a transaction that loses again and again claims what it loses by, and for how long at most. Others that want to
/// change that wait; who only looks does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claims {
    /// After so many attempts that have failed.
    pub after_losses: u32,
    /// Or so many nanoseconds after the first attempt began, if one has failed.
    pub after_ns: u64,
    /// So long a claim lasts at most. Then the transaction goes on without one, until it has lost as often again.
    pub last_ns: u64,
}

impl Default for Claims {
    /// After 8 losses, or a second; for a tenth of a second.
    fn default() -> Claims {
        Claims { after_losses: 8, after_ns: 1_000_000_000, last_ns: 100_000_000 }
    }
}

/// The attempts of one transaction. `end` ends a claim after the last one, or after a panic.
#[derive(Debug)]
pub(crate) struct Attempts<E: FnMut(Claimed)> {
    rules: Claims,
    end: E,
    /// Of the first one.
    precedence: Option<Precedence>,
    /// Since when losses are counted.
    since_ns: Option<u64>,
    losses: u32,
    lost_by: Loss,
    claimed: Option<Claimed>,
    /// Each loss since claims began, with the last one before.
    objects: Vec<Option<InodeNumber>>,
}

impl<E: FnMut(Claimed)> Attempts<E> {
    pub(crate) fn new(rules: Claims, end: E) -> Attempts<E> {
        Attempts {
            rules,
            end,
            precedence: None,
            since_ns: None,
            losses: 0,
            lost_by: Loss::Unknown,
            claimed: None,
            objects: Vec::new(),
        }
    }

    /// Gives the next attempt its place among others: the precedence that `by_age` makes of that of the first one, and a claim
    /// if it has lost enough.
    pub(crate) fn begin<P: Base>(
        &mut self,
        base: &P,
        begun: &mut Transaction<HandleIn<P>>,
        by_age: impl FnOnce(Precedence) -> Precedence,
    ) {
        let own = begun.precedence();
        let first = *self.precedence.get_or_insert(own);
        self.since_ns.get_or_insert(own.0);
        let precedence = by_age(first);
        if self.losses > 0 && begun.sharing() == Sharing::Shared {
            self.claim(base.objects(), precedence);
        }
        begun.stand(precedence, self.claimed.is_some());
    }

    /// An attempt has failed.
    pub(crate) fn lose(&mut self, lost_by: Loss) {
        self.losses += 1;
        self.lost_by = lost_by;
    }

    /// Ends the claim, if there is one, so that others can change what they like.
    pub(crate) fn let_others(&mut self) {
        self.claimed.take().into_iter().for_each(&mut self.end);
        self.objects.clear();
        (self.losses, self.since_ns) = (0, None);
    }

    /// Claims what it has lost by, if it has lost enough.
    fn claim<B: NameChanges>(&mut self, base: &B, precedence: Precedence) {
        let now_ns = base.now_ns();
        if let Some(over) = self.claimed.take_if(|claimed| claimed.until_ns <= now_ns) {
            // It is others' turn.
            base.end_claim(over);
            self.objects.clear();
            (self.losses, self.since_ns) = (0, Some(now_ns));
        }
        let has_lost_enough = self.losses >= self.rules.after_losses;
        if !has_lost_enough && now_ns.saturating_sub(self.since_ns.unwrap_or(now_ns)) < self.rules.after_ns {
            return;
        }
        self.objects.push(match self.lost_by {
            Loss::Unknown => None,
            Loss::Object(object) => Some(object),
            Loss::Unclaimed => return,
        });
        let mut objects: Vec<_> = self.objects.iter().copied().flatten().collect();
        if objects.len() < self.objects.len() || self.objects.len() > PRECISE_CLAIMS {
            // What it loses by is not known, or too much: everything.
            objects.clear();
        }
        let until_ns = self.claimed.map_or(now_ns.saturating_add(self.rules.last_ns), |claimed| claimed.until_ns);
        // The new one first, so that nobody slips in between.
        if let Some(claimed) = base.claim(&Claim { precedence, objects: &objects, until_ns })
            && let Some(before) = self.claimed.replace(claimed)
        {
            base.end_claim(before);
        }
    }
}

impl<E: FnMut(Claimed)> Drop for Attempts<E> {
    fn drop(&mut self) {
        self.let_others();
    }
}
