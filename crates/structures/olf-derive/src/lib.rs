//! `#[derive(olf::Item)]`: a marker type for each link field of an item, as the macro `olf::links!` writes them by hand.
//!
//! The use of it, with an example that is compiled, stands in the documentation of crate `olf`.

#![forbid(unsafe_code)]

mod expand;
mod names;

use proc_macro::TokenStream;

/// Makes a marker type for each field with `#[olf(link)]` or `#[olf(list)]`, by which items stand in lists: `Page` with the
/// field `by_id` gets `PageById`; `#[olf(link, name = ById)]` chooses another name. The field with `#[olf(key)]` is what items
/// are found by in maps and in lists in order; `#[olf(link, key = field)]` names another one for a link.
#[proc_macro_derive(Item, attributes(olf))]
pub fn derive_item(input: TokenStream) -> TokenStream {
    let parsed = syn::parse(input).and_then(|item| expand::markers(&item));
    parsed.unwrap_or_else(|error| error.to_compile_error()).into()
}
