//! Ending all processes of a tree of `scalefs run`.

use crate::run::names::{self, Request};

/// `scalefs stop`: waits until the tree has ended.
pub(crate) fn stop(name: Option<&str>) -> Result<(), String> {
    let name = match name {
        Some(name) => name.to_owned(),
        None => only(names::all()?)?,
    };
    names::ask(&name, Request::Stop).map(drop).map_err(|silence| silence.of(&name))
}

/// The one tree that there is.
fn only(mut names: Vec<String>) -> Result<String, String> {
    match names.len() {
        0 => Err("no tree is run by this user".to_owned()),
        1 => Ok(names.remove(0)),
        _ => Err(format!("expected --instance NAME, since there are several trees: {}", names.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_trees_need_a_name() {
        assert_eq!(only(vec!["a".to_owned()]), Ok("a".to_owned()));
        assert!(only(Vec::new()).is_err_and(|said| said.contains("no tree is run")));
        let both = vec!["a".to_owned(), "b".to_owned()];
        assert!(only(both).is_err_and(|said| said.contains("--instance NAME") && said.ends_with("a, b")));
    }
}
