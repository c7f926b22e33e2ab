//! What a command can ask of the tree, and what it was answered: each first look is such a pair.
//!
//! A commit asks the same questions again. Where all answers are the same, the command would have done the same now.

use crate::attributes::{Attributes, Kind};
use crate::escape;
use crate::place::Place;

/// What was asked about a place.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Question {
    /// Is there anything, of which kind, and who may use it?
    Name,
    /// What does `stat` say?
    Attributes,
    /// What does a copy of it keep? Asked by the overlay before it copies it.
    Copy,
    /// What does a copy of it keep that is emptied in the same call?
    EmptyCopy,
    /// Where does the file end?
    Size,
    /// Which version of a file is it? Asked where the kernel reads the file itself, without a question about bytes.
    Version,
    /// Which names are in the directory?
    Listing,
    /// Which bytes are there?
    Data { offset: u64, length_bytes: u32 },
    /// Where does the symbolic link lead?
    Target,
    /// What is the extended attribute of this name?
    Extended(Vec<u8>),
    /// Which extended attributes are there?
    ExtendedNames,
}

/// A name in a listing, with the kind of what it leads to.
pub(crate) type Listed = (Vec<u8>, Kind);

/// What was answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Answer {
    /// Nothing of this kind is there.
    Absent,
    /// The system refused, with this error number.
    Fault(i32),
    /// Of a name, and of attributes.
    Attributes(Attributes),
    Size(u64),
    /// In order of names.
    Listing(Vec<Listed>),
    /// A hash of the bytes, or of the value of an attribute.
    Hash(String),
    /// Where a link leads.
    Target(Vec<u8>),
    /// In order.
    Names(Vec<Vec<u8>>),
}

impl Answer {
    /// The answer about bytes.
    pub(crate) fn about_bytes(bytes: &[u8]) -> Answer {
        Answer::Hash(blake3::hash(bytes).to_hex()[..32].to_owned())
    }

    /// Whether a command that got this answer would have got `now` without a difference that it could tell.
    pub(crate) fn agrees_with(&self, question: &Question, now: &Answer) -> bool {
        match (question, self, now) {
            (Question::Name | Question::EmptyCopy, Answer::Attributes(then), Answer::Attributes(now)) => {
                then.has_same_rights(now)
            }
            (Question::Attributes, Answer::Attributes(then), Answer::Attributes(now)) => then.is_same_to_stat(now),
            (Question::Copy, Answer::Attributes(then), Answer::Attributes(now)) => then.is_same_to_copy(now),
            (Question::Version, Answer::Attributes(then), Answer::Attributes(now)) => then.is_same_version(now),
            _ => self == now,
        }
    }
}

/// A question about a place, and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) place: Place,
    pub(crate) question: Question,
    pub(crate) answer: Answer,
}

impl Look {
    /// As one line, without its end.
    pub(crate) fn line(&self) -> String {
        let question = match &self.question {
            Question::Name => "name".to_owned(),
            Question::Attributes => "attributes".to_owned(),
            Question::Copy => "copy".to_owned(),
            Question::EmptyCopy => "empty-copy".to_owned(),
            Question::Size => "size".to_owned(),
            Question::Version => "version".to_owned(),
            Question::Listing => "listing".to_owned(),
            Question::Data { offset, length_bytes } => format!("data {offset} {length_bytes}"),
            Question::Target => "target".to_owned(),
            Question::Extended(name) => format!("extended {}", escape::word(name)),
            Question::ExtendedNames => "extended-names".to_owned(),
        };
        format!("{} {question} {}", escape::word(&self.place.absolute()), answer_words(&self.answer))
    }

    /// From such a line; `None` if it is none.
    pub(crate) fn of_line(line: &str) -> Option<Look> {
        let mut words = line.split(' ');
        let place = Place::of_bytes(&escape::bytes_of(words.next()?)?)?;
        let question = match words.next()? {
            "name" => Question::Name,
            "attributes" => Question::Attributes,
            "copy" => Question::Copy,
            "empty-copy" => Question::EmptyCopy,
            "size" => Question::Size,
            "version" => Question::Version,
            "listing" => Question::Listing,
            "data" => Question::Data { offset: words.next()?.parse().ok()?, length_bytes: words.next()?.parse().ok()? },
            "target" => Question::Target,
            "extended" => Question::Extended(escape::bytes_of(words.next()?)?),
            "extended-names" => Question::ExtendedNames,
            _ => return None,
        };
        let answer = answer_of(&question, &mut words)?;
        words.next().is_none().then_some(Look { place, question, answer })
    }
}

