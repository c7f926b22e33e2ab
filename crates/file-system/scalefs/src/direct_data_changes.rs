//! Changes of data under the decision of names: of files that nobody else finds yet. What is in other files stays.

use posix_calls::{DataChanges, FileChanges};

use crate::description::DescriptionRef;
use crate::direct::OperationError;
use crate::direct_changes::PreparedChanges;
use crate::direct_data::InProcess;
use crate::host::Host;
use crate::node::Node;

impl<H: Host> DataChanges for InProcess<'_, H> {
    const CHANGES_FILES: bool = false;
    type WriteRoom<'v>
        = ()
    where
        Self: 'v;

    fn identity(&self, description: DescriptionRef<'_>) -> u64 {
        description.address()
    }

    fn prepare_data<'p, 'v>(
        &'v self,
        _: &mut PreparedChanges<'p, 'v, H>,
        changes: &'p [FileChanges<'p, Node<'v>>],
        _: &'p mut [()],
    ) -> Result<(), OperationError>
    where
        'v: 'p,
    {
        assert!(changes.is_empty(), "files that others find are not changed");
        Ok(())
    }
}
