//! From the declaration of an item to its marker types.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Field, Fields, Result, Token, Type};

use crate::names;

/// What lists a link is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// In the order of a key, and maps: `olf::Link`.
    Link,
    /// In the order of insertion: `olf::ListLink`.
    List,
}

/// What the attribute of a field says.
#[derive(Default)]
struct Said {
    is_key: bool,
    kind: Option<Kind>,
    name: Option<Ident>,
    key: Option<Ident>,
}

/// A field with `#[olf(...)]`.
struct Marked<'f> {
    field: &'f Field,
    attribute: &'f Attribute,
    said: Said,
}

/// The marker types of an item, or what is wrong with it.
pub fn markers(item: &DeriveInput) -> Result<TokenStream> {
    let fields = named_fields(item)?;
    if let Some(parameter) = item.generics.params.first() {
        let why = "expected an item without parameters: a marker type stands for one field of one type";
        return Err(Error::new(parameter.span(), why));
    }
    let marked = fields.iter().filter_map(|field| read(field).transpose()).collect::<Result<Vec<_>>>()?;
    let key = the_key(&marked)?;
    let links = marked.iter().filter(|marked| marked.said.kind.is_some());
    let made = links.map(|link| marker(item, &fields, link, key)).collect::<Result<Vec<_>>>()?;
    if made.is_empty() {
        return Err(Error::new(item.ident.span(), "expected a field with #[olf(link)] or #[olf(list)]"));
    }
    Ok(made.into_iter().collect())
}

fn named_fields(item: &DeriveInput) -> Result<Vec<&Field>> {
    match &item.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => Ok(fields.named.iter().collect()),
            _ => Err(Error::new(item.ident.span(), "expected a struct whose fields have names")),
        },
        _ => Err(Error::new(item.ident.span(), "expected a struct: links are fields of it")),
    }
}

/// What is said of a field, if anything is.
fn read(field: &Field) -> Result<Option<Marked<'_>>> {
    let mut attributes = field.attrs.iter().filter(|attribute| attribute.path().is_ident("olf"));
    let Some(attribute) = attributes.next() else { return Ok(None) };
    if let Some(second) = attributes.next() {
        return Err(Error::new(second.span(), "expected one #[olf(...)] at a field, got two"));
    }
    let mut said = Said::default();
    attribute.parse_nested_meta(|meta| {
        let word = meta.path.get_ident().map(Ident::to_string);
        let has_value = meta.input.peek(Token![=]);
        match (word.as_deref(), has_value) {
            (Some("link"), false) if said.kind.is_none() => said.kind = Some(Kind::Link),
            (Some("list"), false) if said.kind.is_none() => said.kind = Some(Kind::List),
            (Some("key"), false) if !said.is_key => said.is_key = true,
            (Some("name"), true) if said.name.is_none() => said.name = Some(meta.value()?.parse()?),
            (Some("key"), true) if said.key.is_none() => said.key = Some(meta.value()?.parse()?),
            _ => return Err(meta.error("expected link or list, key, name = Type or key = field, each at most once")),
        }
        Ok(())
    })?;
    let why = match (said.kind, said.name.is_some(), said.key.is_some()) {
        (None, true, _) | (None, _, true) => "expected link or list with a name or a key: #[olf(link, name = Type)]",
        (None, ..) if !said.is_key => "expected #[olf(link)], #[olf(list)] or #[olf(key)]",
        (Some(Kind::List), _, true) => "expected no key of a list, which keeps the order of insertion",
        _ => return Ok(Some(Marked { field, attribute, said })),
    };
    Err(Error::new(attribute.span(), why))
}

fn the_key<'f>(marked: &[Marked<'f>]) -> Result<Option<&'f Field>> {
    let mut keys = marked.iter().filter(|marked| marked.said.is_key);
    let first = keys.next().map(|marked| marked.field);
    match keys.next() {
        Some(second) => {
            let why = "expected one field with #[olf(key)]; #[olf(link, key = field)] names another one for a link";
            Err(Error::new(second.attribute.span(), why))
        }
        None => Ok(first),
    }
}

