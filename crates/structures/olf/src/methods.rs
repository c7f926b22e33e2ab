//! The methods that lists in order and maps share.

macro_rules! methods {
    () => {
        /// Inserts an item, unless there is one with its key or it stands in a list by this link.
        ///
        /// # Errors
        /// [`Refused`](crate::Refused), which gives the item back.
        ///
        /// # Panics
        /// If the item or `here` is of another domain; if a comparison of keys does.
        pub fn insert(
            &self,
            here: &crate::Here<'d>,
            item: crate::Arc<'d, F::Item>,
        ) -> Result<(), crate::Refused<'d, F::Item>> {
            crate::change::insert(self, here, item)
        }

        /// Takes the item with this key out, if there is one.
        ///
        /// # Panics
        /// If `here` is of another domain; if a comparison of keys does.
        pub fn remove(&self, here: &crate::Here<'d>, key: &F::Key) -> Option<crate::Arc<'d, F::Item>> {
            crate::change::remove(self, here, key)
        }

        /// Whether there is an item with this key.
        ///
        /// # Panics
        /// If `here` is of another domain; if a comparison of keys does.
        pub fn contains(&self, here: &crate::Here<'d>, key: &F::Key) -> bool {
            self.get(&here.pin(), key).is_some()
        }

        /// The item with this key, for as long as the guard lives.
        ///
        /// # Panics
        /// If the guard is of another domain; if a comparison of keys does.
        pub fn get<'g>(&self, guard: &'g crate::Guard<'_>, key: &F::Key) -> Option<crate::Ref<'g, 'd, F::Item>> {
            assert!(guard.is_of(self.domain), "the list belongs to another domain");
            let slot = self.find(guard, key).found?;
            // SAFETY: the guard lives for `'g`, and the slot was found in the list while it did.
            Some(unsafe { crate::Ref::new(crate::Slot::at(slot.address())) })
        }

        /// Moves the item with this key to another collection of the domain; everybody sees it in exactly one of them. The
        /// count of the item goes with it.
        ///
        /// # Errors
        /// [`NotMoved`](crate::NotMoved): nothing has happened.
        ///
        /// # Panics
        /// If `here` or the other one is of another domain; if a comparison of keys does.
        pub fn move_to(
            &self,
            to: &impl crate::Collection<'d, Field = F>,
            here: &crate::Here<'d>,
            key: &F::Key,
        ) -> Result<(), crate::NotMoved> {
            crate::change::move_to(self, to, here, key)
        }

        /// Exchanges an item of this one for an item of another one: each is in exactly one of them at every moment. If one of
        /// them would then hold a key twice, nothing happens.
        ///
        /// # Errors
        /// [`NotMoved`](crate::NotMoved): nothing has happened.
        ///
        /// # Panics
        /// If `here` or the other one is of another domain; if a comparison of keys does.
        pub fn swap(
            &self,
            key: &F::Key,
            other: &impl crate::Collection<'d, Field = F>,
            its_key: &F::Key,
            here: &crate::Here<'d>,
        ) -> Result<(), crate::NotMoved> {
            crate::change::swap(self, key, other, its_key, here)
        }
    };
}

pub(crate) use methods;