fn answer_words(answer: &Answer) -> String {
    let joined = |words: Vec<String>| if words.is_empty() { String::new() } else { format!(" {}", words.join(" ")) };
    match answer {
        Answer::Absent => "absent".to_owned(),
        Answer::Fault(number) => format!("fault {number}"),
        Answer::Attributes(attributes) => attributes.words(),
        Answer::Size(size_bytes) => size_bytes.to_string(),
        Answer::Listing(listed) => {
            let words = listed.iter().map(|(name, kind)| format!("{}:{}", kind.name(), escape::word(name))).collect();
            format!("{}{}", listed.len(), joined(words))
        }
        Answer::Hash(hash) => hash.clone(),
        Answer::Target(target) => escape::word(target),
        Answer::Names(names) => {
            format!("{}{}", names.len(), joined(names.iter().map(|name| escape::word(name)).collect()))
        }
    }
}

fn answer_of<'a>(question: &Question, words: &mut (impl Iterator<Item = &'a str> + Clone)) -> Option<Answer> {
    match words.clone().next()? {
        "absent" => {
            words.next();
            return Some(Answer::Absent);
        }
        "fault" => {
            words.next();
            return Some(Answer::Fault(words.next()?.parse().ok()?));
        }
        _ => {}
    }
    Some(match question {
        Question::Name | Question::Attributes | Question::Copy | Question::EmptyCopy | Question::Version => {
            Answer::Attributes(Attributes::of_words(words)?)
        }
        Question::Size => Answer::Size(words.next()?.parse().ok()?),
        Question::Listing => {
            let count: usize = words.next()?.parse().ok()?;
            let listed = |word: &str| {
                let (kind, name) = word.split_once(':')?;
                Some((escape::bytes_of(name)?, Kind::of_name(kind)?))
            };
            let names: Vec<Listed> = words.by_ref().map(listed).collect::<Option<_>>()?;
            (names.len() == count).then_some(Answer::Listing(names))?
        }
        Question::Data { .. } | Question::Extended(_) => {
            let hash = words.next()?;
            let is_hash = hash.len() == 32 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_hash.then(|| Answer::Hash(hash.to_owned()))?
        }
        Question::Target => Answer::Target(escape::bytes_of(words.next()?)?),
        Question::ExtendedNames => {
            let count: usize = words.next()?.parse().ok()?;
            let names: Vec<Vec<u8>> = words.by_ref().map(escape::bytes_of).collect::<Option<_>>()?;
            (names.len() == count).then_some(Answer::Names(names))?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_look_comes_back_from_its_line() {
        let place = Place::of_bytes(b"/a b/\xff\n").expect("a place");
        let attributes = Attributes {
            kind: Kind::File,
            mode: 0o4755,
            user: 1,
            group: 2,
            device: 3,
            inode: 4,
            links: 5,
            size_bytes: 6,
            modified: (-7, 8),
            changed: (9, 999_999_999),
            special: 10,
        };
        let pairs = [
            (Question::Name, Answer::Absent),
            (Question::Name, Answer::Attributes(attributes.clone())),
            (Question::Attributes, Answer::Attributes(attributes.clone())),
            (Question::Copy, Answer::Attributes(attributes.clone())),
            (Question::EmptyCopy, Answer::Attributes(attributes)),
            (Question::Version, Answer::Absent),
            (Question::Name, Answer::Fault(13)),
            (Question::Size, Answer::Size(0)),
            (Question::Listing, Answer::Listing(Vec::new())),
            (Question::Listing, Answer::Listing(vec![(b"x y".to_vec(), Kind::Fifo), (b"z:".to_vec(), Kind::File)])),
            (Question::Data { offset: 4096, length_bytes: 131_072 }, Answer::about_bytes(b"data")),
            (Question::Target, Answer::Target(b"../x".to_vec())),
            (Question::Extended(b"user.a b".to_vec()), Answer::about_bytes(b"")),
            (Question::Extended(b"user.c".to_vec()), Answer::Absent),
            (Question::ExtendedNames, Answer::Names(vec![b"user.a".to_vec()])),
            (Question::ExtendedNames, Answer::Names(Vec::new())),
        ];
        for (question, answer) in pairs {
            let look = Look { place: place.clone(), question, answer };
            assert_eq!(Look::of_line(&look.line()), Some(look.clone()), "{}", look.line());
            assert_eq!(Look::of_line(&format!("{} more", look.line())), None);
        }
    }
}
