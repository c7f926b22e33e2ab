//! An instance as its records have it.

use std::collections::BTreeMap;

use posix_calls::Kind;

use crate::object::{Object, ROOT};
use crate::page_file::{Content, PAGE};

/// All records of an instance.
#[derive(Debug, Default)]
pub(crate) struct Image {
    pub(crate) objects: BTreeMap<u64, Object>,
    pub(crate) names: BTreeMap<(u64, Box<[u8]>), u64>,
    pub(crate) pages: BTreeMap<(u64, u64), Content>,
}

impl Image {
    /// The names of a directory.
    pub(crate) fn names_of(&self, directory: u64) -> impl Iterator<Item = (&[u8], u64)> {
        let names = self.names.range((directory, Box::default())..=(directory, vec![u8::MAX; 256].into()));
        names.map(|((_, name), number)| (&name[..], *number))
    }

    /// Whether the records are those of one file system: a tree of directories, and files with names. `claim` says whether a
    /// page of the page file is there, and nobody else's.
    ///
    /// # Errors
    /// What is not so.
    pub(crate) fn check(&self, next: u64, claim: &mut dyn FnMut(u64) -> bool) -> Result<(), String> {
        let root = self.objects.get(&ROOT).ok_or("there is no root")?;
        if root.kind != Kind::Directory {
            return Err("its root is no directory".into());
        }
        let mut links = BTreeMap::from([(ROOT, 1_u32)]);
        for ((directory, name), number) in &self.names {
            let is_name = (1..=255).contains(&name.len()) && !name.iter().any(|byte| matches!(byte, 0 | b'/'));
            if !is_name || matches!(&name[..], b"." | b"..") {
                return Err(format!("directory {directory} has a name that is none"));
            }
            if self.objects.get(directory).is_none_or(|object| object.kind != Kind::Directory) {
                return Err(format!("object {directory} has names and is no directory"));
            }
            if !self.objects.contains_key(number) {
                return Err(format!("a name of directory {directory} leads to object {number}, which is not there"));
            }
            *links.entry(*number).or_default() += 1;
        }
        for (number, object) in &self.objects {
            let names = links.get(number).copied().unwrap_or(0);
            if object.links != names || names == 0 || *number >= next {
                return Err(format!("object {number} counts {} names and has {names}", object.links));
            }
            if object.kind == Kind::Directory && names > 1 {
                return Err(format!("directory {number} has {names} names"));
            }
        }
        if self.reachable() < self.objects.len() {
            return Err("directories are below each other".into());
        }
        for ((number, index), content) in &self.pages {
            let size_bytes = self.objects.get(number).map_or(0, |object| object.size_bytes);
            if *index >= size_bytes.div_ceil(PAGE as u64) {
                return Err(format!("object {number} has a page past its end"));
            }
            if let Content::At(at) = content
                && !claim(at.page)
            {
                return Err(format!("page {} of the page file is not there, or somebody else's", at.page));
            }
        }
        Ok(())
    }

    /// How many objects there are below the root, with it.
    fn reachable(&self) -> usize {
        let mut seen = std::collections::BTreeSet::from([ROOT]);
        let mut open = vec![ROOT];
        while let Some(directory) = open.pop() {
            for (_, number) in self.names_of(directory) {
                if seen.insert(number) && self.objects[&number].kind == Kind::Directory {
                    open.push(number);
                }
            }
        }
        seen.len()
    }
}
