//! A process of a domain, whatever carries its messages.

use domains::{Call, Domain, Process};
use messages::Transport;
use posix_calls::{Credentials, Errno};

use crate::system::Enter;

/// A domain and one process of it.
pub struct OverDomains<'d, T> {
    pub domain: &'d Domain<T>,
    process: Process,
}

impl<'d, T: Transport> OverDomains<'d, T> {
    pub fn new(domain: &'d Domain<T>) -> OverDomains<'d, T> {
        OverDomains { domain, process: Process::new(Credentials::SUPERUSER) }
    }
}

impl<T: Transport> Enter for OverDomains<'_, T> {
    type Call<'c>
        = Call<'c, T>
    where
        Self: 'c;

    fn call<'s, R>(&'s self, make: impl FnMut(&Self::Call<'s>) -> Result<R, Errno>) -> Result<R, Errno> {
        self.domain.call(&self.process, make)
    }
}
