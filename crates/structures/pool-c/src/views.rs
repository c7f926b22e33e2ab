//! What C holds pointers to.

use pool::emulated::{Domain, Emulated};
use pool::file::Pool;
use pool::{Coherent, Memory};

/// Emulated memory of several domains.
pub struct pool_emulated(pub(crate) Emulated);

/// One domain's view of memory.
pub struct pool_memory(pub(crate) View);

pub(crate) enum View {
    Emulated(Domain),
    EmulatedAsCoherent(Coherent<Domain>),
    File(Pool),
    FileAsCoherent(Pool),
}

impl View {
    pub(crate) fn with<R>(&self, call: impl Fn(&dyn Memory) -> R) -> R {
        match self {
            View::Emulated(domain) => call(domain),
            View::EmulatedAsCoherent(domain) => call(domain),
            View::File(pool) => call(&pool.memory()),
            View::FileAsCoherent(pool) => call(&Coherent::new(pool.memory())),
        }
    }
}
