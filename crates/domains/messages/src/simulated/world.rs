//! Domains as coroutines.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};

use super::network::Network;
use super::transport::Simulated;
use crate::transport::DomainNumber;

/// Enough for a build without optimisation.
const STACK_BYTES: usize = 512 << 10;

/// All who have not ended sleep, and no message is on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Who has not ended.
    pub waiting: Vec<DomainNumber>,
}

impl fmt::Display for Stall {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting: Vec<String> = self.waiting.iter().map(ToString::to_string).collect();
        write!(formatter, "no domain goes on: {} wait for messages that none sends", waiting.join(", "))
    }
}

impl std::error::Error for Stall {}

/// Runs a life of each domain; all have ended when this returns. A life calls [`Simulated::end_program`] once, and goes on
/// serving while others have programs.
///
/// # Errors
/// [`Stall`], if it comes to that.
///
/// # Panics
/// Without memory for the coroutines' stacks; and when a life panics.
pub fn simulate<L>(network: &Rc<Network>, lives: Vec<L>) -> Result<(), Stall>
where
    L: FnOnce(Simulated<'_>) + 'static,
{
    assert_eq!(lives.len(), network.domain_count(), "each domain has one life");
    let mut coroutines: Vec<Coroutine<(), (), ()>> = Vec::new();
    for (number, life) in lives.into_iter().enumerate() {
        let stack = DefaultStack::new(STACK_BYTES).expect("memory for a coroutine's stack");
        let domain = DomainNumber(number as u16);
        let network_of_life = Rc::clone(network);
        coroutines.push(Coroutine::with_stack(stack, move |yielder, ()| {
            life(Simulated::of_coroutine(network_of_life, domain, yielder));
        }));
        network.make_ready(domain);
    }
    while let Some(domain) = network.take_ready() {
        let resumed = catch_unwind(AssertUnwindSafe(|| coroutines[domain.index()].resume(())));
        match resumed {
            Ok(CoroutineResult::Return(())) => network.end(domain),
            Ok(CoroutineResult::Yield(())) => {}
            Err(panic) => {
                std::mem::forget(coroutines);
                resume_unwind(panic);
            }
        }
    }
    let domains = (0..network.domain_count()).map(|number| DomainNumber(number as u16));
    let waiting: Vec<DomainNumber> = domains.filter(|domain| !network.has_ended(*domain)).collect();
    if waiting.is_empty() {
        return Ok(());
    }
    // To drop one that has not ended would be to unwind it.
    std::mem::forget(coroutines);
    Err(Stall { waiting })
}
