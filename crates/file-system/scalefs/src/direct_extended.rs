//! The verbs on extended attributes.
//!
//! **Death of a process** in a verb: the object was noted first, as in `direct_names`.

use percpu::OutOfMemory;
use posix_calls::extended::{Expected, ExtendedOperations};
use posix_calls::{Answer, Errno};

use crate::annex::Annex;
use crate::direct::Direct;
use crate::host::Host;
use crate::instance::Stamp;
use crate::node::Node;

impl<H: Host> ExtendedOperations for Direct<'_, H> {
    fn extended_attribute(&self, node: Node<'_>, name: &[u8], see: &mut dyn FnMut(&[u8])) -> Answer<bool, Self> {
        let annex = Annex::of(node.at.inode());
        let value = annex.and_then(|annex| annex.extended.value(&self.guard, name));
        Ok(value.map(see).is_some())
    }

    fn extended_attributes(&self, node: Node<'_>, each: &mut dyn FnMut(&[u8])) -> Answer<(), Self> {
        if let Some(annex) = Annex::of(node.at.inode()) {
            annex.extended.names(&self.guard).for_each(each);
        }
        Ok(())
    }

    fn set_extended_attribute(
        &self,
        node: Node<'_>,
        name: &[u8],
        value: Option<&[u8]>,
        expected: Expected,
    ) -> Result<(), Errno> {
        let node = node.at;
        let annex = match (Annex::of(node.inode()), value) {
            (Some(annex), _) => annex,
            (None, None) => return expected.check(false),
            (None, Some(_)) => {
                // Look without writing first.
                expected.check(false)?;
                Annex::made_for(node.inode(), self.core()).map_err(|OutOfMemory| Errno::ENOSPC)?
            }
        };
        self.working_on(&[node]);
        annex.extended.change(&self.guard, self.host, (name, value), expected)?;
        self.mark(node, Stamp::Status);
        Ok(())
    }
}
