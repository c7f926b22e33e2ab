//! Who executes an operation: the home of a process, or its worker on one core.

/// Most processes that a test can have.
pub const PROCESS_LIMIT: usize = 6;

/// Most cores, and so calls under test, that a test can have.
pub const CORE_LIMIT: usize = 6;

/// Number of actors: one home and `CORE_LIMIT` workers per process.
pub const ACTOR_COUNT: usize = PROCESS_LIMIT * (1 + CORE_LIMIT);

/// An actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Shares descriptors and working directory with its process, and makes its set-up and observation where the target
    /// does not leave that to a worker.
    Home {
        /// The process, below [`PROCESS_LIMIT`].
        process: usize,
    },
    /// The thread of a process that makes calls under test on one core.
    Worker {
        /// The process, below [`PROCESS_LIMIT`].
        process: usize,
        /// The core, below [`CORE_LIMIT`].
        core: usize,
    },
}

impl Place {
    /// The process that the actor acts for.
    #[must_use]
    pub fn process(self) -> usize {
        match self {
            Self::Home { process } | Self::Worker { process, .. } => process,
        }
    }

    /// A number below [`ACTOR_COUNT`].
    #[must_use]
    pub fn index(self) -> usize {
        match self {
            Self::Home { process } => process * (1 + CORE_LIMIT),
            Self::Worker { process, core } => process * (1 + CORE_LIMIT) + 1 + core,
        }
    }

    /// The virtual CPU that the actor is pinned to, where `core_count` calls run at most. Workers of one core share it, and
    /// only one of them is awake; all homes share the one after the cores. There are no more, since an emulator that
    /// runs all virtual CPUs in one thread visits each at every hand-over.
    #[must_use]
    pub fn cpu(self, core_count: usize) -> usize {
        match self {
            Self::Home { .. } => core_count,
            Self::Worker { core, .. } => core,
        }
    }

    /// All actors where `core_count` calls run at most, in as many processes.
    pub fn all(core_count: usize) -> impl Iterator<Item = Self> {
        (0..core_count).flat_map(move |process| {
            std::iter::once(Self::Home { process })
                .chain((0..core_count).map(move |core| Self::Worker { process, core }))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_dense_and_distinct() {
        let mut indices: Vec<usize> = Place::all(CORE_LIMIT).map(Place::index).collect();
        indices.sort_unstable();
        assert_eq!(indices, (0..ACTOR_COUNT).collect::<Vec<_>>());
    }

    #[test]
    fn homes_keep_away_from_the_cores_of_the_calls() {
        for core_count in 1..=CORE_LIMIT {
            for place in Place::all(core_count) {
                assert_eq!(place.cpu(core_count) >= core_count, matches!(place, Place::Home { .. }));
                assert!(place.cpu(core_count) <= core_count);
            }
        }
    }
}
