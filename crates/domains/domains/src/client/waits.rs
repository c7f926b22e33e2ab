//! What a domain waits for, how long, and who hears of it.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use messages::DomainNumber;

use crate::wire::Obstacle;

/// Between looks at the clock.
const ASKS: u32 = 64;

/// A wait of this length is said, unless `Domain::watch_waits` was called.
const LONG_NS: u64 = 1_000_000_000;

/// What a domain waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// An answer.
    Answer {
        /// Of this domain.
        of: DomainNumber,
    },
    /// Room in the rings.
    Room {
        /// To this domain, and from it.
        to: DomainNumber,
    },
    /// Something that is not decided.
    Obstacle {
        /// With this owner.
        at: DomainNumber,
        /// What is in the way there.
        obstacle: Obstacle,
    },
}

/// A wait that takes long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Who waits.
    pub domain: DomainNumber,
    /// How long it has waited.
    pub waited_ns: u64,
    /// What for.
    pub awaited: Awaited,
}

impl Awaited {
    /// The domain without which it does not come.
    pub(super) fn by(&self) -> Option<DomainNumber> {
        match self {
            Awaited::Answer { of: by } | Awaited::Room { to: by } => Some(*by),
            Awaited::Obstacle { obstacle, .. } => obstacle.by(),
        }
    }
}

impl Obstacle {
    /// The domain that can take it out of the way.
    pub(crate) fn by(&self) -> Option<DomainNumber> {
        match self {
            Obstacle::Operation { operation } => Some(operation.coordinator),
            Obstacle::Moves { by } | Obstacle::Offset { by } | Obstacle::Lent { to: by } => Some(*by),
            Obstacle::Split {} => None,
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Obstacle::Operation { operation } => write!(f, "a change by {} that is not decided", operation.coordinator),
            Obstacle::Moves { by } => write!(f, "{by}, which moves a directory"),
            Obstacle::Offset { by } => write!(f, "{by}, which has locked the offset"),
            Obstacle::Lent { to } => write!(f, "{to}, which is to give a name back"),
            Obstacle::Split {} => f.write_str("a directory that is to be split"),
        }
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has waited {:.1} s for ", self.domain, self.waited_ns as f64 / 1e9)?;
        match &self.awaited {
            Awaited::Answer { of } => write!(f, "an answer of {of}")?,
            Awaited::Room { to } => write!(f, "room in the rings of {to}")?,
            Awaited::Obstacle { at, obstacle } => write!(f, "{obstacle}, at {at}")?,
        }
        match self.awaited.by() {
            Some(by) => write!(f, ": let {by} go on, or end its process"),
            None => Ok(()),
        }
    }
}

/// What is done with a wait that is long.
type Say = dyn Fn(&Waiting);

/// Who hears of waits, and from which length on.
pub(super) struct Watch {
    long_ns: Cell<u64>,
    say: RefCell<Rc<Say>>,
}

impl Default for Watch {
    fn default() -> Watch {
        Watch { long_ns: Cell::new(LONG_NS), say: RefCell::new(Rc::new(|waiting| eprintln!("{waiting}"))) }
    }
}

/// A wait, from its beginning.
#[derive(Debug, Default)]
pub(super) struct Wait {
    asks: u32,
    /// Since the first look at the clock.
    since_ns: Option<u64>,
    /// When it is to be said.
    due_ns: u64,
}

impl Wait {
    /// Whether nothing was waited for yet.
    pub(super) fn is_new(&self) -> bool {
        self.asks == 0
    }

    /// One ask more: how long the wait has lasted, in ns, if that is to be said.
    pub(super) fn lasted(&mut self, now_ns: impl FnOnce() -> u64, watch: &Watch) -> Option<u64> {
        self.asks = self.asks.wrapping_add(1);
        if !self.asks.is_multiple_of(ASKS) {
            return None;
        }
        let (now_ns, long_ns) = (now_ns(), watch.long_ns.get());
        let since_ns = *self.since_ns.get_or_insert_with(|| {
            self.due_ns = now_ns + long_ns;
            now_ns
        });
        if now_ns < self.due_ns {
            return None;
        }
        let waited_ns = now_ns - since_ns;
        self.due_ns = now_ns + waited_ns.max(long_ns);
        Some(waited_ns)
    }
}

impl Watch {
    /// Lets another one hear of waits, from another length on.
    pub(super) fn set(&self, long_ns: u64, say: impl Fn(&Waiting) + 'static) {
        self.long_ns.set(long_ns);
        self.say.replace(Rc::new(say));
    }

    pub(super) fn say(&self, waiting: &Waiting) {
        // It may make calls itself, which wait.
        let say = Rc::clone(&self.say.borrow());
        say(waiting);
    }
}
