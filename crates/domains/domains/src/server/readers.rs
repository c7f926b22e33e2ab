//! Which domains keep an answer.

use messages::DomainNumber;

/// A set of up to 256 domains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Readers([u64; 4]);

impl Readers {
    /// One more keeps it.
    pub(crate) fn add(&mut self, domain: DomainNumber) {
        if let Some(word) = self.0.get_mut(domain.index() / 64) {
            *word |= 1 << (domain.0 % 64);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// Whether none but this domain keeps it.
    pub(crate) fn has_nobody_but(&self, domain: DomainNumber) -> bool {
        let mut one = Readers::default();
        one.add(domain);
        (0..4).all(|word| self.0[word] & !one.0[word] == 0)
    }

    /// All of them; no one keeps it afterwards.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = DomainNumber> + use<> {
        let words = std::mem::take(&mut self.0);
        (0..256_u16).filter(move |number| words[usize::from(number / 64)] >> (number % 64) & 1 == 1).map(DomainNumber)
    }
}
