//! The interface `lists` on lists of `olf` in the order of their keys.

use olf::Sorted;

use crate::things::{ByKey, domain, lists_adapter};

lists_adapter! { commutant_adapter_sorted => Sorted<'static, ByKey>: Sorted::new(domain()).expect("a number for a list") }
