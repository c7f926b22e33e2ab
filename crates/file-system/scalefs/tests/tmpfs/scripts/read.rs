//! Reads scripts of the SibylFS project: a call a line, by a process with a number.
//!
//! ```text
//! @type script                                  the first line
//! # words                                       nothing
//! mkdir "d" 0o777                               by process 1, who is user 0
//! Pid 2 -> create (User_id 1) (Group_id 1)      process 2 begins
//! Pid 2 -> open /d/f [O_CREAT;O_RDWR] 0o666     a path needs no quotes
//! write! (FD 3) "words" 5                       descriptors have the numbers that they get
//! ```

use std::collections::BTreeMap;

/// One word of a line.
#[derive(Clone, Debug, PartialEq)]
pub enum Word {
    Text(String),
    Number(i64),
    /// In brackets.
    Flags(Vec<String>),
    /// In parentheses, such as `FD` and 3.
    Numbered(String, i64),
}

/// A call.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its place in the script, from 1 on.
    pub number: usize,
    pub process: u32,
    pub call: String,
    pub words: Vec<Word>,
}

/// A script.
#[derive(Clone, Debug, Default)]
pub struct Script {
    pub lines: Vec<Line>,
    /// By user: the groups that it is in, besides that of its process.
    pub groups: BTreeMap<u32, Vec<u32>>,
}

fn number(word: &str) -> Option<i64> {
    match word.strip_prefix("0o") {
        Some(octal) => i64::from_str_radix(octal, 8).ok(),
        None => word.parse().ok(),
    }
}

/// The words of a line; `None` if a quote, a bracket or a parenthesis is left open.
fn words(line: &str) -> Option<Vec<Word>> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        let end;
        match first {
            '"' => {
                end = 2 + rest[1..].find('"')?;
                words.push(Word::Text(rest[1..end - 1].to_owned()));
            }
            '[' => {
                end = 1 + rest.find(']')?;
                let flags = rest[1..end - 1].split(';').map(str::trim).filter(|flag| !flag.is_empty());
                words.push(Word::Flags(flags.map(str::to_owned).collect()));
            }
            '(' => {
                end = 1 + rest.find(')')?;
                let (kind, value) = rest[1..end - 1].split_once(' ')?;
                words.push(Word::Numbered(kind.to_owned(), number(value.trim())?));
            }
            _ => {
                end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                let word = &rest[..end];
                words.push(number(word).map_or_else(|| Word::Text(word.to_owned()), Word::Number));
            }
        }
        rest = rest[end..].trim_start();
    }
    Some(words)
}

/// The script in a text; `None` if it is none.
pub fn script(text: &str) -> Option<Script> {
    let mut script = Script::default();
    let mut lines = text.lines().enumerate().filter(|(_, line)| {
        let line = line.trim_start();
        !line.is_empty() && !line.starts_with('#')
    });
    if lines.next()?.1.trim() != "@type script" {
        return None;
    }
    for (index, line) in lines {
        let mut found = words(line)?;
        let mut process = 1;
        if found.first() == Some(&Word::Text("Pid".into())) {
            let Some(Word::Number(of)) = found.get(1) else { return None };
            process = u32::try_from(*of).ok()?;
            found.drain(..3.min(found.len()));
        }
        let Some(Word::Text(call)) = found.first().cloned() else { return None };
        found.remove(0);
        match (call.as_str(), found.as_slice()) {
            ("add_user_to_group", [Word::Numbered(_, user), Word::Numbered(_, group)]) => {
                script.groups.entry(*user as u32).or_default().push(*group as u32);
            }
            _ => script.lines.push(Line { number: index + 1, process, call, words: found }),
        }
    }
    Some(script)
}