fn marker(item: &DeriveInput, fields: &[&Field], linked: &Marked<'_>, key: Option<&Field>) -> Result<TokenStream> {
    let link = linked.field.ident.as_ref().expect("a field with a name");
    let (visibility, of) = (&item.vis, &item.ident);
    let name = match &linked.said.name {
        Some(name) => name.clone(),
        None => format_ident!("{}", names::marker(&of.to_string(), &link.to_string()), span = link.span()),
    };
    let key = match &linked.said.key {
        None => key,
        Some(wanted) => {
            let found = fields.iter().find(|field| field.ident.as_ref() == Some(wanted));
            Some(*found.ok_or_else(|| Error::new(wanted.span(), format!("expected a field of {of}, got {wanted}")))?)
        }
    };
    let about = format!("Items `{of}` by their link `{link}`.");
    let place = match (linked.said.kind, key) {
        (Some(Kind::List), _) => quote! { list: #link },
        (_, None) => quote! { link: #link },
        (_, Some(key)) => {
            let (key, of_type): (_, &Type) = (key.ident.as_ref().expect("a field with a name"), &key.ty);
            quote! { link: #link, key: #key as #of_type }
        }
    };
    Ok(quote! {
        ::olf::links! {
            #[doc = #about]
            #visibility #name: #of { #place }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::markers;

    fn made(source: &str) -> Result<String, String> {
        let item = syn::parse_str(source).expect("a declaration");
        markers(&item).map(|made| made.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn each_link_has_a_marker_with_its_key() {
        let made = made(
            "pub struct Page { #[olf(key)] id: u64, #[olf(link)] by_id: Link, #[olf(link, name = ByAge, key = age)] old: Link, \
             age: u8 }",
        );
        let made = made.unwrap();
        assert!(made.contains("pub PageById : Page { link : by_id , key : id as u64 }"), "{made}");
        assert!(made.contains("pub ByAge : Page { link : old , key : age as u8 }"), "{made}");
    }

    #[test]
    fn without_a_key_a_link_has_none() {
        assert!(made("struct Job { #[olf(link)] queue: Link }").unwrap().contains("JobQueue : Job { link : queue }"));
        let list = made("struct Job { #[olf(key)] id: u8, #[olf(list)] queue: ListLink }").unwrap();
        assert!(list.contains("JobQueue : Job { list : queue }"), "{list}");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let words = "expected link or list, key, name = Type or key = field, each at most once";
        for (source, why) in [
            ("struct A { #[olf(key)] id: u64 }", "expected a field with #[olf(link)] or"),
            ("struct A<T> { #[olf(link)] l: Link, t: T }", "expected an item without parameters"),
            ("struct A(#[olf(link)] Link);", "expected a struct whose fields have names"),
            ("enum A { B }", "expected a struct"),
            (
                "struct A { #[olf(key)] a: u8, #[olf(key)] b: u8, #[olf(link)] l: Link }",
                "expected one field with #[olf(key)]",
            ),
            ("struct A { #[olf(link)] #[olf(link)] l: Link }", "expected one #[olf(...)] at a field"),
            ("struct A { #[olf(link, key = b)] l: Link }", "expected a field of A, got b"),
            ("struct A { #[olf(link, size = b)] l: Link }", words),
            ("struct A { #[olf(link, name = B, name = C)] l: Link }", words),
            ("struct A { #[olf(link, list)] l: Link }", words),
            ("struct A { #[olf(list, key = l)] l: Link }", "expected no key of a list"),
            ("struct A { #[olf(name = B)] l: Link }", "expected link or list with a name"),
            ("struct A { #[olf()] l: Link }", "expected #[olf(link)], #[olf(list)] or #[olf(key)]"),
        ] {
            let said = made(source).expect_err(source);
            assert!(said.starts_with(why), "{source}: {said}");
        }
    }
}
