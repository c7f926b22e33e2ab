//! Lists that change with a transaction: parts of crate `olf` take part in it.

use commit::Operation;
use olf::Part;

use crate::hooks::{Participant, Refused};

/// Its marks are the transaction's own, so that one decision is for names and lists. The domain's other store is the file
/// system ([`FileSystem::keeper`](scalefs::FileSystem::keeper)).
///
/// ```
/// use olf::{Domain, Limits, Sorted};
/// use transact::Transactions;
///
/// struct Order { number: u64, link: olf::Link }
/// olf::links! { ByNumber: Order { link: link, key: number as u64 } }
///
/// let files = scalefs::FileSystem::create(Default::default())?;
/// let domain = Domain::with(Limits { threads: 2, lists: 2 }).unwrap().together_with(files.keeper());
/// let here = domain.enter().unwrap();
/// let [open, paid] = [0, 1].map(|_| Sorted::<ByNumber>::new(&domain).unwrap());
/// open.insert(&here, olf::Arc::new(&domain, Order { number: 7, link: olf::Link::new() })).unwrap();
///
/// files.transaction(|t| {
///     t.write("receipt-7", "paid")?;
///     let (part, ()) = here
///         .part(|a| {
///             let order = a.remove(&open, &7)?;
///             a.insert(&paid, order)
///         })
///         .map_err(|stop: olf::Stop| std::io::Error::other(stop))?;
///     t.take_part(part);
///     Ok(())
/// })?;
/// assert!(paid.contains(&here, &7) && files.root()?.metadata("receipt-7").is_ok());
/// # Ok::<(), std::io::Error>(())
/// ```
impl Participant for Part<'_, '_> {
    fn prepare(&mut self) -> Result<(), Refused> {
        Ok(())
    }

    fn mark(&mut self, operation: Option<&Operation<'_>>) -> Result<(), Refused> {
        let operation = operation.expect(
            "expected a transaction of the file system that decides for the lists, too; got one over another kind",
        );
        Part::mark(self, operation).map_err(|_| Refused)
    }

    fn unmark(&mut self, has_happened: bool) {
        Part::unmark(self, has_happened);
    }

    fn commit(&mut self) {}

    fn abort(&mut self) {}
}
