//! The operations on extended attributes: a map for each object.

use posix_calls::extended::{Expected, ExtendedOperations, MOST_BYTES, OVERHEAD_BYTES};
use posix_calls::{Answer, Errno};

use crate::call::{Call, Node};

impl ExtendedOperations for Call<'_> {
    fn extended_attribute(&self, node: Node<'_>, name: &[u8], see: &mut dyn FnMut(&[u8])) -> Answer<bool, Self> {
        let state = self.ask()?;
        Ok(state.get(node.number).extended.get(name).map(|value| see(value)).is_some())
    }

    fn extended_attributes(&self, node: Node<'_>, each: &mut dyn FnMut(&[u8])) -> Answer<(), Self> {
        let state = self.ask()?;
        state.get(node.number).extended.keys().for_each(|name| each(name));
        Ok(())
    }

    fn set_extended_attribute(
        &self,
        node: Node<'_>,
        name: &[u8],
        value: Option<&[u8]>,
        expected: Expected,
    ) -> Result<(), Errno> {
        let mut state = self.change()?;
        let object = state.get_mut(node.number);
        expected.check(object.extended.contains_key(name))?;
        let mut extended = object.extended.clone();
        extended.remove(name);
        if let Some(value) = value {
            extended.insert(name.to_vec(), value.to_vec());
        }
        if extended.iter().map(|(name, value)| OVERHEAD_BYTES + name.len() + value.len()).sum::<usize>() > MOST_BYTES {
            return Err(Errno::ENOSPC);
        }
        object.extended = extended;
        object.changed_ns = self.now_ns();
        Ok(())
    }
}
