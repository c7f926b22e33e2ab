//! The interface `lists` on lists of `olf` in the order of their keys.

use olf::Sorted;
use olf_adapter::{ByKey, domain};

olf_adapter::lists_adapter! { Sorted<'static, ByKey>: Sorted::new(domain()).expect("a number for a list") }
