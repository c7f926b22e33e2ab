//! What a benchmark is: for each core, an operation that it makes again and again.

use crate::world::World;

/// Makes one operation of a core: its number, and how many it has made before.
pub type Operation<'w> = Box<dyn Fn(usize, u64) + 'w>;

/// A benchmark by its name.
pub struct Benchmark {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What one operation is.
    pub operation: &'static str,
    /// Whether cores maintain the file system between operations.
    pub maintains: bool,
    /// Sets up what all cores need; what comes of it makes an operation.
    pub prepare: for<'w> fn(&'w World) -> Operation<'w>,
}
