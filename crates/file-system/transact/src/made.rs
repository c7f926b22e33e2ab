//! What a transaction has made, just before it gets names: until then nobody else knows it.

use posix_calls::{AttributeChange, Failed, NameChanges, ObjectOperations};
use sync::mutant::planted;

use crate::base::{Base, FileChange};
use crate::changes::Changes;
use crate::own::Modified;
use crate::question::{Object, Origin};
use crate::transaction::{End, Fault, State, refused};

impl<H> State<H> {
    /// Lets files that nobody else knows have the bytes that the layer says, where they have others since a part was undone.
    fn write_again<P: Base<Objects: NameChanges<Handle = H>>>(&self, base: &P) -> End<P::Objects> {
        for number in &self.undone {
            let file = base.objects().held(&self.objects[number].handle);
            base.write_made(file, FileChange::Resize(0)).map_err(refused)?;
            let Some(own) = self.layer.object(*number) else { continue };
            for (offset, bytes) in own.data.writes() {
                if base.write_made(file, FileChange::Write(offset, bytes)).map_err(refused)? < bytes.len() {
                    return Err(Fault::NoSpace);
                }
            }
            base.write_made(file, FileChange::Resize(own.data.least_size())).map_err(refused)?;
        }
        Ok(())
    }

    /// Gives objects that nobody else knows the attributes that the transaction has given them, and its moment.
    pub(crate) fn change_what_was_made<P: Base<Objects: NameChanges<Handle = H>>>(
        &self,
        whole: &P,
        changes: &Changes<'_>,
    ) -> End<P::Objects> {
        self.write_again(whole)?;
        let base = whole.objects();
        for object in changes.objects().filter(|object| self.is_made(object.number)) {
            let node = base.held(&self.objects[&object.number].handle);
            for change in object.attributes {
                if let AttributeChange::Permissions(change) = *change {
                    base.change_permissions(node, change).map_err(|_| Fault::Stale)?;
                }
            }
        }
        for (number, Object { handle, origin, .. }) in self.objects.iter() {
            if *origin == Origin::Made && !planted("transact: what was made keeps the time of its call") {
                let own = self.layer.object(*number);
                let accessed_ns = own.and_then(|own| own.status.accessed_ns);
                let modified_ns = own.and_then(|own| match own.status.modified {
                    Some(Modified::At(time_ns)) => Some(time_ns),
                    _ => None,
                });
                let now_ns = changes.moment() as i64;
                let times = [accessed_ns.unwrap_or(now_ns), modified_ns.unwrap_or(now_ns), now_ns];
                base.set_times_of_made(base.held(handle), times).map_err(|Failed(fault)| Fault::Base(fault))?;
            }
        }
        Ok(())
    }
}
